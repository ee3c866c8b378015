"""Rules between settings: what each field alone cannot say.

Every rule is one function; all run, except those over fields that are wrong in themselves.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from policy import durations, settings_strategies, signal_table, windows
from policy.mistakes import Mistake, at, did_you_mean
from policy.settings import Settings
from policy.settings_moves import Backoff
from policy.settings_strategies import UsageSource


def check(settings: Settings, wrong: Iterable[str] = ()) -> tuple[Mistake, ...]:
    """All broken rules; `wrong` are the paths of fields for which defaults stand in."""
    paths = tuple(wrong)
    rules = [rule for rule, fields in _RULES if not any(path.startswith(fields) for path in paths)]
    return tuple(mistake for rule in rules for mistake in rule(settings))


def failures_to_longest_rest(backoff: Backoff) -> int:
    """How many moves in a row must fail before a workload rests as long as it ever will."""
    if backoff.factor == 1 or backoff.max <= backoff.initial:
        return 1
    # The small slack keeps an exact power (5m, 10m, 20m) from being counted once more by rounding.
    return 1 + math.ceil(math.log(backoff.max / backoff.initial, backoff.factor) - 1e-9)


def _history_outlives_backoff(settings: Settings) -> Iterator[Mistake]:
    longest = settings.backoff.max
    if settings.history.history_ttl < longest:
        kept = durations.text_of(settings.history.history_ttl)
        accepted = f"at least backoff.max, which is {durations.text_of(longest)}"
        yield Mistake("history.historyTTL", kept, accepted)


def _history_outlives_cooldowns(settings: Settings) -> Iterator[Mistake]:
    """The rest after an interruption is counted from finished moves as well."""
    named = settings.strategies
    longest = {
        "strategies.SpotReclaim.coolDown": named.spot_reclaim.cool_down,
        "strategies.SpotMix.coolDown": named.spot_mix.cool_down,
    }
    for path, length in longest.items():
        if length > settings.history.history_ttl:
            kept = durations.text_of(settings.history.history_ttl)
            yield Mistake(path, durations.text_of(length), f"at most history.historyTTL, which is {kept}")


def _backoff_grows(settings: Settings) -> Iterator[Mistake]:
    if settings.backoff.max < settings.backoff.initial:
        longest, first = durations.text_of(settings.backoff.max), durations.text_of(settings.backoff.initial)
        yield Mistake("backoff.max", longest, f"at least backoff.initial, which is {first}")


def _history_counts_suffice(settings: Settings) -> Iterator[Mistake]:
    needed, kept = failures_to_longest_rest(settings.backoff), settings.history.per_workload
    if kept < needed:
        yield Mistake("history.perWorkload", str(kept), f"at least {needed}, to reach backoff.max")
    if settings.history.total < kept:
        accepted = f"at least history.perWorkload, which is {kept}"
        yield Mistake("history.total", str(settings.history.total), accepted)


def _strategies_exist(settings: Settings) -> Iterator[Mistake]:
    known = (*settings_strategies.BUILT_IN, *settings.strategies.third_party)
    accepted = f"one of {', '.join(known)}, or a name under strategies.thirdParty"
    for number, name in enumerate(settings.enabled_strategies):
        if name not in known:
            path = at("enabledStrategies", number)
            yield Mistake(path, repr(name), accepted, did_you_mean(name, known))
    for name in settings.strategies.third_party:
        if name in settings_strategies.BUILT_IN:
            path = at("strategies.thirdParty", name)
            yield Mistake(path, "a name of ours", "a name that no built-in strategy has")


def _no_repetitions(settings: Settings) -> Iterator[Mistake]:
    lists = {
        "enabledStrategies": settings.enabled_strategies,
        "excludedNamespaces": settings.excluded_namespaces,
    }
    for path, names in lists.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield Mistake(path, f"{name!r} {count} times", "each name once")


def _windows_have_a_length(settings: Settings) -> Iterator[Mistake]:
    for number, window in enumerate(settings.windows):
        if not windows.has_length(window):
            path, value = at("windows", number), f"from {window.start} to {window.end}"
            yield Mistake(path, value, "two different times", "the whole day is 00:00 to 24:00")


def _windows_open_at_all(settings: Settings) -> Iterator[Mistake]:
    """Windows that leave no moment would switch the product off without saying so."""
    meant = tuple(window for window in settings.windows if windows.has_length(window))
    if not windows.ever_open(meant):
        yield Mistake("windows", "a list that is never open", "at least some open time", "use mode: observe to stop")


def _prometheus_has_an_address(settings: Settings) -> Iterator[Mistake]:
    optimization = settings.strategies.resource_optimization
    if optimization.source is UsageSource.PROMETHEUS and not optimization.prometheus_url:
        path = "strategies.ResourceOptimization.prometheusURL"
        yield Mistake(path, "''", "an address, because the source is prometheus")


def _hint_outweighs(settings: Settings) -> Iterator[Mistake]:
    hint = settings.migrations.hint
    if hint.target_weight <= hint.avoid_source_weight:
        accepted = f"less than migrations.hint.targetWeight, which is {hint.target_weight}"
        yield Mistake("migrations.hint.avoidSourceWeight", str(hint.avoid_source_weight), accepted)


def _capacity_labels_say_something(settings: Settings) -> Iterator[Mistake]:
    for number, label in enumerate(settings.capacity.labels):
        if not (label.spot or label.on_demand):
            path = at("capacity.labels", number)
            yield Mistake(path, "no values", "at least one value under spot or onDemand")


def _signals_can_match(settings: Settings) -> Iterator[Mistake]:
    """A row that no node can ever carry is a typo, and the interruption it was written for would go unseen."""
    for number, row in enumerate(settings.signals.rows):
        path = at("signals.rows", number)
        if not signal_table.can_have_key(row):
            yield Mistake(at(path, "key"), repr(row.key), signal_table.KEY_FORMAT[row.place])
        if not signal_table.can_have_value(row):
            yield Mistake(at(path, "value"), repr(row.value), signal_table.VALUE_FORMAT[row.place])


def _metric_has_a_range(settings: Settings) -> Iterator[Mistake]:
    metric = settings.extender.metric
    if metric.best == metric.worst:
        accepted = f"another number than extender.metric.best, which is {metric.best:g}"
        yield Mistake("extender.metric.worst", f"{metric.worst:g}", accepted)


# Each rule with the fields it looks at.
_RULES: Final[tuple[tuple[Callable[[Settings], Iterator[Mistake]], tuple[str, ...]], ...]] = (
    (_history_outlives_backoff, ("history", "backoff")),
    (_history_outlives_cooldowns, ("history", "strategies.SpotReclaim", "strategies.SpotMix")),
    (_backoff_grows, ("backoff",)),
    (_history_counts_suffice, ("history", "backoff")),
    (_strategies_exist, ("enabledStrategies", "strategies.thirdParty")),
    (_no_repetitions, ("enabledStrategies", "excludedNamespaces")),
    (_windows_have_a_length, ("windows",)),
    (_windows_open_at_all, ("windows",)),
    (_prometheus_has_an_address, ("strategies.ResourceOptimization",)),
    (_hint_outweighs, ("migrations.hint",)),
    (_capacity_labels_say_something, ("capacity",)),
    (_signals_can_match, ("signals",)),
    (_metric_has_a_range, ("extender.metric",)),
)

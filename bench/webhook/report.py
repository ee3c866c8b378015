"""The figures as Markdown, and as JSON."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from bench.decode import Spread, spread
from bench.webhook import figures
from bench.webhook.contenders import IDIOMATIC, LEAN, OURS
from bench.webhook.figures import NEW, RATE, Flooded, Round

NAMES = (IDIOMATIC, LEAN, OURS)


def markdown(rounds: Sequence[Round], about: str) -> str:
    """Tables for people: median and, in brackets, least and most over the rounds."""
    lines = [about, "", *_floods(rounds), "", *_others(rounds), "", *_compared(rounds)]
    return "\n".join(lines) + "\n"


def as_json(rounds: Sequence[Round], about: str) -> bytes:
    """The same for programs, with every single run."""
    plain = [
        {
            "floods": {f"{name}, {count} connections": _flood(it) for (name, count), it in one.floods.items()},
            f"{RATE} requests/s": one.paced,
            "creations": one.creations,
            "resident MiB": one.resident,
        }
        for one in rounds
    ]
    found = {"about": about, "compared": figures.compared(rounds), "rounds": plain}
    return msgspec.json.format(msgspec.json.encode(found))


def _flood(one: Flooded) -> dict[str, float]:
    return {
        "requests/s": one.per_second,
        "p50 ms": one.found.p50_ms,
        "p99 ms": one.found.p99_ms,
        "processor microseconds per request": one.microseconds,
        "starved": one.starved,
        "failed": one.found.failed,
    }


def _floods(rounds: Sequence[Round]) -> Iterator[str]:
    yield "| webhook | connections | requests/s | p50 ms | p99 ms | processor us per request | starved |"
    yield "|---|---|---|---|---|---|---|"
    for name, count in rounds[0].floods:
        runs = [_flood(one.floods[name, count]) for one in rounds]
        cells = " | ".join(_over(runs, column) for column in list(runs[0])[:5])
        yield f"| {name} | {count} | {cells} |"


def _over(runs: Sequence[dict[str, float]], column: str) -> str:
    found = spread([run[column] for run in runs])
    if column == "starved":
        return f"{found.middle:.0%}"
    digits = 0 if column in {"requests/s", "processor microseconds per request"} else 2
    return _cell(found, digits)


def _others(rounds: Sequence[Round]) -> Iterator[str]:
    yield f"| webhook | p50 ms at {RATE}/s | p99 ms at {RATE}/s | added p50 ms per pod | added p99 ms per pod | MiB |"
    yield "|---|---|---|---|---|---|"
    columns: tuple[Callable[[Round, str], float], ...] = (
        lambda one, name: one.paced[name].p50_ms,
        lambda one, name: one.paced[name].p99_ms,
        lambda one, name: one.added(name, "p50_ms"),
        lambda one, name: one.added(name, "p99_ms"),
        lambda one, name: one.resident[name],
    )
    for name in NAMES:
        cells = (_cell(spread([column(one, name) for one in rounds]), 2) for column in columns)
        yield f"| {name} | {' | '.join(cells)} |"


def _compared(rounds: Sequence[Round]) -> Iterator[str]:
    found = figures.compared(rounds)
    targets = {target.figure: target for target in figures.TARGETS}
    yield f"| {OURS} | within one round | target | |"
    yield "|---|---|---|---|"
    for name, value in found.items():
        target = targets.get(name)
        wanted = f"{'>=' if target.at_least else '<'} {target.limit:g}" if target else ""
        verdict = ("met" if target.met(value) else "missed") if target else ""
        yield f"| {name} | {_cell(value, 2)} | {wanted} | {verdict} |"


def _cell(value: Spread, digits: int) -> str:
    return f"{value.middle:.{digits}f} ({value.least:.{digits}f} to {value.most:.{digits}f})"


def covers(rounds: Sequence[Round]) -> bool:
    """Whether no request failed; figures of a run with failures say nothing."""
    floods = all(it.found.failed == 0 for one in rounds for it in one.floods.values())
    turns = all(it.failed == 0 for one in rounds for it in (*one.paced.values(), *one.creations.values()))
    return floods and turns and all((NEW, count) in one.floods for one in rounds for _, count in one.floods)

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from policy import convert, settings_load, settings_rules
from policy.capacity import CapacityLabel, CapacitySettings, SpotTaint
from policy.mistakes import InvalidSettings
from policy.settings import Mode, Placement, Settings
from policy.settings_moves import Backoff, History, Limits, Migrations
from policy.settings_strategies import BUILT_IN, Strategies, ThirdParty
from policy.signal_table import Clock, Kind, Place, SignalRow, SignalSettings
from policy.values import Rescheduling, Spot
from policy.windows import Day, Window
from policy.windows import Kind as WindowKind
from tests.effort import many

HEAD = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n"

# The arguments that the rescheduler has always documented, comments and quotes included.
ARGUMENTS = """\
    reschedulingInterval: "30s"     # pause between checks
    enabledStrategies:              # strategies in use
      - "LoadBalancing"
      - "ResourceOptimization"
      - "NodeMaintenance"
    cpuThreshold: 80.0             # percent
    memoryThreshold: 80.0          # percent
    imbalanceThreshold: 20.0       # percent
    maxReschedulePods: 10          # per pass
    excludedNamespaces:            # left alone
      - "kube-system"
      - "kube-public"
"""
PLUGIN = f"pluginConfig:\n- name: Rescheduler\n  args:\n{ARGUMENTS}"
DOCUMENTED = Settings(enabled_strategies=("LoadBalancing", "ResourceOptimization", "NodeMaintenance"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD + re.sub("(?m)^    ", "", ARGUMENTS), id="pasted under a Policy"),
        pytest.param(PLUGIN, id="pluginConfig alone"),
        pytest.param(HEAD + PLUGIN, id="pluginConfig under a Policy"),
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "leaderElection:\n  leaderElect: true\n" + PLUGIN,
            id="a scheduler's file",
        ),
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
            "- schedulerName: default\n" + re.sub("(?m)^", "  ", PLUGIN),
            id="a profile of a scheduler's file",
        ),
    ],
)
def test_documented_arguments_load_unchanged(text: str) -> None:
    assert settings_load.load(text) == DOCUMENTED


def test_defaults() -> None:
    found = settings_load.load(HEAD)
    assert found == Settings()
    assert found.mode is Mode.ENFORCE
    assert found.rescheduling_interval == timedelta(seconds=30)
    assert (found.cpu_threshold, found.memory_threshold, found.imbalance_threshold) == (80, 80, 20)
    assert (found.imbalance_floor, found.max_reschedule_pods) == (5, 10)
    assert found.excluded_namespaces == ("kube-system", "kube-public")
    assert found.enabled_strategies == BUILT_IN
    assert (found.placement.spot, found.placement.spot_weight) == (Spot.PREFER, 10)
    hint = found.migrations.hint
    assert (hint.target_weight, hint.avoid_source_weight, hint.max_spot_weight) == (100, 10, 10)
    assert (found.migrations.max_retries, found.migrations.ready_timeout) == (3, timedelta(minutes=5))
    assert found.strategies.spot_interruption.not_ready_after == timedelta(seconds=60)
    weights = [getattr(found.strategies, name).weight for name in Strategies.__struct_fields__[:6]]
    assert weights == [200, 120, 100, 80, 70, 60]


def test_defaults_break_no_rule() -> None:
    assert settings_rules.check(Settings()) == ()


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().mode = Mode.OBSERVE  # type: ignore[misc]


EVERYTHING = Settings(
    mode=Mode.OBSERVE,
    label_prefix="spot.example.org/",
    rescheduling_interval=timedelta(minutes=1, milliseconds=500),
    enabled_strategies=("NodeMaintenance", "Mine"),
    cpu_threshold=71.5,
    windows=(
        Window(type=WindowKind.DENY, days=(Day.MONDAY,), start="08:00", end="18:00", time_zone="Europe/Berlin"),
        Window(type=WindowKind.ALLOW, start="22:00", end="06:00"),
    ),
    limits=Limits(per_node=3, min_pod_age=timedelta(0)),
    placement=Placement(rescheduling=Rescheduling.DISABLED, spot_percentage=70, critical_namespaces=("pay", "sh*")),
    migrations=Migrations(grace_period_seconds=0),
    backoff=Backoff(initial=timedelta(minutes=1), factor=3.0, max=timedelta(hours=1)),
    history=History(history_ttl=timedelta(hours=1), per_workload=5, total=5),
    strategies=Strategies(third_party={"Mine": ThirdParty(weight=1, args={"deep": {"list": [1, 1.5, "08", None]}})}),
    capacity=CapacitySettings(
        replace=True, labels=(CapacityLabel("pool", ("1.5e3", "08"), ("no",)),), taints=(SpotTaint("t"),)
    ),
    signals=SignalSettings(
        rows=(SignalRow(Kind.INTERRUPTION, Place.TAINT, "gone", "*", Clock.VALUE_START, 30, None),)
    ),
)


@pytest.mark.parametrize(
    "settings", [Settings(), DOCUMENTED, EVERYTHING], ids=["defaults", "documented", "everything set"]
)
def test_effective_settings_load_back_equal(settings: Settings) -> None:
    text = settings_load.dump(settings)
    assert text.startswith(HEAD)
    assert settings_load.load(text) == settings


def durations(low: int, high: int) -> st.SearchStrategy[timedelta]:
    return st.timedeltas(timedelta(seconds=low), timedelta(seconds=high))


SETTINGS = st.builds(
    Settings,
    mode=st.sampled_from(Mode),
    rescheduling_interval=durations(1, 86_400),
    cpu_threshold=st.floats(0, 100),
    imbalance_threshold=st.floats(0, 1000),
    max_reschedule_pods=st.integers(1, 10_000),
    excluded_namespaces=st.lists(st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True),
    unique=True).map(tuple),
    placement=st.builds(Placement, spot=st.sampled_from(Spot), spot_weight=st.integers(1, 100),
    min_on_demand=st.none() | st.integers(0, 50)),
    limits=st.builds(Limits, min_pod_age=durations(0, 10**6), minimum_improvement=st.floats(0, 1000)),
    migrations=st.builds(Migrations, grace_period_seconds=st.none() | st.integers(0, 600)),
    capacity=st.builds(
        CapacitySettings,
        labels=st.lists(st.builds(CapacityLabel, key=st.sampled_from(("a", "on", "example.org/08")),
        spot=st.lists(st.sampled_from(("", "*", "no", "1.5e3", "08", "null")), min_size=1).map(tuple)),
        max_size=3).map(tuple),
    ),
    signals=st.builds(  # the value of an annotation may be any text
        SignalSettings,
        rows=st.lists(st.builds(SignalRow, kind=st.sampled_from(Kind), place=st.just(Place.ANNOTATION),
        key=st.just("a"), value=st.text()), max_size=3).map(tuple),
    ),
)  # fmt: skip


@hypothesis_settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=many(30))
@given(SETTINGS)
def test_any_settings_load_back_equal(settings: Settings) -> None:
    assert settings_load.load(settings_load.dump(settings)) == settings


def leaves(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}.{key}" if path else key)]
    return [path]


def test_every_single_setting_refuses_a_wrong_type() -> None:
    """Whatever the field, an object of an unknown shape is a mistake at exactly that path."""
    effective = msgspec.yaml.decode(settings_load.dump(Settings()))
    del effective["apiVersion"], effective["kind"]
    for path in leaves(effective):
        if path == "strategies.thirdParty":
            continue
        nested: Any = [[{"what": "ever"}]]
        for name in reversed(path.split(".")):
            nested = {name: nested}
        text = HEAD + msgspec.yaml.encode(nested).decode()
        with pytest.raises(InvalidSettings) as caught:
            settings_load.load(text)
        assert [re.sub(r"\[0\]", "", it.path) for it in caught.value.mistakes] == [path]


def test_flattened_settings_have_one_level() -> None:
    plain = {"a": 1, "b": {"c": [1, 2], "d": {}}, "windows": [{"from": "08:00"}, {"from": "20:00"}]}
    assert convert.flatten(plain) == {
        "a": 1,
        "b.c": [1, 2],
        "b.d": None,
        "windows[0].from": "08:00",
        "windows[1].from": "20:00",
    }
    flat = convert.flatten(convert.to_plain(Settings()))
    assert flat["placement.priorityClasses.critical"] == "high-priority"
    assert not any(isinstance(value, dict) for value in flat.values())

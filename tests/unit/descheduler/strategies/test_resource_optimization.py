"""ResourceOptimization: measured usage over its threshold, and nothing on a guess."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cluster.node import ContainerMetrics
from cluster.objects import NodeMetrics, ObjectMeta, PodMetrics
from descheduler.reasons import Code
from descheduler.strategies.resource_optimization import TOLD, Relief
from descheduler.usage import SAMPLES, Samples
from policy.settings import Settings
from policy.settings_moves import Limits
from policy.settings_strategies import ResourceOptimization, Strategies, UsageSource
from tests.unit.descheduler import build, counting, scenes
from tests.unit.descheduler.build import meta
from tests.unit.descheduler.scenes import NOW, deployment, nodes

ONLY = Settings(
    enabled_strategies=("ResourceOptimization",), limits=Limits(per_workload=9, per_node=9), max_reschedule_pods=9
)


def usage(used: dict[str, tuple[int, int]], *, age: int = 10, pods: dict[str, int] | None = None) -> Samples:
    """Cpu and memory of nodes in percent of 4 cores and 16Gi; cpu of pods in thousandths."""
    made = Samples()
    made.add_nodes(_node(name, cpu, memory, age) for name, (cpu, memory) in used.items())
    made.set_pods(_pod(name, cpu) for name, cpu in (pods or {}).items())
    return made


def _node(name: str, cpu: int, memory: int, age: int) -> NodeMetrics:
    amounts = {"cpu": f"{cpu * 40}m", "memory": f"{memory * 16 * 1024 // 100}Mi"}
    metadata = _meta(name)
    return NodeMetrics(metadata=metadata, timestamp=NOW - timedelta(seconds=age), usage=amounts)


def _pod(name: str, cpu: int) -> PodMetrics:
    container = ContainerMetrics(name="main", usage={"cpu": f"{cpu}m", "memory": "100Mi"})
    return PodMetrics(metadata=_meta(name, "default"), timestamp=NOW, containers=(container,))


def _meta(name: str, namespace: str = "") -> Any:
    return ObjectMeta(name=name, namespace=namespace, uid=meta(name, namespace)["uid"])


WORLD = [*nodes("n0", "n1"), *deployment("x", ["n0"] * 4, cpu="100m", memory="100Mi")]


@pytest.mark.parametrize(
    ("used", "moves"),
    [
        pytest.param({"n0": (90, 10), "n1": (10, 10)}, 1, id="cpu over its threshold"),
        pytest.param({"n0": (10, 90), "n1": (10, 10)}, 1, id="memory over its threshold"),
        pytest.param({"n0": (80, 80), "n1": (10, 10)}, 0, id="at the thresholds"),
        pytest.param({"n0": (90, 10), "n1": (60, 10)}, 0, id="the other would be as full"),
        pytest.param({"n0": (90, 10), "n1": (10, 60)}, 1, id="memory of the other has room"),
        pytest.param({"n0": (90, 60), "n1": (10, 60)}, 0, id="memory of the other would be as full"),
    ],
)
def test_nodes_over_a_threshold_are_relieved(used: dict[str, tuple[int, int]], moves: int) -> None:
    assert len(scenes.made(WORLD, ONLY, usage(used)).moves) == moves


def test_the_largest_users_leave_first_until_it_is_enough() -> None:
    measured = {"x-00": 100, "x-01": 1500, "x-02": 300, "x-03": 1700}
    found = scenes.made(WORLD, ONLY, usage({"n0": (90, 10), "n1": (10, 10)}, pods=measured))
    assert scenes.moves(found) == [("x-03", "n0", "n1")]


@pytest.mark.parametrize(
    ("made", "code"),
    [
        pytest.param(usage({"n0": (90, 10), "n1": (10, 10)}, age=300), Code.METRICS_STALE, id="too old"),
        pytest.param(usage({"n0": (90, 10)}), Code.METRICS_STALE, id="the target is not measured"),
    ],
)
def test_nothing_is_moved_on_a_guess(made: Samples, code: Code) -> None:
    found = scenes.made(WORLD, ONLY, made)
    assert found.moves == ()
    assert {it for codes in scenes.refused(found).values() for it in codes} == {code}


def test_a_node_that_was_never_measured_is_left_alone() -> None:
    found = scenes.made(WORLD, ONLY, usage({"n1": (10, 10)}))
    assert (found.moves, found.refusals) == ((), ())


@pytest.mark.parametrize(
    ("source", "measured", "moves"),
    [
        pytest.param(UsageSource.AUTO, False, 1, id="auto: requests stand in"),
        pytest.param(UsageSource.AUTO, True, 0, id="auto: measured, and low"),
        pytest.param(UsageSource.REQUESTS, True, 1, id="requests: measurements do not count"),
        pytest.param(UsageSource.METRICS, False, 0, id="metrics: nothing without them"),
    ],
)
def test_where_usage_comes_from(source: UsageSource, measured: bool, moves: int) -> None:
    full = [*nodes("n0", "n1"), *deployment("x", ["n0"] * 4, cpu="900m")]
    chosen = Strategies(resource_optimization=ResourceOptimization(source=source))
    settings = msgspec.structs.replace(ONLY, strategies=chosen)
    low = usage({"n0": (10, 10), "n1": (10, 10)}) if measured else None
    assert len(scenes.made(full, settings, low).moves) == moves


@pytest.mark.parametrize("source", [UsageSource.METRICS, UsageSource.PROMETHEUS])
def test_a_source_that_never_answered_is_told_on_nodes_that_may_be_too_full(source: UsageSource) -> None:
    full = [*nodes("n0", "n1"), *deployment("x", ["n0"] * 4, cpu="900m"), *deployment("y", ["n1"], cpu="100m")]
    chosen = Strategies(resource_optimization=ResourceOptimization(source=source, prometheus_url="http://prom"))
    found = scenes.made(full, msgspec.structs.replace(ONLY, strategies=chosen))
    assert scenes.refused(found) == {f"x-0{number}": {Code.METRICS_STALE} for number in range(4)}
    (text,) = {reason.text for it in found.refusals for reason in it.reasons}
    assert text.startswith("node n0 has 90 % of its cpu")
    assert text.endswith("requested, and nobody measures its usage")


def test_usage_is_the_mean_of_the_last_samples() -> None:
    made = Samples()
    for number in range(SAMPLES + 2):
        made.add_nodes([_node("n0", 10 * number, 10, 100 - number)])
        made.add_nodes([_node("n0", 10 * number, 10, 100 - number)])  # the same one, read again
    found = made.node("n0")
    assert found is not None
    assert found.cpu == 40 * 10 * (2 + 3 + 4 + 5 + 6) / SAMPLES
    assert made.age("n0", NOW) == timedelta(seconds=100 - SAMPLES - 1)
    made.add_nodes([])
    assert made.node("n0") is None


def test_where_every_node_is_too_full_some_are_told_and_the_rest_costs_nothing() -> None:
    names = [f"n{number}" for number in range(20)]
    full = [it for name in names for it in deployment(f"of-{name}", [name] * 20, cpu="170m")]
    found = scenes.made([*nodes(*names), *full], ONLY)
    assert found.moves == ()
    assert len(found.refusals) == TOLD + 1, "for the first a place was looked for"
    assert {reason.code for it in found.refusals for reason in it.reasons} == {Code.NO_IMPROVEMENT}
    (room,) = nodes("room")
    assert len(scenes.made([*nodes(*names), room, *full], ONLY).moves) == ONLY.max_reschedule_pods


ARM = {"kubernetes.io/arch": "arm64"}
AMD = {"kubernetes.io/arch": "amd64"}
POOL = {"key": "pool", "value": "two", "effect": "NoSchedule"}
TOLERATING = {"tolerations": [{"key": "pool", "operator": "Exists"}]}
FULL = [f"n{number:02}" for number in range(20)]


def crowded(spot: bool | None = None, **pod: Any) -> list[Any]:
    """Every node at 85 %."""
    full = [it for name in FULL for it in deployment(f"of-{name}", [name] * 20, cpu="170m", **pod)]
    return [*nodes(*FULL, labels=AMD, spot=spot), *full]


USELESS = {
    "one with too little left": ([*crowded(), *nodes("z"), *deployment("z", ["z"] * 16, cpu="170m")], None),
    "one that their selector leaves out": (
        [*crowded(spec={"nodeSelector": AMD}), *nodes("z", labels=ARM)],
        None,
    ),
    "one that they do not tolerate": ([*crowded(), *nodes("z", taints=[POOL])], None),
    "one that is not spot, where they are": ([*crowded(spot=True), *nodes("z", spot=False)], None),
    "one that uses little and has everything requested": (
        [*crowded(), *nodes("z"), *deployment("z", ["z"] * 4, cpu="1")],
        usage({**dict.fromkeys(FULL, (90, 10)), "z": (10, 10)}),
    ),
    "one that nobody has measured": (
        [*crowded(), *nodes("z")],
        usage(dict.fromkeys(FULL, (90, 10))),
    ),
}


@pytest.mark.parametrize(("objects", "used"), USELESS.values(), ids=USELESS.keys())
def test_a_node_that_helps_nobody_is_not_compared_with_everybody(
    objects: list[Any], used: Samples | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counting.calls(monkeypatch, Relief, "objection")
    found = scenes.made(objects, ONLY, used)
    assert found.moves == ()
    assert TOLD <= len(found.refusals) <= TOLD + 1
    assert len(asked) <= 2 * len(FULL) + TOLD, "one search, and one node for each that is told"


def test_what_the_plan_has_filled_is_not_compared_with_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for three when the plan begins."""
    objects = [*crowded(), *nodes("z"), *deployment("z", ["z"] * 2, cpu="1150m")]
    asked = counting.calls(monkeypatch, Relief, "objection")
    assert [target for _, _, target in scenes.moves(scenes.made(objects, ONLY))] == ["z"] * 3
    assert len(asked) <= 2 * 4 * len(FULL) + TOLD


@pytest.mark.parametrize(
    ("spec", "targets"),
    [
        pytest.param(TOLERATING, {"pool2"}, id="tolerated"),
        pytest.param({}, set(), id="not tolerated"),
    ],
)
def test_a_tainted_node_has_room_for_who_tolerates_it(spec: dict[str, Any], targets: set[str]) -> None:
    objects = [*nodes("a", "b"), build.node("pool2", taints=[POOL])]
    objects += [it for on in "ab" for it in deployment(f"of-{on}", [on] * 9, cpu="400m", spec=spec)]
    found = scenes.made(objects, ONLY)
    assert {target for _, _, target in scenes.moves(found)} == targets
    assert {source for _, source, _ in scenes.moves(found)} == ({"a", "b"} if targets else set())

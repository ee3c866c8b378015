"""SpotMix for workloads that avoid spot: who leaves it, who is left alone, and that nobody else is looked at."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from descheduler import avoiding, gauges, plan
from descheduler.guards import Context
from descheduler.reasons import Code
from policy import keys, values
from policy.settings import Placement, Settings
from policy.settings_moves import Limits
from policy.settings_strategies import SpotMix, Strategies
from policy.values import Spot, Tier
from telemetry.metrics import Metric
from tests.unit.descheduler import build, scenes
from tests.unit.descheduler.scenes import NOW, PREFIX, deployment, nodes

NODES = [*nodes("s0", "s1", spot=True), *nodes("o0", "o1", spot=False)]
FREE = Limits(per_node=100, per_namespace=100, per_workload=100)
ANYBODY = Placement(critical_namespaces=("*",))
AVOID, CRITICAL = {f"{PREFIX}spot": "avoid"}, {f"{PREFIX}tier": "critical"}


def policy(**more: Any) -> Settings:
    chosen = {"enabled_strategies": ("SpotMix",), "placement": ANYBODY, **more}
    return Settings(max_reschedule_pods=100, limits=FREE, **chosen)


def moved(objects: list[Any], chosen: Settings | None = None) -> dict[str, str]:
    """The first letter of the target, by pod."""
    found = scenes.made(objects, chosen or policy())
    return {name: (target or "?")[0] for name, _, target in scenes.moves(found)}


def db(*on: str, said: Mapping[str, str] = AVOID, **more: Any) -> list[Any]:
    return deployment("db", on, annotations=said, cpu="100m", **more)


def bare(said: Mapping[str, str]) -> Any:
    return build.pod("alone", on="s0", annotations={**said, f"{PREFIX}rescheduling": "enabled"})


def daemon(kind: str) -> Any:
    return build.pod("daemon", on="s0", of=build.owner(kind, "agent"), annotations=AVOID)


ALL = {"db-00": "o", "db-01": "o"}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(db("s0", "s1"), ALL, id="avoid"),
        pytest.param(db("s0", "s1", said=CRITICAL), ALL, id="critical"),
        pytest.param(
            db("s0", "s1", said=AVOID | {f"{PREFIX}spot-percentage": "50"}), ALL, id="a mix changes nothing"
        ),
        pytest.param(db("o0", "s1"), {"db-01": "o"}, id="who is elsewhere stays"),
        pytest.param(db("s0"), {"db-00": "o"}, id="a single one, which is doubled first"),
        pytest.param(db("s0", said=CRITICAL | {f"{PREFIX}spot": "prefer"}), {}, id="critical that prefers spot"),
        pytest.param(db("s0", said={f"{PREFIX}spot": "ignore"}), {}, id="ignore"),
        pytest.param(db("s0", said={f"{PREFIX}spot": "Avoid"}), {}, id="misread"),
        pytest.param(db("s0", said={}), {}, id="says nothing"),
        pytest.param([bare(AVOID)], {}, id="without a controller"),
        pytest.param([daemon("DaemonSet")], {}, id="of a DaemonSet"),
        pytest.param([daemon("Node")], {}, id="static"),
    ],
)
def test_who_leaves_spot(objects: list[Any], expected: dict[str, str]) -> None:
    assert moved([*NODES, *objects]) == expected


@pytest.mark.parametrize("asking", range(3))
def test_what_is_written_on_one_pod_is_for_that_pod(asking: int) -> None:
    *controllers, one, two, three = db("s0", "s0", "s1", said={})
    pods = [_with(it, {"annotations": AVOID}) if n == asking else it for n, it in enumerate((one, two, three))]
    assert moved([*NODES, *controllers, *pods]) == {pods[asking].metadata.name: "o"}


def test_critical_counts_where_it_may_be_used() -> None:
    assert moved([*NODES, *db("s0", said=CRITICAL)], policy(placement=Placement())) == {}


@pytest.mark.parametrize(
    ("placement", "said", "expected"),
    [
        pytest.param(Placement(spot=Spot.AVOID), {}, ALL, id="avoid"),
        pytest.param(Placement(tier=Tier.CRITICAL), {}, ALL, id="critical"),
        pytest.param(Placement(spot=Spot.AVOID), {f"{PREFIX}spot": "prefer"}, {}, id="but not this one"),
        pytest.param(Placement(spot=Spot.AVOID), {f"{PREFIX}tier": "batch"}, {}, id="nor batch"),
    ],
)
def test_the_settings_may_say_so_for_all(
    placement: Placement, said: dict[str, str], expected: dict[str, str]
) -> None:
    others = [*db("s0", "s1", said=said), daemon("DaemonSet"), bare({})]
    assert moved([*NODES, *others], policy(placement=placement)) == expected


def level(kind: str, said: Mapping[str, str]) -> list[Any]:
    """Two pods on spot, and one object that avoids it, or does not."""
    scene = [*NODES, build.thing("Namespace", "default", ""), *db("s0", "s1", said={})]
    return [_with(it, {"annotations": said}) if type(it).__name__ == kind else it for it in scene]


def _with(item: Any, metadata: dict[str, Any]) -> Any:
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, **metadata))


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "Namespace"])
@pytest.mark.parametrize("said", [AVOID, CRITICAL], ids=["avoid", "critical"])
def test_said_and_taken_back_at_every_level(kind: str, said: Mapping[str, str]) -> None:
    asked, silent = level(kind, said), level(kind, {})
    state = build.state(*silent, settings=policy())
    for befores, afters, expected in ((silent, asked, 2), (asked, silent, 0)):
        for old, new in zip(befores, afters, strict=True):
            if old is not new:
                state.apply(old, new)
        assert len(plan.make(state, policy(), NOW).moves) == expected


def test_exactly_whatever_the_tolerance() -> None:
    chosen = policy(strategies=Strategies(spot_mix=SpotMix(tolerance=3)))
    assert moved([*NODES, *db("s0", "o1")], chosen) == {"db-00": "o"}


def test_before_mixes() -> None:
    """Room elsewhere for one: it is for the workload that wants no spot at all."""
    mixed = deployment("a-mix", ["s0"], annotations={f"{PREFIX}spot-percentage": "0"}, cpu="1")
    avoids = deployment("z-avoids", ["s0"], annotations=AVOID, cpu="1")
    one = [build.node("s0", spot=True), build.node("o0", spot=False, cpu="1500m")]
    assert moved([*one, *mixed, *avoids]) == {"z-avoids-00": "o"}


def test_nothing_is_moved_that_does_not_fit_and_it_is_told() -> None:
    full = [build.node("s0", spot=True), build.node("o0", spot=False, cpu="50m")]
    found = scenes.made([*full, *db("s0")], policy())
    assert (found.moves, scenes.refused(found)) == ((), {"db-00": {Code.NO_NODE_FITS}})
    assert found.refusals[0].reasons[0].text == "0/1 nodes other than spot fit: 1 insufficient cpu"


def test_without_other_nodes_nobody_is_told_anything() -> None:
    found = scenes.made([*nodes("s0", "s1", spot=True), *db("s0")], policy())
    assert (found.moves, scenes.refused(found)) == ((), {})


def test_a_rollout_is_waited_for() -> None:
    above = [build.owner("Deployment", "db")]
    second = build.thing("ReplicaSet", "db-new", metadata={"ownerReferences": above})
    young = build.pod("young", on="s0", of=build.owner("ReplicaSet", "db-new"), annotations=AVOID)
    assert moved([*NODES, *db("s0", "s1"), second, young]) == {}


@pytest.mark.parametrize(
    ("strategy", "landed", "expected"),
    [
        pytest.param("SpotMix", "s1", {Code.COOLING_DOWN}, id="after a move that ended on spot"),
        pytest.param("SpotInterruption", "s1", set(), id="not after an interruption, for elsewhere is safe"),
    ],
)
def test_rests(strategy: str, landed: str, expected: set[Code]) -> None:
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "uid-default-db"}
    before = build.thing(
        "PodMigration",
        "m",
        spec={"podRef": {"name": "gone"}, "strategy": strategy},
        status={
            "phase": "Completed",
            "finishedAt": values.format_time(NOW - timedelta(minutes=5)),
            "onTarget": False,
            "resolved": {"workload": workload, "sourceNode": "s0", "targetNode": "o0"},
            "replacement": {"name": "db-00", "uid": "x", "node": landed},
        },
    )
    found = scenes.made([*NODES, *db("s1"), before], policy())
    assert {code for codes in scenes.refused(found).values() for code in codes} == expected
    assert len(found.moves) == (0 if expected else 1)


def test_why() -> None:
    found = scenes.made([*NODES, *db("s0", "o0")], policy())
    assert [it.why for it in found.moves] == ["Deployment default/db avoids spot and has 1 of 2 pods on spot"]


@pytest.mark.parametrize("strategy", ["LoadBalancing", "ResourceOptimization", "SpotReclaim"])
def test_nobody_sends_them_back(strategy: str) -> None:
    heavy = deployment("db", ["o0"] * 8, annotations=AVOID, cpu="450m")
    chosen = policy(enabled_strategies=(strategy,))
    assert set(moved([*NODES, *heavy], chosen).values()) <= {"o"}


def test_the_gauges_of_mixes_do_not_count_them() -> None:
    state = build.state(*NODES, *db("s0", "s1"))
    made = plan.make(state, policy(), NOW)
    found = {it.metric: it.value for it in gauges.read(state, made, policy(), NOW) if not it.labels}
    assert (found[Metric.MIX_WORKLOADS], found[Metric.MIX_DRIFT]) == (0, 0)


def test_who_does_not_avoid_spot_is_not_looked_at() -> None:
    """A pass grows with those that may avoid spot and are there, not with all pods."""
    others = [it for number in range(50) for it in deployment(f"web-{number}", ["s0", "s1"], cpu="1m")]
    state = build.state(*NODES, *others, *db("s0", "o0"), settings=policy())
    context = Context(state, policy(), keys.under(), NOW, {})
    assert [it.workload.name for it in avoiding.find(context)] == ["db"]
    assert len(context.decisions) == 1


def test_a_pod_of_another_namespace_does_not_stand_in_for_the_workload_it_claims_to_belong_to() -> None:
    """Which of them is heard of last is a matter of luck; each is asked for its own namespace."""
    forged = build.pod("f", on="s0", namespace="other", of=build.owner("ReplicaSet", "db-rs"), annotations=AVOID)
    chosen = policy()
    state = build.state(*NODES, *db("s0", "s1"), forged, settings=chosen)
    found = avoiding.find(Context(state, chosen, keys.under(chosen.label_prefix), NOW, {}))
    assert [it.workload.key for it in found] == [("default", "uid-default-db"), ("other", "uid-default-db-rs")]

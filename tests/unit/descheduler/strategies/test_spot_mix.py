"""SpotMix: who is off the mix, by how much, which pods go first, and how many really move."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler import gauges, plan
from descheduler.guards import Context
from descheduler.guards.case import Case
from descheduler.reasons import Code
from descheduler.strategies import spot_mix
from descheduler.strategies.spot_mix import Args
from policy import keys, values
from policy.mix import Mix
from policy.settings import Placement, Settings
from policy.settings_moves import Limits
from policy.settings_strategies import SpotMix, Strategies
from policy.values import Spot
from telemetry.metrics import Metric
from tests.effort import many
from tests.unit.descheduler import build, scenes
from tests.unit.descheduler.scenes import NOW, PREFIX, deployment, nodes

SPOT, ON_DEMAND = ("s0", "s1", "s2"), ("o0", "o1", "o2")
NODES = [*nodes(*SPOT, spot=True), *nodes(*ON_DEMAND, spot=False)]
FREE = Limits(per_node=100, per_namespace=100, per_workload=100)


def policy(**more: Any) -> Settings:
    return Settings(enabled_strategies=("SpotMix",), max_reschedule_pods=100, limits=FREE, **more)


def asked(spot: int, on_demand: int, *, share: int | None = 70, least: int | None = None, **more: Any) -> list[Any]:
    """A Deployment with a mix and so many pods on each side."""
    said = {f"{PREFIX}spot-percentage": share, f"{PREFIX}min-on-demand": least}
    annotations = {key: str(value) for key, value in said.items() if value is not None}
    on = [SPOT[i % 3] for i in range(spot)] + [ON_DEMAND[i % 3] for i in range(on_demand)]
    return deployment("web", on, annotations=annotations, cpu="10m", memory="1Mi", **more)


def sides(objects: Sequence[Any], chosen: Settings | None = None) -> dict[str, int]:
    """How many moves go to each side."""
    found = scenes.made([*NODES, *objects], chosen or policy())
    to = [(target or "?")[0] for _, _, target in scenes.moves(found)]
    return {side: to.count(side) for side in set(to)}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(asked(7, 3), {}, id="as asked"),
        pytest.param(asked(9, 1), {"o": 2}, id="too many on spot"),
        pytest.param(asked(4, 6), {"s": 3}, id="too many on on-demand"),
        pytest.param(asked(10, 0, share=None, least=2), {"o": 2}, id="a minimum alone"),
        pytest.param(asked(0, 10, share=None, least=2), {"s": 8}, id="a minimum alone, from on-demand"),
        pytest.param(asked(9, 1, share=90, least=2), {"o": 1}, id="a minimum above the share"),
        pytest.param(asked(5, 5, share=0), {"o": 5}, id="no spot at all"),
        pytest.param(asked(1, 0), {"o": 1}, id="a single one, which is doubled first"),
        pytest.param(asked(3, 0, share=None), {}, id="no mix"),
    ],
)
def test_just_as_many_move_as_are_off(objects: list[Any], expected: dict[str, int]) -> None:
    assert sides(objects) == expected


def level(kind: str, share: int | None) -> list[Any]:
    """Ten pods on spot, and one object that asks for a mix, or does not."""
    asks = {"annotations": {f"{PREFIX}spot-percentage": str(share)}} if share is not None else {}
    scene = [*NODES, build.thing("Namespace", "default", ""), *deployment("web", SPOT * 3, cpu="10m")]
    return [_with(it, asks) if type(it).__name__ == kind else it for it in scene]


def _with(item: Any, metadata: dict[str, Any]) -> Any:
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, **metadata))


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "Namespace"])
def test_asked_for_and_taken_back_at_every_level(kind: str) -> None:
    asked, silent = level(kind, 0), level(kind, None)
    state = build.state(*silent, settings=policy())
    for befores, afters, expected in ((silent, asked, 9), (asked, silent, 0)):
        for old, new in zip(befores, afters, strict=True):
            if old is not new:
                state.apply(old, new)
        assert len(plan.make(state, policy(), NOW).moves) == expected


@given(st.integers(0, 15), st.integers(0, 15), st.integers(0, 100), st.integers(0, 5))
@settings(max_examples=many(30), deadline=None)
def test_the_fewest_moves_for_every_mix(spot: int, on_demand: int, share: int, least: int) -> None:
    over = spot - Mix(share, least).spot(spot + on_demand)
    expected = {"o": over} if over > 0 else {"s": -over} if over < 0 else {}
    assert sides(asked(spot, on_demand, share=share, least=least)) == expected


@pytest.mark.parametrize(
    ("tolerance", "objects", "expected"),
    [
        pytest.param(1, asked(8, 2), {}, id="within it"),
        pytest.param(1, asked(9, 1), {"o": 2}, id="beyond it, all the way"),
        pytest.param(1, asked(6, 4), {}, id="on the other side"),
        pytest.param(1, asked(9, 1, share=100, least=2), {"o": 1}, id="the minimum is kept exactly"),
    ],
)
def test_tolerance(tolerance: int, objects: list[Any], expected: dict[str, int]) -> None:
    chosen = policy(strategies=Strategies(spot_mix=SpotMix(tolerance=tolerance)))
    assert sides(objects, chosen) == expected


def test_those_first_that_belong_on_the_other_side() -> None:
    pods = deployment("web", ["s0"] * 10, annotations={f"{PREFIX}spot-percentage": "70"})
    said = {f"{PREFIX}spot-percentage": "70", f"{PREFIX}capacity": "on-demand"}
    chosen = [build.pod(it.metadata.name, on="s0", of=WEB, annotations=said) for it in pods[-2:]]
    found = scenes.made([*NODES, *pods[:-2], *chosen], policy())
    moved = [name for name, _, _ in scenes.moves(found)]
    assert moved == ["web-08", "web-09", "web-00"]


WEB = build.owner("ReplicaSet", "web-rs")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param([], {"o": 2}, id="nothing under way"),
        pytest.param(["web-00"], {"o": 1}, id="one is on its way"),
        pytest.param(["web-00", "web-01"], {}, id="both are on their way"),
    ],
)
def test_moves_under_way_count(more: list[str], expected: dict[str, int]) -> None:
    moves = [migration(name, "s0", "o0", phase="InProgress") for name in more]
    assert sides([*asked(9, 1), *moves]) == expected


def migration(name: str, source: str, target: str, *, phase: str, strategy: str = "SpotMix", **status: Any) -> Any:
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-default-web"}
    resolved = {"workload": workload, "owner": WEB, "sourceNode": source, "targetNode": target}
    return build.thing(
        "PodMigration",
        f"m-{strategy.lower()}-{name}",
        spec={"podRef": {"name": name}, "targetNode": target, "strategy": strategy},
        status={"phase": phase, "resolved": resolved, **status},
    )


def ended(ago: timedelta, strategy: str, landed: str, *, target: str = "s0") -> Any:
    return migration(
        "gone",
        "o0",
        target,
        phase="Completed",
        strategy=strategy,
        finishedAt=values.format_time(NOW - ago),
        onTarget=landed == target,
        replacement={"name": "web-x", "uid": "x", "node": landed},
    )


MINUTES = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("before", "pods", "expected"),
    [
        pytest.param(ended(5 * MINUTES, "SpotInterruption", "o1"), (4, 6), {}, id="after an interruption"),
        pytest.param(ended(16 * MINUTES, "SpotInterruption", "o1"), (4, 6), {"s": 3}, id="until it has rested"),
        pytest.param(ended(5 * MINUTES, "SpotInterruption", "o1"), (9, 1), {"o": 2}, id="to on-demand at once"),
        pytest.param(ended(5 * MINUTES, "SpotMix", "o1"), (4, 6), {}, id="a move that missed"),
        pytest.param(ended(5 * MINUTES, "SpotMix", "s1"), (4, 6), {"s": 3}, id="beside the target, but on spot"),
        pytest.param(ended(5 * MINUTES, "LoadBalancing", "o1"), (4, 6), {"s": 3}, id="of another strategy"),
        pytest.param(
            migration("w", "s0", "o0", phase="Pending", strategy="SpotInterruption"), (4, 6), {}, id="going on"
        ),
    ],
)
def test_rests(before: Any, pods: tuple[int, int], expected: dict[str, int]) -> None:
    assert sides([*asked(*pods), before]) == expected


def test_who_rests_is_told() -> None:
    found = scenes.made([*NODES, *asked(4, 6), ended(5 * MINUTES, "SpotInterruption", "o1")], policy())
    assert set(scenes.refused(found)) == {"web-04", "web-05", "web-06"}
    assert {code for codes in scenes.refused(found).values() for code in codes} == {Code.COOLING_DOWN}
    assert "rests until 2026-03-01T12:10:00Z" in str(found.refusals[0].reasons[0])


@pytest.mark.parametrize(
    ("spot", "expected"),
    [pytest.param(Spot.PREFER, {"o": 5}, id="prefers"), pytest.param(Spot.REQUIRE, {}, id="requires")],
)
def test_a_mix_of_the_settings_holds_for_all_that_prefer_spot(spot: Spot, expected: dict[str, int]) -> None:
    chosen = policy(placement=Placement(spot=spot, spot_percentage=0))
    assert sides(deployment("web", ["s0"] * 5), chosen) == expected


def test_a_rollout_is_waited_for() -> None:
    above = [build.owner("Deployment", "web")]
    second = build.thing("ReplicaSet", "web-new", metadata={"ownerReferences": above})
    young = build.pod("young", on="s0", of=build.owner("ReplicaSet", "web-new"))
    state = build.state(*NODES, *asked(9, 1), second, young)
    assert list(spot_mix.propose(state, Args(), NOW)) == []


def test_pods_that_wait_may_bring_the_mix_back_themselves() -> None:
    waiting = [build.pod(f"late-{i}", of=WEB, annotations={f"{PREFIX}spot-percentage": "70"}) for i in range(5)]
    state = build.state(*NODES, *asked(9, 1), *waiting)
    assert list(spot_mix.propose(state, Args(), NOW)) == []


@pytest.mark.parametrize("strategy", ["LoadBalancing", "ResourceOptimization", "SpotReclaim"])
@pytest.mark.parametrize(
    "on",
    [
        pytest.param(["o0"] * 10 + ["s0"] * 3, id="on-demand is full"),
        pytest.param(["s0"] * 10 + ["o0"] * 3, id="spot is full"),
    ],
)
def test_no_other_strategy_changes_a_mix(strategy: str, on: list[str]) -> None:
    said = {f"{PREFIX}spot-percentage": "70", f"{PREFIX}capacity": "spot"}
    mixed = deployment("web", on, annotations=said, cpu="390m")
    chosen = Settings(enabled_strategies=(strategy,), max_reschedule_pods=100, limits=FREE)
    moved = scenes.moves(scenes.made([*NODES, *mixed], chosen))
    assert [(source, target) for _, source, target in moved if source[0] != (target or "?")[0]] == []
    assert moved or strategy == "SpotReclaim", "else this shows nothing"


@pytest.mark.parametrize(
    ("node", "full", "expected"),
    [
        pytest.param("s0", (), "s", id="of a spot node to spot"),
        pytest.param("o0", (), "o", id="of an on-demand node to on-demand"),
        pytest.param("o0", ("o1", "o2"), "s", id="to spot where on-demand is full"),
        pytest.param("s0", ("s1", "s2"), "o", id="to on-demand where spot is full"),
    ],
)
def test_a_drain_keeps_the_mix_while_there_is_room(node: str, full: tuple[str, ...], expected: str) -> None:
    drained = build.node(node, spot=node in SPOT, labels={f"{PREFIX}maintenance": "true"}, unschedulable=True)
    others = [it for it in NODES if it.metadata.name != node]
    fillers = [build.pod(f"filler-{name}", on=name, cpu="4") for name in full]
    mixed = deployment("web", [node, "s1", "o1"], annotations={f"{PREFIX}spot-percentage": "50"}, cpu="1")
    chosen = Settings(enabled_strategies=("NodeMaintenance",))
    found = scenes.moves(scenes.made([drained, *others, *mixed, *fillers], chosen))
    assert [(name, (target or "?")[0]) for name, _, target in found] == [("web-00", expected)]


def test_a_pod_whose_node_is_gone_has_the_side_that_was_chosen_for_it() -> None:
    said = {f"{PREFIX}spot-percentage": "50", f"{PREFIX}capacity": "on-demand"}
    pod = build.pod("p", on="vanished", of=WEB, annotations=said)
    context = Context(build.state(pod), Settings(), keys.under(), NOW, {})
    assert Case(pod, context).spot is Spot.AVOID


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(build.owner("DaemonSet", "agent"), id="of a DaemonSet"),
        pytest.param({**build.owner("Node", "s0"), "apiVersion": "v1"}, id="static"),
    ],
)
def test_pods_that_belong_to_their_nodes_are_not_mixed(owner: dict[str, Any]) -> None:
    chosen = policy(placement=Placement(spot_percentage=50))
    daemons = [build.pod(f"agent-{name}", on=name, of=owner) for name in (*SPOT, "o0")]
    state = build.state(*NODES, build.thing("DaemonSet", "agent"), *daemons, settings=chosen)
    made = plan.make(state, chosen, NOW)
    found = {it.metric: it.value for it in gauges.read(state, made, chosen, NOW) if not it.labels}
    assert (found[Metric.MIX_WORKLOADS], found[Metric.MIX_DRIFT]) == (0, 0)
    assert (made.moves, scenes.refused(made)) == ((), {})


def test_gauges() -> None:
    state = build.state(*NODES, *asked(9, 1), *deployment("other", ["s0"]))
    made = plan.make(state, policy(), NOW)
    found = {it.metric: it.value for it in gauges.read(state, made, policy(), NOW) if not it.labels}
    assert (found[Metric.MIX_WORKLOADS], found[Metric.MIX_DRIFT]) == (1, 2)

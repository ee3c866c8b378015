"""SpotInterruption: who leaves, in which order, and where they may go."""

from datetime import timedelta
from typing import Any

import pytest

from descheduler import plan
from descheduler.proposal import Mode, Move, Urgency
from descheduler.reasons import Code
from descheduler.strategies import spot_interruption
from descheduler.strategies.spot_interruption import Args
from policy.settings import Placement, Settings
from policy.settings_moves import Limits
from policy.settings_strategies import SpotInterruption, Strategies
from tests.unit.descheduler import build, scenes
from tests.unit.descheduler.scenes import NOW, PREFIX, deployment
from tests.unit.descheduler.test_interruption import ITN, taint

PLACED = Placement(critical_namespaces=("*",))
CRITICAL, BATCH = ({f"{PREFIX}tier": tier} for tier in ("critical", "batch"))
GOING = {"taints": [taint(ITN)]}


def chosen(**more: Any) -> Settings:
    made = {"enabled_strategies": ("SpotInterruption",), "placement": PLACED, **more}
    return Settings(**made)


def lost(name: str = "lost", **more: Any) -> Any:
    return build.node(name, spot=True, **{**GOING, **more})


def spec(priority: int = 0, grace: int = 30) -> dict[str, Any]:
    return {"priority": priority, "terminationGracePeriodSeconds": grace}


ORDER: dict[str, tuple[list[Any], list[str]]] = {
    "by tier": (
        [
            *deployment("a", ["lost"] * 2, annotations=BATCH),
            *deployment("b", ["lost"] * 2),
            *deployment("c", ["lost"] * 2, annotations=CRITICAL),
        ],
        ["c-00", "c-01", "b-00", "b-01", "a-00", "a-01"],
    ),
    "then by priority": (
        [*deployment("a", ["lost"] * 2), *deployment("b", ["lost"] * 2, spec=spec(priority=10))],
        ["b-00", "b-01", "a-00", "a-01"],
    ),
    "then by deadline": (
        [
            lost("later", taints=[taint(ITN, NOW + timedelta(seconds=30))]),
            *deployment("a", ["later", "lost"]),
        ],
        ["a-01", "a-00"],
    ),
    "then the only replica": (
        [*deployment("a", ["lost"] * 2), *deployment("b", ["lost"])],
        ["b-00", "a-00", "a-01"],
    ),
    "then the long grace period": (
        [*deployment("a", ["lost"] * 2), *deployment("b", ["lost"] * 2, spec=spec(grace=90))],
        ["b-00", "b-01", "a-00", "a-01"],
    ),
}


@pytest.mark.parametrize(("objects", "expected"), ORDER.values(), ids=ORDER.keys())
def test_in_which_order(objects: list[Any], expected: list[str]) -> None:
    state = build.state(lost(), build.node("safe", spot=True), *objects)
    found = list(spot_interruption.propose(state, Args(settings=chosen()), NOW))
    assert [it.pod.metadata.name for it in found] == expected
    assert {it.urgency for it in found} == {Urgency.INTERRUPTION}
    assert all(it.deadline is not None and it.why.startswith("node l") for it in found)


def test_silence_is_said_in_other_words() -> None:
    ready = [build.node(f"r{number}", spot=True) for number in range(3)]
    state = build.state(build.node("quiet", spot=True, ready=False), *ready, *deployment("a", ["quiet"]))
    (found,) = spot_interruption.propose(state, Args(settings=chosen()), NOW)
    assert found.why == "spot node quiet has been NotReady since 00:00:00"
    assert found.deadline is None


SPOT, ON_DEMAND = build.node("spot", spot=True, cpu="1"), build.node("od", spot=False, cpu="1")
TARGETS: dict[str, tuple[list[Any], dict[str, Any], str | None]] = {
    "spot first": ([SPOT, ON_DEMAND], {}, "spot"),
    "on-demand where spot does not fit": ([build.node("spot", spot=True, cpu="0"), ON_DEMAND], {}, "od"),
    "critical to on-demand": ([SPOT, ON_DEMAND], {"annotations": CRITICAL}, "od"),
    "critical to on-demand though it prefers spot": (
        [SPOT, ON_DEMAND],
        {"annotations": {**CRITICAL, f"{PREFIX}spot": "prefer"}},
        "od",
    ),
    "critical to spot where nothing else fits": ([SPOT], {"annotations": CRITICAL}, "spot"),
    "required spot": ([ON_DEMAND], {"annotations": {f"{PREFIX}spot": "require"}}, None),
    "nowhere, and leaves all the same": ([build.node("od", spot=False, cpu="0")], {}, None),
    "not to another that is lost": ([lost("spot", cpu="1")], {}, None),
    "not to one that is silent": ([build.node("spot", spot=True, ready=False)], {}, None),
}


@pytest.mark.parametrize(("nodes", "pod", "expected"), TARGETS.values(), ids=TARGETS.keys())
def test_where_to(nodes: list[Any], pod: dict[str, Any], expected: str | None) -> None:
    found = scenes.made([lost(), *nodes, *deployment("a", ["lost", "lost"], cpu="500m", **pod)], chosen())
    assert {it.target for it in found.moves} == {expected}
    assert len(found.moves) == 2
    assert found.refusals == ()


def test_a_lost_zone_is_planned_together() -> None:
    """More pods than fit: as many targets as there is room, each slot once, and the rest leaves without one."""
    nodes = [*(lost(f"lost-{number}") for number in range(3)), SPOT, ON_DEMAND]
    pods = [it for number in range(3) for it in deployment(f"d{number}", [f"lost-{number}"] * 4, cpu="250m")]
    found = scenes.made([*nodes, *pods], chosen(max_reschedule_pods=1, limits=Limits(per_node=1)))
    targets = [it.target for it in found.moves]
    assert {name: targets.count(name) for name in ("spot", "od", None)} == {"spot": 4, "od": 4, None: 4}


def budget(**status: int) -> Any:
    counted = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, **status}
    body = {"selector": {"matchLabels": {"app": "a"}}, "maxUnavailable": 1}
    return build.thing("PodDisruptionBudget", "a", spec=body, status=counted)


FULL = {"currentHealthy": 2, "desiredHealthy": 2}
MODES: dict[str, tuple[list[str], list[Any], dict[str, Any], dict[str, Any], list[Mode]]] = {
    "several": (["lost", "spot"], [], {}, {}, [Mode.EVICT]),
    "the only one, with time": (["lost"], [], {}, {}, [Mode.SURGE]),
    "the only one, with too little": (["lost"], [], {"spec": spec(grace=116)}, {}, [Mode.EVICT]),
    "a slow start leaves too little": (
        ["lost"],
        [],
        {"status": {"startTime": "2025-12-31T23:58:30Z"}},
        {},
        [Mode.EVICT],
    ),
    "a budget that will allow it": (["lost", "lost"], [budget()], {}, {}, [Mode.EVICT] * 2),
    "a budget that never will": (["lost", "spot"], [budget(**FULL)], {}, {}, [Mode.SURGE]),
    "one at a time then": (["lost", "lost"], [budget(**FULL)], {}, {}, [Mode.SURGE]),
}


@pytest.mark.parametrize(("on", "more", "pod", "settings", "expected"), MODES.values(), ids=MODES.keys())
def test_how(
    on: list[str], more: list[Any], pod: dict[str, Any], settings: dict[str, Any], expected: list[Mode]
) -> None:
    found = scenes.made([lost(), SPOT, ON_DEMAND, *deployment("a", on, **pod), *more], chosen(**settings))
    assert [it.mode for it in found.moves] == expected
    waiting = len([it for it in on if it == "lost"]) - len(expected)
    assert list(scenes.refused(found).values()) == [{Code.PDB_NO_BUDGET}] * waiting


CROWDED: dict[str, tuple[list[Any], dict[str, Any], list[Mode], dict[str, set[Code]]]] = {
    "is doubled": ([SPOT], {}, [Mode.SURGE], {}),
    "with too little time": ([SPOT], {"spec": spec(grace=116)}, [], {"a-00": {Code.PDB_MULTIPLE}}),
    "not Ready": ([SPOT], {"ready": False}, [], {"a-00": {Code.PDB_MULTIPLE}}),
    "without a place for its double": ([], {}, [], {"a-00": {Code.PDB_MULTIPLE}}),
}
"""Other nodes, the pod; how it leaves, or why it stays."""


@pytest.mark.parametrize(("nodes", "pod", "modes", "refused"), CROWDED.values(), ids=CROWDED.keys())
def test_nobody_is_evicted_whom_several_budgets_select(
    nodes: list[Any], pod: dict[str, Any], modes: list[Mode], refused: dict[str, set[Code]]
) -> None:
    """An eviction would be refused, and planned again in every pass."""
    budgets = [build.budget(name, allowed=1, labels={"app": "a"}) for name in ("one", "two")]
    full = build.node("full", cpu="100m")
    found = scenes.made([lost(), full, *nodes, *deployment("a", ["lost"], cpu="200m", **pod), *budgets], chosen())
    assert [it.mode for it in found.moves] == modes
    assert scenes.refused(found) == refused


def filled(name: str, *, spot: bool, priority: int, **more: Any) -> list[Any]:
    """A node that one pod fills."""
    pods = deployment(f"on-{name}", [name], cpu="900m", spec=spec(priority), **more)
    return [build.node(name, spot=spot, cpu="1"), *pods]


PREEMPTION: dict[str, tuple[list[Any], dict[str, Any], tuple[str | None, list[str]]]] = {
    "batch on on-demand": (
        [*filled("od", spot=False, priority=-100)],
        {"annotations": CRITICAL},
        ("od", ["on-od-00"]),
    ),
    "on-demand rather than spot": (
        [*filled("od", spot=False, priority=0), *filled("spot", spot=True, priority=-100)],
        {"annotations": CRITICAL},
        ("od", ["on-od-00"]),
    ),
    "spot where there is nothing else": (
        [*filled("spot", spot=True, priority=-100)],
        {"annotations": CRITICAL},
        ("spot", ["on-spot-00"]),
    ),
    "the least important": (
        [*filled("od1", spot=False, priority=5), *filled("od2", spot=False, priority=-5)],
        {"annotations": CRITICAL},
        ("od2", ["on-od2-00"]),
    ),
    "room that is free first": (
        [*filled("od", spot=False, priority=-100), SPOT],
        {"annotations": CRITICAL},
        ("spot", []),
    ),
    "not the equally important": ([*filled("od", spot=False, priority=1000)], {"annotations": CRITICAL}, (None, [])),
    "not for a standard pod": ([*filled("od", spot=False, priority=-100)], {}, (None, [])),
    "not for one that never pushes": (
        [*filled("od", spot=False, priority=-100)],
        {"annotations": CRITICAL, "spec": {"preemptionPolicy": "Never"}},
        (None, []),
    ),
}


@pytest.mark.parametrize(("objects", "pod", "expected"), PREEMPTION.values(), ids=PREEMPTION.keys())
def test_pre_emption(objects: list[Any], pod: dict[str, Any], expected: tuple[str | None, list[str]]) -> None:
    made = {"spec": {"priority": 1000, **pod.pop("spec", {})}, **pod}
    found = scenes.made([lost(), *objects, *deployment("a", ["lost"], cpu="500m", **made)], chosen())
    (move,) = found.moves
    assert (move.target, [it.metadata.name for it in move.victims]) == expected
    assert all(f"default/{name}" in move.why for name in expected[1]), "the plan names them"


def test_pre_emption_can_be_switched_off() -> None:
    settings = chosen(strategies=Strategies(spot_interruption=SpotInterruption(preempt=False)))
    objects = [lost(), *filled("od", spot=False, priority=-100)]
    pods = deployment("a", ["lost"], cpu="500m", annotations=CRITICAL, spec=spec(1000))
    assert [it.target for it in scenes.made([*objects, *pods], settings).moves] == [None]


def test_two_critical_pods_do_not_count_on_the_same_victim() -> None:
    objects = [lost(), *filled("od1", spot=False, priority=-100), *filled("od2", spot=False, priority=-100)]
    pods = deployment("a", ["lost"] * 3, cpu="600m", annotations=CRITICAL, spec=spec(1000))
    found = scenes.made([*objects, *pods], chosen())
    assert [(it.target, len(it.victims)) for it in found.moves] == [("od1", 1), ("od2", 1), (None, 0)]


def test_the_fewest_victims() -> None:
    pods = [it for number in range(4) for it in deployment(f"b{number}", ["od"], cpu="250m", spec=spec(-100))]
    critical = deployment("a", ["lost"], cpu="500m", annotations=CRITICAL, spec=spec(1000))
    (move,) = scenes.made([lost(), build.node("od", spot=False, cpu="1"), *pods, *critical], chosen()).moves
    assert (move.target, len(move.victims)) == ("od", 2)


def test_moves_that_are_being_written_down_are_counted_with() -> None:
    objects = [lost(), SPOT, *deployment("a", ["lost", "lost"], cpu="600m")]
    state = build.state(*objects)
    first = plan.make(state, chosen(), NOW).moves
    assert [(it.pod.metadata.name, it.target) for it in first] == [("a-00", "spot"), ("a-01", None)]
    begun = (_begun(state.pods["default", "a-01"], "spot"),)
    again = plan.make(state, chosen(), NOW, begun=begun).moves
    assert [(it.pod.metadata.name, it.target) for it in again] == [("a-00", None)], "the room is taken"


def _begun(pod: Any, target: str) -> Move:
    return Move(pod, "lost", target, "SpotInterruption", 200, Urgency.INTERRUPTION, "")

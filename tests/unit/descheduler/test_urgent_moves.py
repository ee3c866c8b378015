"""Moves off a node that is being lost: fewer steps, no waiting for hints or budgets of ours, turns at others'."""

from datetime import timedelta
from typing import Any

import pytest

from cluster import errors
from cluster.objects import PodMigration
from cluster.resources import PDBS
from descheduler import publish
from descheduler.migration import machine, permits, temporary_budget
from descheduler.migration.actions import Action, Evict, MarkPod, Wait, Write
from descheduler.migration.judge import Judge
from descheduler.proposal import Move, Urgency
from descheduler.requests import Verb
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment
from tests.unit.descheduler.test_interruption import ITN, REBALANCE, ago, noted, taint, text
from tests.unit.descheduler.test_upkeep import Cluster

KEYS = keys.under()
SETTINGS = Settings()


def lost(*taints: str, **more: Any) -> Any:
    return build.node("a", spot=True, taints=[taint(key) for key in taints or (ITN,)], **more)


def move(pod: str = "x-00", *, step: str = "", strategy: str = "SpotInterruption", **status: Any) -> PodMigration:
    """A move of ours off node a; marked pods carry its name."""
    resolved = {
        "owner": build.owner("ReplicaSet", "x-rs"),
        "workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "uid-default-x"},
        "podUid": f"uid-default-{pod}",
        "sourceNode": "a",
        "targetNode": "b",
        "mode": "Evict",
    }
    intent = {"action": step, "at": text(NOW), **status.pop("intent", {})}
    begun = {"phase": "InProgress", "step": step, "startedAt": text(NOW), "resolved": resolved, "intent": intent}
    spec = {"podRef": {"name": pod, "uid": f"uid-default-{pod}"}, "strategy": strategy, "mode": "Evict"}
    made: PodMigration = build.thing(
        "PodMigration",
        f"m-{pod}",
        metadata={"finalizers": [keys.FINALIZER]},
        spec=spec,
        status={**(begun if step else {}), **status},
    )
    return made


def marked(count: int, strategy: str = "SpotInterruption") -> list[Any]:
    """A Deployment on node a whose pods carry the marks of their moves."""
    above, below, *pods = deployment("x", ["a"] * count)
    labels = {KEYS.migration_status: "in-progress", KEYS.migration_reason: strategy}
    made = [
        build.pod(
            pod.metadata.name,
            on="a",
            of=build.owner("ReplicaSet", "x-rs"),
            labels={"app": "x", KEYS.migration_id: f"m-{pod.metadata.name}", **labels},
            annotations={KEYS.migration_time: text(NOW)},
        )
        for pod in pods
    ]
    return [above, below, *made]


def decided(state: ClusterState, migration: PodMigration, *, after: float = 0) -> Action:
    judge = Judge(lambda: SETTINGS, lambda: "", holder="one")
    now = NOW + timedelta(seconds=after)
    return machine.step(migration, judge(migration, state, now), now)


def test_it_is_created_with_its_finalizer() -> None:
    found = deployment("x", ["a", "a"])
    planned = Move(found[2], "a", "b", "SpotInterruption", 200, Urgency.INTERRUPTION, "lost", NOW)
    assert publish.body(planned, NOW)["metadata"]["finalizers"] == [keys.FINALIZER]


def test_three_requests_from_there_to_the_eviction() -> None:
    """What it is about to do, the marks, and the eviction; no wait for the hint to be seen."""
    made = move()
    state = build.state(lost(), build.node("b"), *deployment("x", ["a", "a"]), made)
    first = decided(state, made)
    assert isinstance(first, Write)
    assert (first.status["phase"], first.status["step"]) == ("InProgress", "Evict")
    assert first.status["intent"]["uid"] == "uid-default-x-00"
    announced = move(step="Evict")
    state.apply(made, announced)
    second = decided(state, announced)
    assert isinstance(second, MarkPod)
    marks = build.state(lost(), build.node("b"), *marked(2), announced)
    assert isinstance(decided(marks, announced), Evict)


def budget(allowed: int) -> Any:
    counted = {"disruptionsAllowed": allowed, "currentHealthy": 4, "desiredHealthy": 3, "expectedPods": 4}
    body = {"selector": {"matchLabels": {"app": "x"}}, "maxUnavailable": 1}
    return build.thing("PodDisruptionBudget", "x", spec=body, status=counted)


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        pytest.param(0, [], id="nobody"),
        pytest.param(1, ["m-x-00"], id="the first"),
        pytest.param(3, ["m-x-00", "m-x-01", "m-x-02"], id="three"),
    ],
)
def test_as_many_try_as_the_budget_allows(allowed: int, expected: list[str]) -> None:
    moves = [move(f"x-0{number}", step="Evict") for number in range(4)]
    state = build.state(lost(), build.node("b"), *marked(4), budget(allowed), *moves)
    assert sorted(name for _, name in permits.find(state, NOW)) == expected
    acts = {it.metadata.name: decided(state, it) for it in moves}
    assert sorted(name for name, action in acts.items() if isinstance(action, Evict)) == expected
    told = [it.status["message"] for it in acts.values() if isinstance(it, Write)]
    assert told == ["PDB_NO_BUDGET: its disruption budget allows no eviction now"] * (4 - len(expected))


def test_what_was_told_is_not_told_again() -> None:
    made = move(step="Evict", intent={"blocked": True}, message="PDB_NO_BUDGET: no")
    state = build.state(lost(), build.node("b"), *marked(2), budget(0), made)
    assert isinstance(decided(state, made), Wait)


def crowd(*names: str, **more: Any) -> list[Any]:
    return [build.budget(name, allowed=1, labels={"app": "x"}, **more) for name in names]


@pytest.mark.parametrize("intent", [{}, {"blocked": True}], ids=["at first", "after it waited for its turn"])
def test_a_second_budget_ends_the_move(intent: dict[str, Any]) -> None:
    """Nobody can evict such a pod, so no turn ever comes; the marks go, and whoever plans looks at it anew."""
    made = move(step="Evict", intent=intent)
    objects = [lost(), build.node("b"), *marked(2), *crowd("one", "two")]
    gives_up = decided(build.state(*objects, made), made)
    assert isinstance(gives_up, Write)
    assert gives_up.status["intent"]["ending"] == "Failed"
    assert gives_up.status["message"].startswith("PDB_MULTIPLE: ")
    given_up = move(step="Evict", intent={"ending": "Failed"}, message=gives_up.status["message"])
    assert isinstance(decided(build.state(*objects, given_up), given_up), MarkPod)
    bare = [lost(), build.node("b"), *deployment("x", ["a", "a"]), *crowd("one", "two")]
    ends = decided(build.state(*bare, given_up), given_up)
    assert isinstance(ends, Write)
    assert (ends.status["phase"], ends.status["message"]) == ("Failed", gives_up.status["message"])


def test_a_second_budget_that_is_ours_goes_and_is_waited_for() -> None:
    made = move(step="Evict")
    ours = {"labels": {temporary_budget.MANAGED_BY: temporary_budget.OURS}}
    objects = [*crowd("one"), *crowd("x-rescheduler-pdb", metadata=ours)]
    waits = decided(build.state(lost(), build.node("b"), *marked(2), *objects, made), made)
    assert isinstance(waits, Write)
    assert waits.status["message"].startswith("PDB_NO_BUDGET: ")


@pytest.mark.parametrize(
    ("intent", "first"),
    [
        pytest.param({}, "m-x-00", id="nothing went wrong"),
        pytest.param({"retryAt": text(ago(-9)), "blocked": True}, "m-x-00", id="a budget said no"),
        pytest.param({"retryAt": text(ago(-9))}, "m-x-01", id="it rests for another reason"),
        pytest.param({"retryAt": text(ago(1))}, "m-x-00", id="it has rested"),
    ],
)
def test_who_rests_gives_its_turn_away(intent: dict[str, Any], first: str) -> None:
    moves = [move("x-00", step="Evict", intent=intent), move("x-01", step="Evict")]
    state = build.state(lost(), *marked(2), budget(1), *moves)
    assert [name for _, name in permits.find(state, NOW)] == [first]


def test_without_a_budget_all_go_at_once_and_none_of_ours_is_made() -> None:
    moves = [move(f"x-0{number}", step="Evict") for number in range(4)]
    state = build.state(lost(), build.node("b"), *marked(4), *moves)
    assert all(isinstance(decided(state, it), Evict) for it in moves)
    assert list(temporary_budget.requests(state, SETTINGS)) == []


def test_one_of_ours_goes_when_a_node_of_the_workload_is_lost() -> None:
    meta = {"labels": {temporary_budget.MANAGED_BY: temporary_budget.OURS}}
    ours = build.thing("PodDisruptionBudget", "x-rescheduler-pdb", metadata=meta)
    state = build.state(lost(), *marked(2), ours, move(step="Evict"))
    assert [it.verb for it in temporary_budget.requests(state, SETTINGS)] == ["delete"]


OURS = build.budget(
    "x-rescheduler-pdb",
    allowed=1,
    labels={"app": "x"},
    metadata={
        "labels": {temporary_budget.MANAGED_BY: temporary_budget.OURS},
        "ownerReferences": [
            {"kind": "PodMigration", "name": f"m-x-0{n}", "uid": f"uid-default-m-x-0{n}"} for n in (0, 1)
        ],
    },
)
DRAINED = {KEYS.maintenance: "true"}
LOSSES: dict[str, tuple[Any, list[Any], list[Verb]]] = {
    "a drain has one": (build.node("a", labels=DRAINED), [], [Verb.CREATE]),
    "and keeps it": (build.node("a", labels=DRAINED), [OURS], []),
    "lost meanwhile": (lost(labels=DRAINED), [OURS], [Verb.DELETE]),
    "lost before there was one": (lost(labels=DRAINED), [], []),
}


@pytest.mark.parametrize(("node", "budgets", "asked"), LOSSES.values(), ids=LOSSES.keys())
def test_a_node_that_is_lost_while_it_is_drained(node: Any, budgets: list[Any], asked: list[Verb]) -> None:
    """The moves are those of the drain, and none of ours may make them wait for each other."""
    moves = [move(f"x-0{n}", step="Evict", strategy="NodeMaintenance") for n in range(2)]
    cluster = Cluster()
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}}
    above, (_, *below) = build.thing("Deployment", "x", spec=spec), marked(2, "NodeMaintenance")
    cluster.state = build.state(node, build.node("b"), above, *below, *budgets, *moves)
    cluster.error = errors.NotFound("nobody answers here", status=404)
    cluster.turn()
    cluster.pool.work()
    assert [it.verb for it in cluster.sent if it.resource is PDBS] == asked


def test_the_last_ready_one_is_evicted_all_the_same() -> None:
    """Others have gone since it was planned."""
    made = move(step="Evict")
    state = build.state(lost(), build.node("b"), *marked(1), made)
    assert isinstance(decided(state, made), Evict)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(build.node("a", spot=True), Wait, id="a budget of ours is waited for"),
        pytest.param(lost(), Evict, id="but not when the node goes"),
    ],
)
def test_who_asked_does_not_matter_when_the_node_goes(node: Any, expected: type[Action]) -> None:
    made = move(step="Evict", strategy="LoadBalancing")
    above, below, *pods = marked(2, "LoadBalancing")
    selecting = build.thing("Deployment", "x", spec={"replicas": 2, "selector": {"matchLabels": {"app": "x"}}})
    assert above.metadata.key == selecting.metadata.key
    state = build.state(node, build.node("b", spot=True), selecting, below, *pods, made)
    assert isinstance(decided(state, made), expected)


WITHDRAWN: dict[str, tuple[Any, bool]] = {
    "the signal is there": (lost(), False),
    "a recommendation is taken back": (build.node("a", spot=True, annotations=noted(f"taint {REBALANCE}", 9)), True),
    "a notice stands": (build.node("a", spot=True, annotations=noted(f"taint {ITN}", 9, 111)), False),
    "a notice has run out": (build.node("a", spot=True, annotations=noted(f"taint {ITN}", 130, -10)), True),
    "a silent node speaks": (build.node("a", spot=True, annotations=noted("NotReady", 90)), True),
}


@pytest.mark.parametrize(("node", "expected"), WITHDRAWN.values(), ids=WITHDRAWN.keys())
def test_it_is_called_off_when_the_node_stays(node: Any, expected: bool) -> None:
    made = move(step="Evict")
    action = decided(build.state(node, build.node("b"), *marked(2), made), made)
    assert isinstance(action, MarkPod if expected else Evict), "the marks go first"


def test_a_node_that_is_gone_is_no_reason_to_stop() -> None:
    made = move(step="Evict")
    action = decided(build.state(build.node("b"), *marked(2), made), made)
    assert isinstance(action, Evict)

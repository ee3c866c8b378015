"""Budgets, limits and what is on its way: nothing is promised twice."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from descheduler.ledger import Ledger
from descheduler.limits import by_replicas
from descheduler.picture import Picture
from descheduler.proposal import Mode
from descheduler.reasons import Code
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build, scenes
from tests.unit.descheduler.scenes import PREFIX, deployment, nodes

FREE = Settings(limits=Limits(per_node=100, per_namespace=100, per_workload=100), max_reschedule_pods=100)
MAINTENANCE = {f"{PREFIX}maintenance": "true"}


def piled(count: int = 6, **pod: Any) -> list[Any]:
    return [*nodes("n0", "n1", "n2", cpu="8"), *deployment("x", ["n0"] * count, cpu="1", **pod)]


def draining(count: int = 3, **pod: Any) -> list[Any]:
    return [
        build.node("n0", cpu="8", labels=MAINTENANCE),
        *nodes("n1", "n2", cpu="8"),
        *deployment("x", ["n0"] * count, **pod),
    ]


AUTOSCALED = build.thing(
    "HorizontalPodAutoscaler", "auto", spec={"scaleTargetRef": {"kind": "Deployment", "name": "x"}, "maxReplicas": 9}
)
"""Keeps the workload from being doubled where a budget has no room."""


def codes(found: Any) -> set[Code]:
    return {code for them in scenes.refused(found).values() for code in them}


# ---- budgets


@pytest.mark.parametrize(
    ("budgets", "moves", "code"),
    [
        pytest.param([{"allowed": 2}], 2, Code.PDB_NO_BUDGET, id="as many as allowed"),
        pytest.param([{"allowed": 0}], 0, Code.PDB_NO_BUDGET, id="none left"),
        pytest.param(
            [{"allowed": 9, "metadata": {"generation": 2}}], 0, Code.PDB_NO_BUDGET, id="not counted again yet"
        ),
        pytest.param([{"allowed": 9}, {"allowed": 9}], 0, Code.PDB_MULTIPLE, id="two budgets"),
    ],
)
@pytest.mark.parametrize("objects", [pytest.param(piled(), id="balancing"), pytest.param(draining(), id="drain")])
def test_budgets_hold_for_every_move(
    objects: list[Any], budgets: list[dict[str, Any]], moves: int, code: Code
) -> None:
    made = [build.budget(f"pdb{number}", labels={"app": "x"}, **it) for number, it in enumerate(budgets)]
    found = scenes.made([*objects, *made, AUTOSCALED], FREE)
    assert len(found.moves) == moves
    assert codes(found) == {code}
    assert all("pdb0" in reason.text for refusal in found.refusals for reason in refusal.reasons)


@pytest.mark.parametrize("allowed", [0, 2])
def test_where_a_budget_has_no_room_one_pod_at_a_time_is_doubled(allowed: int) -> None:
    budget = build.budget("pdb", allowed=allowed, labels={"app": "x"})
    found = scenes.made([*draining(5), budget], FREE)
    assert [it.mode for it in found.moves] == [Mode.EVICT] * allowed + [Mode.SURGE]
    assert codes(found) == {Code.PDB_NO_BUDGET}
    assert all("in this plan is doubling" in it.text for no in found.refusals for it in no.reasons)


def test_a_surge_under_way_takes_no_budget_and_is_the_only_one() -> None:
    budget = build.budget("pdb", allowed=1, labels={"app": "x"})
    flying = migration("x-00", target="n1", mode="Surge")
    found = scenes.made([*draining(4), budget, flying], FREE)
    assert [(it.pod.metadata.name, it.mode) for it in found.moves] == [("x-01", Mode.EVICT)]
    reasons = [it.text for no in found.refusals for it in no.reasons if it.code is Code.PDB_NO_BUDGET]
    assert len(reasons) == 2
    assert all("PodMigration" in it for it in reasons)


@pytest.mark.parametrize(
    ("policy", "status", "moves"),
    [
        pytest.param("AlwaysAllow", {}, 3, id="always allow"),
        pytest.param("IfHealthyBudget", {"currentHealthy": 2, "desiredHealthy": 2}, 3, id="enough are healthy"),
        pytest.param("IfHealthyBudget", {"currentHealthy": 1, "desiredHealthy": 2}, 0, id="too few are healthy"),
        pytest.param("IfHealthyBudget", {"currentHealthy": 0, "desiredHealthy": 0}, 0, id="nobody counted"),
    ],
)
def test_a_pod_that_is_broken_already(policy: str, status: dict[str, int], moves: int) -> None:
    budget = build.budget(
        "pdb", allowed=0, labels={"app": "x"}, spec={"unhealthyPodEvictionPolicy": policy}, status=status
    )
    assert len(scenes.made([*draining(ready=False), budget], FREE).moves) == moves


# ---- limits


@pytest.mark.parametrize(
    ("settings", "moves", "code"),
    [
        pytest.param({"max_reschedule_pods": 1}, 1, Code.LIMIT_TOTAL, id="total"),
        pytest.param({"limits": Limits(per_node=2, per_workload=9)}, 2, Code.LIMIT_NODE, id="node"),
        pytest.param({"limits": Limits(per_namespace=1, per_workload=9)}, 1, Code.LIMIT_NAMESPACE, id="namespace"),
        pytest.param({"limits": Limits(per_workload=1)}, 1, Code.LIMIT_WORKLOAD, id="workload"),
        pytest.param({}, 2, Code.LIMIT_WORKLOAD, id="workload by replicas"),
    ],
)
def test_limits_hold_back_balancing(settings: dict[str, Any], moves: int, code: Code) -> None:
    found = scenes.made(piled(), Settings(**settings))
    assert len(found.moves) == moves
    assert code in codes(found)
    assert (found.summary.limited is not None) is (code is Code.LIMIT_TOTAL)


def test_limits_do_not_hold_back_a_drain() -> None:
    tight = Settings(max_reschedule_pods=1, limits=Limits(per_node=1, per_namespace=1, per_workload=1))
    assert len(scenes.made(draining(5), tight).moves) == 5


@pytest.mark.parametrize(("replicas", "allowed"), [(1, 1), (3, 1), (4, 2), (10, 2), (11, 1), (20, 2), (100, 10)])
def test_replicas_decide_where_no_limit_is_set(replicas: int, allowed: int) -> None:
    assert by_replicas(replicas) == allowed


def test_a_plan_moves_one_pod_of_a_stateful_set() -> None:
    owner = build.owner("StatefulSet", "db")
    status = {"replicas": 4, "readyReplicas": 4, "currentRevision": "a", "updateRevision": "a"}
    objects = [
        build.node("n0", labels=MAINTENANCE),
        *nodes("n1", "n2"),
        build.thing("StatefulSet", "db", spec={"replicas": 4}, status=status),
        *(build.pod(f"db-{number}", on="n0", of=owner) for number in range(4)),
    ]
    found = scenes.made(objects, FREE)
    assert len(found.moves) == 1
    assert codes(found) == {Code.STATEFULSET_BUSY}


# ---- what is on its way


def migration(pod: str, *, target: str, phase: str = "InProgress", mode: str = "Evict", **status: Any) -> Any:
    resolved = {
        "mode": mode,
        "sourceNode": "n0",
        "targetNode": target,
        "owner": build.owner("ReplicaSet", "x-rs"),
        "workload": {"kind": "Deployment", "name": "x", "uid": "uid-default-x"},
    }
    return build.thing(
        "PodMigration",
        f"m-{pod}",
        spec={"podRef": {"name": pod}, "strategy": "LoadBalancing"},
        status={"phase": phase, "resolved": resolved, **status},
    )


def test_moves_in_flight_count_against_limits_and_budgets() -> None:
    flying = [migration("x-00", target="n1"), migration("x-01", target="n2")]
    assert scenes.made([*piled(), *flying]).moves == ()
    budget = build.budget("pdb", allowed=3, labels={"app": "x"})
    assert len(scenes.made([*piled(), budget, AUTOSCALED], FREE).moves) == 3
    assert len(scenes.made([*piled(), budget, AUTOSCALED, *flying], FREE).moves) == 1
    done = migration("x-00", target="n1", phase="Completed")
    assert len(scenes.made([*piled(), budget, AUTOSCALED, done], FREE).moves) == 3


@pytest.mark.parametrize(
    ("targets", "used"),
    [
        pytest.param(["n1"], {"n0": 3000, "n1": 1000, "n2": 0}, id="one"),
        pytest.param(["n1", "n1", "n1"], {"n0": 3000, "n1": 1000, "n2": 0}, id="thrice to one node"),
        pytest.param(["n2", "n1"], {"n0": 3000, "n1": 0, "n2": 1000}, id="the older decides"),
    ],
)
def test_of_several_migrations_of_one_pod_the_oldest_is_booked(targets: list[str], used: dict[str, int]) -> None:
    """The names say the opposite of the ages."""
    flying = [
        msgspec.structs.replace(it, metadata=msgspec.structs.replace(it.metadata, name=f"m{9 - number}", **created))
        for number, it in enumerate(migration("x-00", target=target) for target in targets)
        for created in [{"creation_timestamp": datetime(2026, 1, 1, number, tzinfo=UTC)}]
    ]
    ledger = Ledger(build.state(*piled(4), *reversed(flying)), Settings())
    assert {name: ledger.picture.used(name).cpu for name in used} == used
    assert ledger.picture.used("n0").pods == 3
    [moving] = [it for it in ledger.state.pods.values() if it.metadata.name == "x-00"]
    assert ledger.limits.moving(moving) == 1


def test_a_picture_counts_what_is_done_twice_once() -> None:
    state = build.state(*piled(2))
    pod, picture = state.pods["default", "x-00"], Picture(state)

    def seen() -> list[tuple[int, int]]:
        return [(picture.used(name).cpu, picture.used(name).pods) for name in ("n0", "n1")]

    for _ in range(2):
        picture.take(pod)
        picture.put(pod, "n1")
        assert seen() == [(1000, 1), (1000, 1)]
    picture.unput(pod, "n1")
    picture.untake(pod)
    assert seen() == [(1000, 1), (1000, 1)], "the first still holds"
    picture.unput(pod, "n1")
    picture.untake(pod)
    assert seen() == [(2000, 2), (0, 0)]


@pytest.mark.parametrize("gone", [pytest.param(False, id="not evicted yet"), pytest.param(True, id="evicted")])
def test_the_target_of_a_move_in_flight_is_taken(gone: bool) -> None:
    """Room for one on n1, and it is promised."""
    pods = deployment("x", ["n0"] * 4, cpu="1")
    flying = migration("x-00", target="n1")
    world = [build.node("n0", cpu="8"), build.node("n1", cpu="1"), *pods, flying]
    settings = Settings(limits=FREE.limits, imbalance_threshold=1.0, enabled_strategies=("NodeMaintenance",))
    world[0] = build.node("n0", cpu="8", labels=MAINTENANCE)
    assert scenes.moves(scenes.made([it for it in world if it is not flying], settings)) == [("x-00", "n0", "n1")]
    found = scenes.made([it for it in world if not (gone and it is pods[2])], settings)
    assert found.moves == ()
    assert Code.NO_NODE_FITS in codes(found)


@pytest.mark.parametrize(
    ("pending", "moves"),
    [
        pytest.param({}, 0, id="a place is kept for it"),
        pytest.param({"status": {"nominatedNodeName": "n1"}}, 0, id="nominated"),
        pytest.param({"spec": {"schedulingGates": [{"name": "later"}]}}, 1, id="held back by a gate"),
        pytest.param({"spec": {"nodeSelector": {"no": "where"}}}, 1, id="fits nowhere"),
        pytest.param({"metadata": {"deletionTimestamp": build.LONG_AGO}}, 1, id="being deleted"),
    ],
)
def test_pods_that_wait_come_first(pending: dict[str, Any], moves: int) -> None:
    waiting = build.pod("w", of=build.owner("ReplicaSet", "other"), cpu="1500m", **pending)
    objects = [
        build.node("n0", cpu="4"),
        build.node("n1", cpu="2"),
        *deployment("x", ["n0"] * 3, cpu="900m"),
        waiting,
    ]
    assert len(scenes.made(objects, Settings(imbalance_threshold=10.0)).moves) == moves


@pytest.mark.parametrize(
    ("target", "cpu", "expected"),
    [
        pytest.param("", "1", "n1", id="no hint"),
        pytest.param("n0", "1", "n0", id="to the target of its move"),
        pytest.param("n0", "3", "n1", id="unless that has no room any more"),
        pytest.param("gone", "1", "n1", id="unless that is gone"),
    ],
)
def test_a_replacement_without_a_node_is_expected_at_its_target(target: str, cpu: str, expected: str) -> None:
    waiting = build.pod("w", cpu=cpu, annotations={f"{scenes.PREFIX}migration-target": target} if target else {})
    state = build.state(build.node("n0", cpu="2"), build.node("n1", cpu="8"), waiting)
    arrived = Ledger(state, Settings()).picture.arrived
    assert [name for name, pods in arrived.items() if waiting.metadata.key in pods] == [expected]

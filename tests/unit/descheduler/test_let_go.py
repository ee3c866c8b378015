"""A PodMigration that is deleted and kept only by somebody else's finalizer is over, wherever one looks."""

from collections.abc import Callable
from typing import Any

import pytest

from cluster.objects import PodMigration
from descheduler import drain, guards, scaling
from descheduler.guards import Context
from descheduler.ledger import Ledger
from descheduler.migration import leftovers, machine, temporary_budget
from descheduler.moving import is_open
from descheduler.proposal import Urgency
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment

KEYS = keys.under()
SETTINGS = Settings(limits=Limits(per_workload=1))
DELETED = build.LONG_AGO
THEIRS = "example.com/audit"
MARKS = {KEYS.migration_id: "m", KEYS.migration_status: "in-progress"}
DRAINED = {KEYS.maintenance: "true"}


def move(*finalizers: str, deleted: bool, mode: str = "Evict", **status: Any) -> PodMigration:
    """Of pod x-00 on node a, taken up."""
    resolved = {
        "workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "uid-default-x"},
        "owner": build.owner("ReplicaSet", "x-rs"),
        "podUid": "uid-default-x-00",
        "sourceNode": "a",
        "mode": mode,
    }
    made: PodMigration = build.thing(
        "PodMigration",
        "m",
        metadata={"finalizers": list(finalizers), **({"deletionTimestamp": DELETED} if deleted else {})},
        spec={"podRef": {"name": "x-00"}, "mode": mode, "strategy": "NodeMaintenance"},
        status={"phase": "InProgress", "step": "Mark", "resolved": resolved, **status},
    )
    return made


OVER: dict[str, tuple[PodMigration, bool, bool]] = {
    # whether it is under way, whether it is over
    "under way": (move(keys.FINALIZER, deleted=False), True, False),
    "not ours yet": (move(deleted=False, phase="", step=""), True, False),
    "not ours yet, and theirs": (move(THEIRS, deleted=False, phase="", step=""), True, False),
    "deleted, to be called off": (move(keys.FINALIZER, THEIRS, deleted=True), True, False),
    "deleted, kept by them": (move(THEIRS, deleted=True), False, True),
    "deleted before it was ours": (move(THEIRS, deleted=True, phase="", step=""), False, True),
    "ended": (move(deleted=False, phase="Completed"), False, True),
    "ended, clearing away": (move(keys.FINALIZER, deleted=True, phase="Cancelled"), False, False),
    "ended, kept by them": (move(THEIRS, deleted=True, phase="Cancelled"), False, True),
}


@pytest.mark.parametrize(("migration", "under_way", "over"), OVER.values(), ids=OVER.keys())
def test_what_is_over(migration: PodMigration, under_way: bool, over: bool) -> None:
    assert (is_open(migration), machine.is_over(migration)) == (under_way, over)


def context(state: ClusterState) -> Context:
    return Context(state, SETTINGS, KEYS, NOW, {})


def emptied(state: ClusterState) -> object:
    """Of two nodes that are to be emptied, those that are now; one at a time."""
    found = context(state)
    return [it.name for it in drain.chosen(drain.asked(found), found)]


READERS: dict[str, Callable[[ClusterState], object]] = {
    "limits": lambda state: Ledger(state, SETTINGS).limiting(state.pods["default", "x-01"], Urgency.VOLUNTARY),
    "guards": lambda state: guards.reasons(state.pods["default", "x-00"], context(state), Urgency.MAINTENANCE),
    "Surges": scaling.open_surges,
    "temporary budgets": lambda state: len(list(temporary_budget.requests(state, SETTINGS))),
    "drains": emptied,
}


def cluster(*moves: PodMigration) -> ClusterState:
    """Node a has nothing left to be emptied of but what is being moved, and b waits for its turn."""
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}}
    _, below, *pods = deployment("x", ["c", "b"])
    web = build.thing("Deployment", "x", spec=spec)
    nodes = [build.node("a", labels=DRAINED), build.node("b", labels=DRAINED), build.node("c")]
    return build.state(*nodes, web, below, *pods, *moves)


@pytest.mark.parametrize("mode", ["Evict", "Surge"])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_nobody_counts_it(read: Callable[[ClusterState], object], mode: str) -> None:
    gone = read(cluster(move(THEIRS, deleted=True, mode=mode)))
    assert gone == read(cluster())


def test_each_of_them_counts_one_that_is_under_way() -> None:
    evicting, doubling = (move(keys.FINALIZER, deleted=False, mode=it) for it in ("Evict", "Surge"))
    for name, read in READERS.items():
        assert read(cluster(doubling if name == "Surges" else evicting)) != read(cluster()), name


@pytest.mark.parametrize(("finalizer", "swept"), [(THEIRS, True), (keys.FINALIZER, False)])
def test_its_marks_are_swept(finalizer: str, swept: bool) -> None:
    web = build.thing("Deployment", "x", metadata={"labels": {KEYS.moving: "m"}})
    pod = build.pod("x-00", on="a", labels=MARKS)
    found = leftovers.find(build.state(web, pod, move(finalizer, deleted=True)), KEYS)
    assert [it.name for _, it in found] == (["x-00", "x"] if swept else [])

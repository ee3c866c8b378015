"""How long a replacement is waited for, and what a move says when none comes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from descheduler.migration import machine, world
from descheduler.migration.actions import Action, Wait, Write
from descheduler.migration.endings import text_of
from descheduler.proposal import Urgency
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
GRACE = timedelta(minutes=30)
TIMEOUT = Settings().migrations.ready_timeout
KEYS = keys.under()
SECOND = timedelta(seconds=1)
STUCK = "db-0 is still Terminating 0:05:00 after its grace period, and nothing replaces it before it is gone"


def move(owner: Any, workload: Any = None, **intent: Any) -> Any:
    """Off node a; the eviction was announced and seen at the start."""
    resolved = {"owner": owner, "workload": workload or owner, "podUid": "old", "sourceNode": "a", "mode": "Evict"}
    noted = {"at": text_of(START), "evictedAt": text_of(START), **intent}
    return build.thing(
        "PodMigration",
        "m",
        metadata={"finalizers": [machine.FINALIZER]},
        spec={"podRef": {"name": "db-0"}, "strategy": "NodeMaintenance", "targetNode": "b"},
        status={"phase": "InProgress", "step": "AwaitReplacement", "resolved": resolved, "intent": noted},
    )


def decided(migration: Any, *objects: Any, after: timedelta) -> Action:
    state = build.state(build.node("a"), build.node("b"), migration, *objects)
    by = world.Viewpoint(KEYS, Settings(), "one", START + after)
    return machine.step(migration, world.look(migration, state, by, urgency=Urgency.MAINTENANCE), by.now)


# ---- a StatefulSet makes no other pod of that name before the old one is gone

OWNER = build.owner("StatefulSet", "db")
SET = build.thing("StatefulSet", "db", spec={"replicas": 3, "selector": {"matchLabels": {"app": "db"}}})


def stopping(**more: Any) -> Any:
    meta = {"uid": "old", "deletionTimestamp": text_of(START + GRACE)}
    return build.pod("db-0", on="a", of=OWNER, metadata=meta, labels={KEYS.migration_status: "in-progress"}, **more)


def fresh(*, created: timedelta, ready: bool) -> Any:
    stamp = (START + created).strftime("%Y-%m-%dT%H:%M:%SZ")
    return build.pod("db-0", on="b", of=OWNER, ready=ready, metadata={"uid": "new", "creationTimestamp": stamp})


WAITS: dict[str, tuple[Any, timedelta]] = {
    "it stops": (stopping(), TIMEOUT + SECOND),
    "its grace is over": (stopping(), GRACE + SECOND),
    "it has ended and is kept": (stopping(status={"phase": "Succeeded"}), GRACE + TIMEOUT - SECOND),
}


@pytest.mark.parametrize(("pod", "after"), WAITS.values(), ids=WAITS.keys())
def test_a_pod_that_stops_is_no_missing_replacement(pod: Any, after: timedelta) -> None:
    waits = decided(move(OWNER), SET, pod, after=after)
    assert isinstance(waits, Wait)
    assert waits.until == START + GRACE + TIMEOUT


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_one_that_never_goes_ends_the_move_and_is_named(phase: str) -> None:
    """Its node is dead, or somebody's finalizer keeps it."""
    ends = decided(move(OWNER), SET, stopping(status={"phase": phase}), after=GRACE + TIMEOUT)
    assert isinstance(ends, Write)
    assert (ends.status["phase"], ends.status["message"], ends.late) == ("Failed", STUCK, True)


def test_the_moment_it_is_gone_is_written_down_and_counts_from_then_on() -> None:
    gone = timedelta(minutes=20)
    notes = decided(move(OWNER), SET, after=gone)
    assert isinstance(notes, Write)
    assert notes.status["intent"] == {
        "at": text_of(START),
        "evictedAt": text_of(START),
        "goneAt": text_of(START + gone),
    }
    noted = move(OWNER, goneAt=text_of(START + gone))
    waits = decided(noted, SET, after=gone + TIMEOUT - SECOND)
    assert isinstance(waits, Wait)
    assert waits.until == START + gone + TIMEOUT
    ends = decided(noted, SET, after=gone + TIMEOUT)
    assert isinstance(ends, Write)
    assert ends.status["message"] == "no replacement is on a node after 0:05:00"


def test_a_replacement_that_came_late_gets_the_whole_time_to_be_ready() -> None:
    gone = timedelta(minutes=20)
    claimed = move(OWNER, goneAt=text_of(START + gone))
    there = fresh(created=gone, ready=False)
    claims = decided(claimed, SET, there, after=gone + SECOND)
    assert isinstance(claims, Write)
    assert claims.status["replacement"]["uid"] == "new"
    held = build.decode(build.merged(_plain(claimed), {"status": claims.status}))
    waits = decided(held, SET, there, after=gone + 2 * SECOND)
    assert isinstance(waits, Wait)
    assert waits.until == START + gone + TIMEOUT


def test_a_replica_set_replaces_a_pod_that_still_stops() -> None:
    owner = build.owner("ReplicaSet", "db")
    pod = build.pod("db-0", on="a", of=owner, metadata={"uid": "old", "deletionTimestamp": text_of(START + GRACE)})
    ends = decided(move(owner), build.thing("ReplicaSet", "db", spec={"replicas": 2}), pod, after=TIMEOUT)
    assert isinstance(ends, Write)
    assert ends.status["message"] == "no replacement is on a node after 0:05:00"


# ---- workloads that are not watched, of which nobody can tell whether they are still there

FOREIGN: dict[str, tuple[Any, Any]] = {
    "ReplicationController": ({"apiVersion": "v1", "kind": "ReplicationController"}, None),
    "CloneSet": ({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}, None),
    "a DaemonSet of others": ({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "DaemonSet"}, None),
    "Rollout": (build.owner("ReplicaSet", "web"), {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}),
}
"""Direct owner, and what stands above it."""


def foreign(owner: Any, above: Any) -> Any:
    named = {"name": "web", "uid": "uid-default-web", "controller": True}
    return move({**named, **owner}, above and {"name": "top", "uid": "uid-top", **above})


@pytest.mark.parametrize(("owner", "above"), FOREIGN.values(), ids=FOREIGN.keys())
def test_a_workload_that_is_not_watched_was_not_deleted(owner: Any, above: Any) -> None:
    made = foreign(owner, above)
    waits = decided(made, after=11 * SECOND)
    assert isinstance(waits, Wait)
    assert waits.until == START + TIMEOUT
    ends = decided(made, after=TIMEOUT)
    assert isinstance(ends, Write)
    assert ends.status["phase"] == "Failed", "and the workload rests"
    assert ends.status["message"] == "no replacement is on a node after 0:05:00"


@pytest.mark.parametrize(("owner", "above"), FOREIGN.values(), ids=FOREIGN.keys())
def test_the_replacement_is_the_new_pod_of_the_same_owner(owner: Any, above: Any) -> None:
    made = foreign(owner, above)
    of = msgspec.to_builtins(made.status.resolved.owner)
    stamp = {"creationTimestamp": "2026-06-01T12:00:02Z"}
    claims = decided(made, build.pod("web-new", on="b", of={**owner, **of}, metadata=stamp), after=3 * SECOND)
    assert isinstance(claims, Write)
    assert claims.status["replacement"]["name"] == "web-new"


def test_after_a_rollout_of_argo_it_is_one_of_its_next_replica_set() -> None:
    made = foreign(*FOREIGN["Rollout"])
    above = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "top", "uid": "uid-top"}
    below = build.thing("ReplicaSet", "next", metadata={"ownerReferences": [{**above, "controller": True}]})
    stamp = {"creationTimestamp": "2026-06-01T12:00:02Z"}
    pod = build.pod("next-1", on="b", of=build.owner("ReplicaSet", "next"), metadata=stamp)
    claims = decided(made, below, pod, after=3 * SECOND)
    assert isinstance(claims, Write)
    assert claims.status["replacement"]["name"] == "next-1"


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
def test_one_that_is_watched_and_gone_was_deleted(kind: str) -> None:
    ends = decided(move(build.owner(kind, "db"), goneAt=text_of(START)), after=11 * SECOND)
    assert isinstance(ends, Write)
    assert ends.status["phase"] == "Cancelled"
    assert ends.status["message"] == "the workload was deleted; nothing replaces the pod"


def _plain(item: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "PodMigration", **msgspec.to_builtins(item)}
    return made

"""A pod of another namespace that names somebody's workload as its owner: that workload hears nothing of its move.

Of a kind that nobody knows, for then the garbage collector leaves the pod alone.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster.objects import Pod, PodMigration
from descheduler import guards, memory, misread, resting, scaling
from descheduler.guards import Context
from descheduler.ledger import Ledger
from descheduler.migration import leftovers, machine, replacement
from descheduler.migration.actions import Action, Evict, MarkPod, MarkWorkload, Wait, Write
from descheduler.migration.judge import Judge
from descheduler.proposal import Urgency
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment
from tests.unit.descheduler.test_interruption import text

KEYS = keys.under()
SETTINGS = Settings(limits=Limits(per_workload=1))
FAKE = {"apiVersion": "example.com/v1", "kind": "Fake", "name": "db", "controller": True}
ENABLED = {KEYS.rescheduling: "enabled"}


def victim(kind: str = "StatefulSet", **metadata: Any) -> list[Any]:
    """`default/db` with two pods."""
    if kind == "Deployment":
        return [build.node("a"), build.node("b"), *deployment("db", ["a", "a"])]
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "db"}}}
    made = build.thing(kind, "db", metadata=metadata, spec=spec)
    pods = [build.pod(f"db-{n}", on="a", of=build.owner(kind, "db"), labels={"app": "db"}) for n in range(2)]
    return [build.node("a"), build.node("b"), made, *pods]


def forged(uid: str = "uid-default-db", **more: Any) -> Pod:
    of = {**FAKE, "uid": uid}
    return build.pod("mine", on="a", namespace="tenant", of=of, labels=ENABLED, **more)


def move(*, mode: str = "Evict", strategy: str = "", **status: Any) -> PodMigration:
    """Of the forged pod, taken up if it has a phase."""
    noted = {
        "workload": {"apiVersion": "example.com/v1", "kind": "Fake", "name": "db", "uid": "uid-default-db"},
        "owner": {"apiVersion": "example.com/v1", "kind": "Fake", "name": "db", "uid": "uid-default-db"},
        "podUid": "uid-tenant-mine",
        "sourceNode": "a",
        "targetNode": "b",
        "mode": mode,
    }
    made: PodMigration = build.thing(
        "PodMigration",
        "m",
        "tenant",
        metadata={"finalizers": [keys.FINALIZER], "creationTimestamp": text(NOW)},
        spec={"podRef": {"name": "mine"}, "mode": mode, "strategy": strategy},
        status={**status, "resolved": noted} if status else {},
    )
    return made


def context(state: ClusterState) -> Context:
    rests = memory.cooldowns(state.migrations.values(), SETTINGS, NOW)
    return Context(state, SETTINGS, KEYS, NOW, rests)


UNDER_WAY = {"phase": "InProgress", "step": "Mark", "startedAt": text(NOW)}
FAILED = {"phase": "Failed", "step": "Evict", "finishedAt": text(NOW - timedelta(minutes=1))}


def said(state: ClusterState) -> object:
    """What holds a pod of the victim, whoever asks."""
    db = next(pod for pod in state.by_namespace["default"].values())
    found, ledger = context(state), Ledger(state, SETTINGS)
    workload = state.workload(db)
    assert workload is not None
    subject = memory.subject_of(db, workload)
    return (
        *(guards.reasons(db, found, urgency) for urgency in Urgency),
        *(ledger.limiting(db, urgency) for urgency in Urgency),
        scaling.hindrances(scaling.Subject(db, workload, state, {}), scaling.open_surges(state)),
        scaling.hindrances(scaling.Subject(db, workload, state, {}), ledger.surging),
        resting.interrupted(state, timedelta(hours=1), NOW).get(subject),
    )


MOVES: dict[str, PodMigration] = {
    "asked for": move(),
    "under way": move(**UNDER_WAY),
    "doubling": move(mode="Surge", **UNDER_WAY),
    "doubling, asked for": move(mode="Surge"),
    "failed": move(**FAILED),
    "after an interruption": move(strategy="SpotInterruption", **FAILED),
    "the pod is gone": move(phase="InProgress", step="AwaitReplacement"),
}


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
@pytest.mark.parametrize("name", MOVES)
def test_the_victim_is_held_by_nothing_more(kind: str, name: str) -> None:
    pods = [] if name == "the pod is gone" else [forged()]
    state, alone = build.state(*victim(kind), *pods, MOVES[name]), build.state(*victim(kind))
    assert said(state) == said(alone)


def test_a_plan_that_moves_the_forged_pod_may_move_the_victims() -> None:
    mine = build.pod("mine", on="a", namespace="tenant", of={**FAKE, "kind": "StatefulSet", "uid": "uid-default-db"})
    state = build.state(*victim(), mine)
    ledger = Ledger(state, SETTINGS)
    ledger.picture.take(mine)
    ledger.book(mine, "b")
    assert ledger.limiting(state.pods["default", "db-0"], Urgency.VOLUNTARY) == ()


def test_its_records_do_not_push_out_those_of_the_victim() -> None:
    assert memory.subject(move(**FAILED)) == "tenant/uid-default-db"


def test_a_mark_on_the_victim_goes_though_the_forged_move_is_under_way() -> None:
    state = build.state(*victim(labels={KEYS.moving: "m"}), forged(), move(**UNDER_WAY))
    assert [it for _, it in leftovers.find(state, KEYS)] == [
        MarkWorkload("StatefulSet", "db", "uid-default-db", None)
    ]


def test_a_mistake_on_both_is_told_where_it_stands() -> None:
    wrong = {KEYS.spot: "perhaps"}
    pods = [forged(annotations=wrong), build.pod("db-9", of=build.owner("StatefulSet", "db"), annotations=wrong)]
    found = misread.find(context(build.state(*victim(), *pods)))
    assert {(it.subject.kind, it.subject.name) for it in found} == {("Pod", "mine"), ("Pod", "db-9")}


def test_a_replacement_that_somebody_else_claims_is_still_one() -> None:
    """Whoever may write a status in one namespace says nothing about pods of another."""
    claim = move(**FAILED, replacement={"name": "x", "uid": "uid-default-db-00", "node": "b"})
    assert replacement_of(claim) == replacement_of() == "db-00"


def replacement_of(*others: PodMigration) -> str | None:
    owner = build.owner("ReplicaSet", "db-rs")
    resolved = {"owner": owner, "podUid": "gone", "sourceNode": "a", "mode": "Evict"}
    mine: PodMigration = build.thing(
        "PodMigration",
        "own",
        spec={"podRef": {"name": "old"}},
        status={
            "phase": "InProgress",
            "step": "AwaitReplacement",
            "resolved": resolved,
            "intent": {"action": "Evict", "at": build.LONG_AGO},
        },
    )
    state = build.state(*(build.pod("db-00", on="b", of=owner),), mine, *others)
    found = replacement.find(mine, state)
    return found.pod.metadata.name if found is not None and found.pod is not None else None


STEPS: dict[str, Callable[[Action], bool]] = {
    "Guard": lambda it: isinstance(it, Write),
    "Mark": lambda it: isinstance(it, MarkPod | Wait | Write),
    "Evict": lambda it: isinstance(it, MarkPod | Wait | Write | Evict),
}


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
@pytest.mark.parametrize("step", STEPS)
def test_the_forged_move_touches_its_own_pod_only(kind: str, step: str) -> None:
    migration = move(**{**UNDER_WAY, "step": step})
    marked = {KEYS.migration_id: "m", KEYS.migration_status: "in-progress"}
    for labels in ({}, marked):
        mine = forged(metadata={"labels": {**ENABLED, **labels}})
        state = build.state(*victim(kind), mine, migration)
        action = machine.step(migration, judged(migration, state, NOW), NOW)
        assert STEPS[step](action), action


def judged(migration: PodMigration, state: ClusterState, now: datetime) -> Any:
    seen = Judge(lambda: SETTINGS, lambda: "", holder="one")(migration, state, now)
    assert seen.workload is None
    return seen


def test_the_forged_move_ends_when_nothing_replaces_its_pod() -> None:
    evicted = {"action": "AwaitReplacement", "at": text(NOW), "evictedAt": text(NOW)}
    migration = move(phase="InProgress", step="AwaitReplacement", startedAt=text(NOW), intent=evicted)
    state, later = build.state(*victim(), migration), NOW + timedelta(hours=2)
    action = machine.step(migration, judged(migration, state, later), later)
    assert isinstance(action, Write)
    assert action.status["phase"] == "Failed"

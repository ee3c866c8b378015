"""How a pod is moved, for every kind of owner, budget and urgency."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from descheduler.budgets import Budgets
from descheduler.guards.case import Case, Context
from descheduler.migration import modes, temporary_budget
from descheduler.migration.modes import Question
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Code
from policy import keys
from policy.settings import Settings
from policy.settings_moves import Migrations, SingleReplicaFallback
from tests.unit.descheduler import build, scenes

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
EVICTS = Settings(migrations=Migrations(single_replica_fallback=SingleReplicaFallback.EVICT))


def owned(kind: str, count: int, **spec: Any) -> list[Any]:
    """A controller of this kind and its pods."""
    pods = [build.pod(f"x-{it:02}", on="a", of=build.owner(kind, "x"), labels={"app": "x"}) for it in range(count)]
    known = [build.thing(kind, "x", spec={"replicas": count, **spec})] if kind in build.TYPES else []
    return [*known, *pods]


def deployed(count: int, **pod: Any) -> list[Any]:
    return scenes.deployment("x", ["a"] * count, **pod)


def altered(change: dict[str, Any], count: int = 1, **pod: Any) -> list[Any]:
    """A Deployment that says something else as well."""
    (_, *rest), status = deployed(count, **pod), {"replicas": count, "updatedReplicas": count}
    base = {"spec": {"replicas": count}, "status": status}
    return [build.thing("Deployment", "x", **build.merged(base, change)), *rest]


AUTOSCALER = build.thing(
    "HorizontalPodAutoscaler", "auto", spec={"scaleTargetRef": {"kind": "Deployment", "name": "x"}}
)
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
CONTROLLED = {"metadata": {"ownerReferences": [build.owner("Rollout", "above")]}}


def asked(objects: list[Any], settings: Settings | None = None, **question: Any) -> Mode | list[Code]:
    """For the first of the pods."""
    found = answer(objects, settings, **question)
    return found if isinstance(found, Mode) else [it.code for it in found]


def answer(objects: list[Any], settings: Settings | None = None, **question: Any) -> Any:
    chosen = settings or Settings()
    state = build.state(build.node("a"), *objects, settings=chosen)
    pod = state.pods["default", min(name for _, name in state.pods)]
    case = Case(pod, Context(state, chosen, keys.under(), NOW, {}))
    made = Question(question.pop("urgency", Urgency.VOLUNTARY), Budgets(state).reasons(pod))
    return modes.choose(case, replace(made, **question))


NO_BUDGET = build.budget("pdb", allowed=0, labels={"app": "x"})
SINGLE, BLOCKED = [Code.SINGLE_REPLICA], [Code.PDB_NO_BUDGET]
TABLE: dict[str, tuple[list[Any], Any, Any, Any, Any]] = {
    # owner: objects, voluntary without a budget, the same where the budget has no room, maintenance, interruption
    "Deployment of 1": (deployed(1), Mode.SURGE, Mode.SURGE, Mode.SURGE, Mode.SURGE),
    "Deployment of 2": (deployed(2), Mode.EVICT, Mode.SURGE, Mode.EVICT, Mode.EVICT),
    "ReplicaSet of 1": (owned("ReplicaSet", 1), Mode.SURGE, Mode.SURGE, Mode.SURGE, Mode.SURGE),
    "ReplicaSet of 2": (owned("ReplicaSet", 2), Mode.EVICT, Mode.SURGE, Mode.EVICT, Mode.EVICT),
    "autoscaled, 1": ([*deployed(1), AUTOSCALER], SINGLE, SINGLE + BLOCKED, SINGLE, Mode.EVICT),
    "autoscaled, 2": ([*deployed(2), AUTOSCALER], Mode.EVICT, BLOCKED, Mode.EVICT, Mode.EVICT),
    "StatefulSet of 1": (owned("StatefulSet", 1), SINGLE, SINGLE + BLOCKED, SINGLE, Mode.EVICT),
    "StatefulSet of 2": (owned("StatefulSet", 2), Mode.EVICT, BLOCKED, Mode.EVICT, Mode.EVICT),
    "Job": (owned("Job", 1), Mode.EVICT, BLOCKED, Mode.EVICT, Mode.EVICT),
    "unknown, 1": (owned("Rollout", 1), SINGLE, SINGLE + BLOCKED, SINGLE, Mode.EVICT),
    "unknown, 2": (owned("Rollout", 2), Mode.EVICT, BLOCKED, Mode.EVICT, Mode.EVICT),
    "none": ([build.pod("x", on="a", labels={"app": "x"})], Mode.RECREATE, BLOCKED, Mode.RECREATE, Mode.RECREATE),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
def test_the_table(row: tuple[list[Any], Any, Any, Any, Any]) -> None:
    objects, voluntary, blocked, maintenance, interruption = row
    assert asked(objects) == voluntary
    assert asked([*objects, NO_BUDGET]) == blocked
    assert asked(objects, urgency=Urgency.MAINTENANCE) == maintenance
    assert asked(objects, urgency=Urgency.INTERRUPTION) == interruption


ALONE = build.pod("x", on="a", labels={"app": "x"})


@pytest.mark.parametrize("urgency", list(Urgency))
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"desiredHealthy": 1, "currentHealthy": 1}, Mode.RECREATE, id="one more is one too many"),
        pytest.param({"desiredHealthy": 2, "currentHealthy": 1}, BLOCKED, id="it is short of pods"),
        pytest.param({"desiredHealthy": 0, "currentHealthy": 0}, BLOCKED, id="its controller cannot count it"),
        pytest.param(
            {"desiredHealthy": 1, "currentHealthy": 1, "observedGeneration": 0}, BLOCKED, id="it was counted before"
        ),
    ],
)
def test_a_copy_frees_the_budget_of_its_original(urgency: Urgency, status: dict[str, int], expected: Any) -> None:
    """The usual budget of a pod that is alone is `minAvailable: 1`, and it never allows anything."""
    budget = build.budget("pdb", allowed=0, labels={"app": "x"}, status=status)
    taken = urgency is Urgency.INTERRUPTION  # the node takes the pod, and the copy is what is left
    assert asked([ALONE, budget], urgency=urgency) == (Mode.RECREATE if taken else expected)


def test_of_two_budgets_no_copy_frees_any() -> None:
    counted = {"desiredHealthy": 1, "currentHealthy": 1}
    both = [build.budget(name, allowed=0, labels={"app": "x"}, status=counted) for name in ("one", "two")]
    assert asked([ALONE, *both], urgency=Urgency.MAINTENANCE) == [Code.PDB_MULTIPLE]
    assert asked([ALONE, *both], urgency=Urgency.INTERRUPTION) is Mode.RECREATE, "the node takes the pod"


def test_our_own_budget_is_waited_for() -> None:
    """Doubling a workload because another move of it is under way would only add a replica for nothing."""
    mark = {"labels": {"app.kubernetes.io/managed-by": "spotshift"}, "generation": 1}
    ours = build.budget("x-rescheduler-pdb", allowed=0, labels={"app": "x"}, metadata=mark)
    assert asked([*deployed(2), ours]) == BLOCKED
    assert asked([*deployed(2), ours], urgency=Urgency.MAINTENANCE) == BLOCKED


FALLBACKS = {name: TABLE[name][0] for name in ("autoscaled, 1", "StatefulSet of 1", "unknown, 1")}


@pytest.mark.parametrize("objects", FALLBACKS.values(), ids=FALLBACKS.keys())
def test_the_fallback_evicts_where_a_budget_lets_it(objects: list[Any]) -> None:
    assert asked(objects, EVICTS) is Mode.EVICT
    assert asked([*objects, NO_BUDGET], EVICTS) == BLOCKED


HINDRANCES: dict[str, tuple[list[Any], str]] = {
    "strategy": (altered({"spec": {"strategy": {"type": "Recreate"}}}), "its strategy is Recreate"),
    "paused": (altered({"spec": {"paused": True}}), "its rollout is paused"),
    "rollout": (
        [
            *deployed(1),
            build.thing("ReplicaSet", "x-new", metadata={"ownerReferences": [build.owner("Deployment", "x")]}),
            build.pod("x-99", on="a", of=build.owner("ReplicaSet", "x-new"), ready=False),
        ],
        "a rollout is under way",
    ),
    "not taken up": (altered({"metadata": {"generation": 2}}), "has not taken up its last change"),
    "controlled": (altered(CONTROLLED), "Rollout above controls it"),
    "autoscaler": ([*deployed(1), AUTOSCALER], "HorizontalPodAutoscaler auto decides"),
    "claim": (deployed(1, spec=CLAIM), "claim data can be used on one node only"),
    "disk": (
        deployed(1, spec={"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]}),
        "a disk that it mounts can be used on one node only",
    ),
    "quota": (
        altered({"status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded"}]}}),
        "no further pod can be made: exceeded",
    ),
    "sibling": (
        [*deployed(1), build.pod("x-99", on="a", of=build.owner("ReplicaSet", "x-rs"), ready=False)],
        "its sibling x-99 is not Ready",
    ),
    "StatefulSet": (owned("StatefulSet", 1), "a StatefulSet gives every pod a name of its own"),
}


@pytest.mark.parametrize(("objects", "why"), HINDRANCES.values(), ids=HINDRANCES.keys())
def test_why_it_cannot_be_doubled_and_what_to_do(objects: list[Any], why: str) -> None:
    (reason,) = answer(objects)
    assert reason.code is Code.SINGLE_REPLICA
    assert why in reason.text
    assert "singleReplicaFallback: evict" in reason.text
    (reason,) = answer(objects, asked="Surge")
    assert reason.code is Code.MODE_UNSUITED
    assert why in reason.text


SHARED: dict[str, list[Any]] = {
    "shared claim": [
        build.thing("PersistentVolumeClaim", "data", spec={"accessModes": ["ReadWriteMany"]}),
        *deployed(1, spec=CLAIM),
    ],
    "claim of its own": deployed(1, spec={"volumes": [{"name": "scratch", "ephemeral": {}}]}),
    "disk that is read": deployed(
        1, spec={"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x", "readOnly": True}}]}
    ),
}


@pytest.mark.parametrize("objects", SHARED.values(), ids=SHARED.keys())
def test_volumes_that_two_can_use_do_not_matter(objects: list[Any]) -> None:
    assert asked(objects) is Mode.SURGE


def test_a_budget_of_our_own_is_waited_for() -> None:
    """It says that another pod of the workload is moving."""
    ours = {"labels": {temporary_budget.MANAGED_BY: temporary_budget.OURS}}
    budget = build.budget("x-rescheduler-pdb", allowed=0, labels={"app": "x"}, metadata=ours)
    assert asked([*deployed(2), budget]) == BLOCKED


def test_one_that_is_not_ready_serves_nobody() -> None:
    broken = build.pod("x-00", on="a", of=build.owner("StatefulSet", "x"), ready=False)
    assert asked([*owned("StatefulSet", 0), broken]) is Mode.EVICT


def test_a_workload_is_doubled_once_at_a_time() -> None:
    (reason,) = answer(deployed(1), surging={("default", "uid-default-x"): "PodMigration m"})
    assert "PodMigration m is doubling Deployment default/x already" in reason.text


ASKED: dict[str, tuple[list[Any], str, Any]] = {
    "evict the only one": (deployed(1), "Evict", Mode.EVICT),
    "double one of two": (deployed(2), "Surge", Mode.SURGE),
    "copy what has a controller": (deployed(1), "Recreate", [Code.MODE_UNSUITED]),
    "evict what has none": ([build.pod("x", on="a")], "Evict", [Code.MODE_UNSUITED]),
    "copy what has none": ([build.pod("x", on="a")], "Recreate", Mode.RECREATE),
}


@pytest.mark.parametrize(("objects", "mode", "expected"), ASKED.values(), ids=ASKED.keys())
def test_what_somebody_asked_for(objects: list[Any], mode: str, expected: Any) -> None:
    assert asked(objects, asked=mode) == expected


PROVING: dict[str, tuple[list[Any], Any]] = {
    "Deployment, time to prove itself": (altered({"spec": {"minReadySeconds": 50}}), Mode.SURGE),
    "Deployment, not any more": (altered({"spec": {"minReadySeconds": 90}}), Mode.EVICT),
    "ReplicaSet, time to prove itself": (owned("ReplicaSet", 1, minReadySeconds=50), Mode.SURGE),
    "ReplicaSet, not any more": (owned("ReplicaSet", 1, minReadySeconds=90), Mode.EVICT),
}


@pytest.mark.parametrize(("objects", "expected"), PROVING.values(), ids=PROVING.keys())
def test_a_new_pod_has_to_be_available_before_the_deadline(objects: list[Any], expected: Mode) -> None:
    """Ready is not enough: the original goes when the other one has been so for `minReadySeconds`."""
    deadline = NOW + timedelta(seconds=120)
    assert asked(objects, urgency=Urgency.INTERRUPTION, deadline=deadline) is expected


ODD: dict[str, tuple[list[Any], Any]] = {
    "more to prove than time has": (altered({"spec": {"minReadySeconds": 2**63 - 1}}), Mode.EVICT),
    "more to stop than time has": (deployed(1, spec={"terminationGracePeriodSeconds": 2**63 - 1}), Mode.EVICT),
    "Ready before its start": (deployed(1, status={"startTime": "9999-12-31T00:00:00Z"}), Mode.SURGE),
}


@pytest.mark.parametrize(("objects", "expected"), ODD.values(), ids=ODD.keys())
def test_any_time_is_reckoned_with(objects: list[Any], expected: Mode) -> None:
    deadline = NOW + timedelta(seconds=120)
    assert asked(objects, urgency=Urgency.INTERRUPTION, deadline=deadline) is expected


def test_a_pod_of_another_namespace_is_no_sibling_whatever_it_says() -> None:
    """Who creates a pod writes its owner reference: the UID of another's must not make their only pod look safe."""
    forged = build.pod("z", on="a", namespace="tenant", of=build.owner("ReplicaSet", "x-rs"))
    assert asked([*deployed(1), forged]) is Mode.SURGE
    unready = build.pod("z", on="a", namespace="tenant", of=build.owner("ReplicaSet", "x-rs"), ready=False)
    assert asked([*deployed(1), unready]) is Mode.SURGE

"""A migration reaches its end whatever is lost on the way, and leaves nothing behind."""

import itertools
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import Pod, PodMigration
from descheduler import overdue
from descheduler.migration import failing, machine, outcomes, world
from descheduler.migration.actions import Action, Adopt, Done, Evict, MarkPod, MarkWorkload, Release, Wait, Write
from descheduler.proposal import Urgency
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
KEYS = keys.under()


def apart(item: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(item)
    return plain


@dataclass
class Cluster:
    """A state whose controller and scheduler answer at once, and which carries out what the machine asks for."""

    state: ClusterState
    now: datetime = START
    numbers: Any = field(default_factory=itertools.count)
    effects: list[str] = field(default_factory=list)
    land_on: str = "b"
    ready: bool = True

    def swap(self, old: Any, new: Any) -> None:
        self.state.apply(old, new)

    def migration(self) -> PodMigration | None:
        return next(iter(self.state.migrations.values()), None)

    def decide(self, **more: Any) -> Action:
        found = self.migration()
        assert found is not None
        by = world.Viewpoint(KEYS, Settings(), "one", self.now)
        seen = world.look(found, self.state, by, urgency=more.pop("urgency", Urgency.VOLUNTARY), **more)
        return machine.step(found, seen, self.now)

    def carry_out(self, action: Action) -> None:
        found = self.migration()
        assert found is not None
        match action:
            case Adopt():
                self.swap(found, with_meta(found, finalizers=[machine.FINALIZER]))
            case Release():
                self.swap(found, with_meta(found, finalizers=[]))
            case Write(status=status):
                self.swap(found, build.decode(build.merged(as_json(found), {"status": status})))
            case MarkPod(name=name, uid=uid, labels=labels, annotations=annotations):
                pod = self.state.pods[found.metadata.namespace, name]
                assert pod.metadata.uid == uid
                self.swap(pod, remarked(pod, labels, annotations))
            case MarkWorkload(uid=uid, value=value):
                item = self.state.controllers[uid].object
                assert item is not None
                self.swap(item, labelled(item, {KEYS.moving: value}))
                self.effects.append(f"workload {value is not None}")
            case Evict(name=name, uid=uid, version=version):
                assert version
                self._evict(name, uid)
            case Wait(until=until):
                self.now = max(self.now, until or self.now + timedelta(seconds=30))
            case _:
                pass

    def _evict(self, name: str, uid: str) -> None:
        pod = self.state.pods.get(("default", name))
        if pod is None or pod.metadata.uid != uid:
            return
        self.effects.append(f"evict {name}")
        self.swap(pod, None)
        self.now += timedelta(seconds=1)
        fresh = f"web-{next(self.numbers)}"
        self.state.apply(None, replica(fresh, on=self.land_on, created=self.now, ready=self.ready))


def as_json(item: PodMigration) -> dict[str, Any]:
    return {"kind": "PodMigration", **apart(item)}


def with_meta(item: PodMigration, **more: Any) -> PodMigration:
    made: PodMigration = build.decode(build.merged(as_json(item), {"metadata": more}))
    return made


def remarked(pod: Pod, labels: Any, annotations: Any) -> Pod:
    def laid(old: Any, new: Any) -> dict[str, str]:
        return {key: value for key, value in {**old, **new}.items() if value is not None}

    meta = msgspec.structs.replace(
        pod.metadata,
        labels=laid(pod.metadata.labels, labels),
        annotations=laid(pod.metadata.annotations, annotations),
    )
    return msgspec.structs.replace(pod, metadata=meta)


def labelled(item: Any, labels: Any) -> Any:
    kept = {key: value for key, value in {**item.metadata.labels, **labels}.items() if value is not None}
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, labels=kept))


def replica(name: str, *, on: str, created: datetime, ready: bool = True) -> Pod:
    stamp = {"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return build.pod(name, on=on, of=build.owner("ReplicaSet", "web-5f"), metadata=stamp, ready=ready)


def cluster(**more: Any) -> Cluster:
    made = build.state(
        build.node("a"),
        build.node("b"),
        build.thing("Deployment", "web", spec={"replicas": 2}),
        build.thing("ReplicaSet", "web-5f", metadata={"ownerReferences": [build.owner("Deployment", "web")]}),
        replica("web-old", on="a", created=START - timedelta(days=1)),
        replica("web-other", on="a", created=START - timedelta(days=1)),
        build.thing(
            "PodMigration",
            "migration-1-x",
            spec={"podRef": {"name": "web-old"}, "targetNode": "b", "strategy": "LoadBalancing"},
        ),
    )
    return Cluster(made, **more)


def marks(made: Cluster) -> list[str]:
    """Everything of ours that stands in the cluster on pods that were not moved, and on the workload."""
    found = [pod for pod in made.state.pods.values() if pod.metadata.name in {"web-old", "web-other"}]
    ours = [key for pod in found for key in (*pod.metadata.labels, *pod.metadata.annotations) if key in KEYS.all]
    for known in made.state.controllers.values():
        ours += [key for key in known.labels if key in KEYS.all]
    return ours


def run(made: Cluster, steps: int = 60, **more: Any) -> PodMigration:
    for _ in range(steps):
        action = made.decide(**more)
        if isinstance(action, Done):
            break
        made.carry_out(action)
    ended = made.migration()
    assert ended is not None
    return ended


def test_a_move_ends_on_its_target() -> None:
    made = cluster()
    ended = run(made)
    assert (ended.status.phase, ended.status.on_target) == ("Completed", True)
    assert ended.status.replacement is not None
    moved = made.state.pods["default", ended.status.replacement.name]
    assert moved.metadata.labels[KEYS.migration_status] == "completed"
    assert moved.metadata.annotations[KEYS.original_pod_name] == "web-old"
    assert made.effects == ["workload True", "evict web-old", "workload False"]
    assert marks(made) == []
    assert ended.metadata.finalizers == ()


def test_elsewhere_is_said_so() -> None:
    assert run(cluster(land_on="a")).status.on_target is False


ENDS = {
    "withdrawn": ({"withdrawn": "the label is gone"}, "Cancelled", "the label is gone"),
    "objection": ({"objections": (Reason(Code.PINNED, "selector x"),)}, "Cancelled", "PINNED: selector x"),
}


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize(("more", "phase", "message"), ENDS.values(), ids=ENDS.keys())
def test_called_off_before_the_eviction_nothing_is_left(
    after: int, more: dict[str, Any], phase: str, message: str
) -> None:
    made = cluster()
    for _ in range(after):
        made.carry_out(made.decide())
    before = list(made.effects)
    ended = run(made, **more)
    if "evict web-old" in before:
        assert ended.status.phase == "Completed"
    else:
        assert (ended.status.phase, ended.status.message) == (phase, message)
        assert "evict web-old" not in made.effects
    assert marks(made) == []
    assert ended.metadata.finalizers == ()


def test_a_replacement_that_is_never_ready_fails_the_move() -> None:
    made = cluster(ready=False)
    ended = run(made)
    assert ended.status.phase == "Failed"
    assert "is not Ready after" in ended.status.message
    assert marks(made) == []


def test_a_step_of_another_version_is_left_to_it() -> None:
    made = cluster()
    while (found := made.migration()) is None or found.status.step != "Mark":
        made.carry_out(made.decide())
    status = msgspec.structs.replace(found.status, step="AwaitMoonlight")
    made.swap(found, msgspec.structs.replace(found, status=status))
    waits = made.decide()
    assert isinstance(waits, Wait)
    assert "another version" in waits.note


def test_a_deleted_deployment_cancels() -> None:
    made = cluster()
    while "evict web-old" not in made.effects:
        made.carry_out(made.decide())
    for pod in list(made.state.pods.values()):
        made.swap(pod, None)
    for known in list(made.state.controllers.values()):
        made.swap(known.object, None)
    assert run(made).status.phase == "Cancelled"


@pytest.mark.parametrize("seed", range(60))
def test_lost_steps_and_lost_answers_change_nothing(seed: int) -> None:
    """Each action may be lost, or done twice because its answer was lost."""
    rng = random.Random(seed)
    made = cluster()
    for _ in range(200):
        action = made.decide()
        if isinstance(action, Done):
            break
        if rng.random() < 0.3:
            continue
        made.carry_out(action)
        if rng.random() < 0.3 and not isinstance(action, Wait):
            made.carry_out(action)
    ended = made.migration()
    assert ended is not None
    assert ended.status.phase == "Completed"
    assert made.effects.count("evict web-old") == 1
    assert [effect for effect in made.effects if effect.startswith("evict")] == ["evict web-old"]
    assert len(made.state.pods) == 2
    assert marks(made) == []


def test_past_an_announced_eviction_nothing_calls_the_move_off() -> None:
    """The pod is going already, and its deletion is seen before the next step is written down."""
    made = cluster()
    while not isinstance(action := made.decide(), Evict):
        made.carry_out(action)
    pod = made.state.pods["default", "web-old"]
    gone = {"deletionTimestamp": "2026-06-01T12:00:10Z"}
    made.swap(pod, build.decode(build.merged({"kind": "Pod", **apart(pod)}, {"metadata": gone})))
    called_off = made.decide(withdrawn="emergency stop", objections=(Reason(Code.NOT_READY, "it is going"),))
    assert isinstance(called_off, Write)
    assert called_off.status["step"] == "AwaitReplacement"


def test_what_a_budget_said_is_forgotten_with_the_eviction() -> None:
    """Else it would be said of the pod that comes."""
    made = cluster()
    while not isinstance(action := made.decide(), Evict):
        made.carry_out(action)
    found = made.migration()
    assert found is not None
    by = world.Viewpoint(KEYS, Settings(), "one", made.now)
    seen = world.look(found, made.state, by, urgency=Urgency.MAINTENANCE)
    made.carry_out(failing.failed(found, seen, outcomes.Failure("PDB_NO_BUDGET: none", blocked=True), made.now))
    assert overdue.held(refused := made.migration() or found) == "PDB_NO_BUDGET: none"
    made.now += timedelta(minutes=1)
    made.carry_out(action)
    after = made.decide(urgency=Urgency.MAINTENANCE)
    assert isinstance(after, Write)
    assert after.status["step"] == "AwaitReplacement"
    assert {"retryAt", "blocked"} <= set(refused.status.intent or {})
    assert {"retryAt", "blocked"}.isdisjoint(after.status["intent"])


FAILURES = {
    "given up": (outcomes.Failure("PDB_MULTIPLE: two", final=True), "Failed"),
    "no budget": (outcomes.Failure("PDB_NO_BUDGET: none", blocked=True, final=True), "Cancelled"),
}


@pytest.mark.parametrize(("failure", "phase"), FAILURES.values(), ids=FAILURES.keys())
def test_a_move_that_is_given_up_ends_and_is_not_begun_again(failure: outcomes.Failure, phase: str) -> None:
    made = cluster()
    while not isinstance(action := made.decide(), Evict):
        made.carry_out(action)
    found = made.migration()
    assert found is not None
    by = world.Viewpoint(KEYS, Settings(), "one", made.now)
    seen = world.look(found, made.state, by, urgency=Urgency.VOLUNTARY)
    made.carry_out(failing.failed(found, seen, failure, made.now))
    ended = run(made)
    assert (ended.status.phase, ended.status.message) == (phase, failure.why)
    assert made.effects == ["workload True", "workload False"]
    assert marks(made) == []


MARKS_STAY = {
    "one answer": [outcomes.Failure("503 busy", counts=False)],
    "refused again and again": [outcomes.Failure("403 a policy says no")] * 6,
    "slow for long": [outcomes.Failure("503 busy", counts=False)] * 20,
}


@pytest.mark.parametrize("answers", MARKS_STAY.values(), ids=MARKS_STAY.keys())
@pytest.mark.parametrize(("failure", "phase"), FAILURES.values(), ids=FAILURES.keys())
def test_how_a_move_was_given_up_stands_whatever_is_said_of_its_marks(
    failure: outcomes.Failure, phase: str, answers: list[outcomes.Failure]
) -> None:
    made = cluster()
    refused(made, failure)
    for answer in answers:
        made.now += timedelta(minutes=1)
        assert isinstance(made.decide(), MarkPod)
        refuse(made, answer)
    made.now += timedelta(minutes=1)
    ended = run(made)
    assert (ended.status.phase, ended.status.message) == (phase, failure.why)


def test_a_replacement_that_is_deleted_is_replaced_in_its_turn() -> None:
    made = cluster(ready=False)
    while made.migration() is not None and made.migration().status.replacement is None:  # type: ignore[union-attr]
        made.carry_out(made.decide())
    found = made.migration()
    assert found is not None
    assert found.status.replacement is not None
    made.swap(made.state.pods["default", found.status.replacement.name], None)
    made.state.apply(None, replica("web-third", on="b", created=made.now))
    ended = run(made)
    assert ended.status.phase == "Completed"
    assert ended.status.replacement is not None
    assert ended.status.replacement.name == "web-third"


def refused(made: Cluster, failure: outcomes.Failure, **more: Any) -> None:
    """The eviction that is asked for next."""
    for _ in range(60):
        if isinstance(action := made.decide(**more), Evict):
            return refuse(made, failure, **more)
        made.carry_out(action)
    raise AssertionError(action)


def refuse(made: Cluster, failure: outcomes.Failure, *, urgency: Urgency = Urgency.VOLUNTARY) -> None:
    """What is asked for now."""
    found = made.migration()
    assert found is not None
    by = world.Viewpoint(KEYS, Settings(), "one", made.now)
    seen = world.look(found, made.state, by, urgency=urgency)
    made.carry_out(failing.failed(found, seen, failure, made.now))


BUSY = outcomes.Failure("500 failed calling webhook", counts=False, eviction=True)


@pytest.mark.parametrize(
    ("urgency", "pauses"),
    [(Urgency.MAINTENANCE, [1, 2, 4, 8, 16, 32, 32]), (Urgency.INTERRUPTION, [1, 2, 4, 4, 4, 4, 4])],
)
def test_who_says_come_back_is_asked_less_and_less_often(urgency: Urgency, pauses: list[int]) -> None:
    made, times = cluster(), []
    for _ in range(len(pauses) + 1):
        refused(made, BUSY, urgency=urgency)
        times.append(made.now)
    assert [round((b - a).total_seconds()) for a, b in itertools.pairwise(times)] == pauses
    found = made.migration()
    assert found is not None
    assert (found.status.phase, found.status.attempts) == ("InProgress", 0)
    assert run(made, urgency=urgency).status.phase == "Completed"


def test_a_move_that_nobody_waits_for_does_not_ask_for_ever() -> None:
    made = cluster()
    while not isinstance(action := made.decide(), Done):
        assert made.now - START < timedelta(minutes=6)
        refuse(made, BUSY) if isinstance(action, Evict) else made.carry_out(action)
    ended = made.migration()
    assert ended is not None
    assert (ended.status.phase, ended.status.message) == ("Cancelled", BUSY.why)
    assert marks(made) == []


def test_marks_that_are_refused_do_not_keep_a_move_that_has_succeeded_open() -> None:
    made = cluster()
    while not (isinstance(action := made.decide(), MarkPod) and step(made) == "Settle"):
        made.carry_out(action)
    for _ in range(Settings().migrations.max_retries + 1):
        refuse(made, outcomes.Failure("403 a policy says no"))
        while isinstance(action := made.decide(), Wait):
            made.carry_out(action)
    assert isinstance(action, Write)
    assert action.status["phase"] == "Completed"


def test_a_webhook_that_is_away_for_a_while_does_not_cost_the_new_pod_its_marks() -> None:
    made = cluster()
    while not (isinstance(action := made.decide(), MarkPod) and step(made) == "Settle"):
        made.carry_out(action)
    for _ in range(2 * Settings().migrations.max_retries):
        refuse(made, outcomes.Failure("500 failed calling webhook", counts=False))
        while isinstance(action := made.decide(), Wait):
            made.carry_out(action)
        assert isinstance(action, MarkPod)
    made.now += Settings().migrations.ready_timeout
    refuse(made, outcomes.Failure("500 failed calling webhook", counts=False))
    assert run(made).status.phase == "Completed"


def test_marks_that_are_refused_do_not_keep_a_move_that_has_failed_open() -> None:
    made = cluster(ready=False)
    while not (isinstance(action := made.decide(), MarkPod) and phase(made) == "Failed"):
        made.carry_out(action)
    assert action == made.decide(), "as long as it is refused"
    made.now += Settings().migrations.ready_timeout
    assert not isinstance(made.decide(), MarkPod)
    assert run(made).metadata.finalizers == ()


def test_marks_that_get_no_answer_do_not_keep_a_move_waiting_that_nobody_waits_for() -> None:
    made = cluster()
    while not isinstance(action := made.decide(), Done):
        assert made.now - START < timedelta(minutes=6)
        first = isinstance(action, MarkPod) and step(made) == "Mark" and phase(made) == "InProgress"
        refuse(made, BUSY) if first else made.carry_out(action)
    assert phase(made) == "Cancelled"


def phase(made: Cluster) -> str:
    found = made.migration()
    return found.status.phase if found is not None else ""


def step(made: Cluster) -> str:
    found = made.migration()
    return found.status.step if found is not None else ""


@pytest.mark.parametrize("kind", ["Job", "DaemonSet"])
def test_the_label_on_a_workload_that_we_never_mark_is_left_alone(kind: str) -> None:
    """It may have come with metadata that somebody copied."""
    labels = {KEYS.moving: "migration-1-x"}
    meta = {"finalizers": [machine.FINALIZER]}
    resolved = {"workload": {"kind": kind, "name": "work", "uid": "uid-default-work", "apiVersion": "batch/v1"}}
    status = {"phase": "Completed", "step": "Settle", "resolved": resolved}
    move = build.thing("PodMigration", "m", metadata=meta, spec={"podRef": {"name": "p"}}, status=status)
    made = Cluster(build.state(build.node("a"), build.thing(kind, "work", metadata={"labels": labels}), move))
    assert isinstance(made.decide(), Release)

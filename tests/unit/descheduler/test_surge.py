"""A Surge reaches its end whatever is lost on the way; until then the original serves."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import Pod, PodMigration
from descheduler.migration import failing, machine, outcomes, ownership, surge_turn, world
from descheduler.migration.actions import Action, Adopt, Done, MarkPod, MarkWorkload, Release, Scale, Wait, Write
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.test_machine import as_json, labelled, remarked, with_meta

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
KEYS = keys.under()
COST = keys.POD_DELETION_COST
OLD = "web-old"


def replica(name: str, *, on: str, ready_at: datetime | None, created: datetime, **annotations: str) -> Pod:
    stamp = {"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")}
    since = (ready_at or created).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True" if ready_at else "False", "lastTransitionTime": since}
    return build.pod(
        name,
        on=on,
        of=build.owner("ReplicaSet", "web-5f"),
        metadata=stamp,
        annotations=annotations,
        status={"conditions": [condition]},
    )


@dataclass
class Cluster:
    """A state whose controller does at once what a real one does: it makes pods, and takes them by its own order."""

    state: ClusterState
    now: datetime = START
    numbers: Any = field(default_factory=itertools.count)
    ready: bool = True
    quota: bool = True
    writer: str = "somebody"
    generation: int = 1
    idle: bool = False
    """The controller is slow and has not acted yet."""
    taken: list[str] = field(default_factory=list)
    flags: list[tuple[str, str]] = field(default_factory=list)
    """What people are to be told of, with the step in which it came about."""

    @property
    def deployment(self) -> Any:
        return self.state.controllers["uid-default-web"].object

    @property
    def migration(self) -> PodMigration:
        return next(iter(self.state.migrations.values()))

    def pods(self) -> list[Pod]:
        return list(self.state.pods.values())

    def names(self) -> list[str]:
        return sorted(pod.metadata.name for pod in self.pods())

    def decide(self, **more: Any) -> Action:
        by = world.Viewpoint(KEYS, Settings(), "one", self.now)
        mode = {"mode": Mode.SURGE, "urgency": Urgency.VOLUNTARY}
        return machine.step(self.migration, world.look(self.migration, self.state, by, **{**mode, **more}), self.now)

    def carry_out(self, action: Action) -> None:
        found = self.migration
        match action:
            case Adopt():
                self.state.apply(found, with_meta(found, finalizers=[machine.FINALIZER]))
            case Release():
                self.state.apply(found, with_meta(found, finalizers=[]))
            case Write(status=status):
                # As the API merges it: an intent is written whole.
                kept = {**as_json(found), "status": {**as_json(found).get("status", {})}}
                if "intent" in status:
                    kept["status"]["intent"] = {}
                self.state.apply(found, build.decode(build.merged(kept, {"status": status})))
            case MarkPod(name=name, labels=labels, annotations=annotations):
                pod = self.state.pods.get(("default", name))
                if pod is not None:
                    self.state.apply(pod, remarked(pod, labels, annotations))
            case MarkWorkload(value=value):
                self.state.apply(self.deployment, labelled(self.deployment, {KEYS.moving: value}))
            case Scale():
                self._scale(action)
            case Wait(until=until):
                self.now = max(self.now, until or self.now + timedelta(seconds=30))
            case _:
                pass

    def _scale(self, action: Scale) -> None:
        fields = [{"manager": self.writer, "fieldsV1": {"f:spec": {"f:replicas": {}}}}]
        meta = {"generation": self.generation, "managedFields": fields, "labels": self.deployment.metadata.labels}
        found = {"metadata": meta, "spec": {"replicas": self.deployment.spec.replicas}}
        if ownership.is_called_off(found, action):
            self.now += timedelta(milliseconds=500)
            return
        refusal = ownership.refusal(found, action)
        if refusal is not None:
            self.fail(outcomes.Failure(f"REPLICAS_CONTESTED: {refusal}", final=True))
        elif self.deployment.spec.replicas != action.after:
            self.set_replicas(action.after, ownership.MANAGER)

    def fail(self, failure: outcomes.Failure) -> None:
        by = world.Viewpoint(KEYS, Settings(), "one", self.now)
        seen = world.look(self.migration, self.state, by, urgency=Urgency.VOLUNTARY)
        self.carry_out(failing.failed(self.migration, seen, failure, self.now))

    def set_replicas(self, count: int, writer: str = "somebody") -> None:
        self.generation, self.writer, item = self.generation + 1, writer, self.deployment
        spec = msgspec.structs.replace(item.spec, replicas=count)
        meta = msgspec.structs.replace(item.metadata, generation=self.generation)
        self.state.apply(item, msgspec.structs.replace(item, spec=spec, metadata=meta))
        self.control()

    def control(self) -> None:
        """What kube-controller-manager would do."""
        self.now += timedelta(seconds=1)
        if self.idle:
            return
        wanted, pods = self.deployment.spec.replicas, self.pods()
        if len(pods) < wanted and not self.quota:
            failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
            status = {"conditions": [failure]}
            self.state.apply(
                self.deployment,
                build.decode(
                    build.merged({"kind": "Deployment", **msgspec.to_builtins(self.deployment)}, {"status": status})
                ),
            )
            return
        for _ in range(wanted - len(pods)):
            ready_at = self.now if self.ready else None
            self.state.apply(None, replica(f"web-{next(self.numbers)}", on="b", ready_at=ready_at, created=self.now))
        doomed = sorted(pods, key=lambda pod: (pod.ready, surge_turn.cost_of(pod), -_created(pod)))
        for pod in doomed[: max(0, len(pods) - wanted)]:
            self.taken.append(pod.metadata.name)
            self.state.apply(pod, None)

    def run(self, steps: int = 80, **more: Any) -> PodMigration:
        for _ in range(steps):
            action = self.decide(**more)
            if isinstance(action, Done):
                break
            if isinstance(action, Write):
                step = self.migration.status.step
                self.flags += [(name, step) for name in ("late", "ready") if getattr(action, name)]
            self.carry_out(action)
        return self.migration

    def reach(self, step: str) -> None:
        for _ in range(40):
            if self.migration.status.step == step:
                return
            self.carry_out(self.decide())
        raise AssertionError(self.migration.status)


def _created(pod: Pod) -> float:
    assert pod.metadata.creation_timestamp is not None
    return pod.metadata.creation_timestamp.timestamp()


def cluster(replicas: int = 1, min_ready: int = 0, cost: str | None = None, **more: Any) -> Cluster:
    long_ago = START - timedelta(days=1)
    said = {} if cost is None else {COST: cost}
    others = [replica(f"web-other-{it}", on="a", ready_at=long_ago, created=long_ago) for it in range(replicas - 1)]
    spec = {"replicas": replicas, "minReadySeconds": min_ready}
    made = build.state(
        build.node("a"),
        build.node("b"),
        build.thing("Deployment", "web", spec=spec, metadata={"generation": 1}),
        build.thing("ReplicaSet", "web-5f", metadata={"ownerReferences": [build.owner("Deployment", "web")]}),
        replica(OLD, on="a", ready_at=long_ago, created=long_ago, **said),
        *others,
        build.thing(
            "PodMigration",
            "migration-1-x",
            spec={"podRef": {"name": OLD}, "targetNode": "b", "strategy": "LoadBalancing"},
        ),
    )
    return Cluster(made, **more)


def left(made: Cluster) -> list[str]:
    """Everything that a Surge must take back, on pods and on the workload."""
    costs = [pod.metadata.annotations[COST] for pod in made.pods() if COST in pod.metadata.annotations]
    return [*costs, *(key for key in made.deployment.metadata.labels if key == KEYS.moving)]


def restored(made: Cluster, replicas: int = 1) -> None:
    assert OLD in made.names()
    assert len(made.names()) == made.deployment.spec.replicas == replicas
    assert left(made) == []
    assert made.migration.metadata.finalizers == ()


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_original_goes_when_the_other_serves(replicas: int) -> None:
    made = cluster(replicas, min_ready=10)
    ended = made.run()
    assert (ended.status.phase, ended.status.on_target) == ("Completed", True)
    assert made.taken == [OLD]
    assert made.deployment.spec.replicas == replicas
    assert left(made) == []
    assert made.now - START >= timedelta(seconds=10), "Available, not only Ready"
    assert made.flags == [("ready", "AwaitAvailable")], "once, though it is looked at again when the original is gone"


@pytest.mark.parametrize("seed", range(60))
def test_lost_steps_and_lost_answers_change_nothing(seed: int) -> None:
    """Each action may be lost, or done twice because its answer was lost."""
    rng = random.Random(seed)
    made = cluster(1 + seed % 3)
    for _ in range(300):
        action = made.decide()
        if isinstance(action, Done):
            break
        if rng.random() < 0.3:
            continue
        made.carry_out(action)
        if rng.random() < 0.3 and not isinstance(action, Wait):
            made.carry_out(action)
    assert made.migration.status.phase == "Completed"
    assert made.taken == [OLD]
    assert made.deployment.spec.replicas == 1 + seed % 3
    assert left(made) == []


@pytest.mark.parametrize("seed", range(60))
def test_called_off_at_any_moment_with_steps_lost(seed: int) -> None:
    """Either it had happened, or it is as if it had never begun."""
    rng = random.Random(seed)
    made = cluster(1 + seed % 3, min_ready=seed % 2 * 5)
    moment = rng.randrange(1, 14)
    for number in range(300):
        more = {"objections": (Reason(Code.PINNED, "x"),)} if number >= moment else {}
        action = made.decide(**more)
        if isinstance(action, Done):
            break
        if rng.random() < 0.2:
            continue
        made.carry_out(action)
        if rng.random() < 0.2 and not isinstance(action, Wait):
            made.carry_out(action)
    assert made.migration.status.phase in {"Completed", "Cancelled"}
    assert left(made) == []
    assert len(made.names()) == made.deployment.spec.replicas == 1 + seed % 3
    assert (OLD in made.names()) is (made.migration.status.phase == "Cancelled")


def scales_to(*counts: int) -> Callable[[Cluster], None]:
    def happens(made: Cluster) -> None:
        for count in counts:
            made.set_replicas(count)

    return happens


def sets_cost(value: str) -> Callable[[Cluster], None]:
    def happens(made: Cluster) -> None:
        pod = made.state.pods["default", OLD]
        made.state.apply(pod, remarked(pod, {}, {COST: value}))

    return happens


Meddling = tuple[str, Callable[[Cluster], None], int]
MEDDLING: dict[str, Meddling] = {
    "reset before it is Available": ("AwaitAvailable", scales_to(1), 1),
    "scaled up before it is Available": ("AwaitAvailable", scales_to(4), 4),
    "scaled up when it is": ("SurgeDown", scales_to(4), 4),
    "away and back again": ("SurgeDown", scales_to(4, 2), 2),
}


@pytest.mark.parametrize(("step", "happens", "replicas"), MEDDLING.values(), ids=MEDDLING.keys())
def test_somebody_else_changes_the_replicas(step: str, happens: Callable[[Cluster], None], replicas: int) -> None:
    made = cluster(min_ready=5)
    made.reach(step)
    happens(made)
    ended = made.run()
    assert ended.status.phase == "Failed"
    assert "REPLICAS_CONTESTED" in ended.status.message
    restored(made, replicas)


def test_a_reset_when_both_serve_takes_the_original() -> None:
    """Somebody else lowered the number for us; what counts is who is left."""
    made = cluster()
    made.reach("SurgeDown")
    while surge_turn.cost_of(made.state.pods["default", OLD]) != surge_turn.LOWEST:
        made.carry_out(made.decide())
    made.set_replicas(1)
    assert made.run().status.phase == "Completed"
    assert made.taken == [OLD]
    assert left(made) == []


def test_a_controller_has_its_time_from_when_the_number_is_lowered() -> None:
    """Whoever announced the lowering died, and another came an hour later."""
    made = cluster()
    made.reach("SurgeDown")
    made.now += timedelta(hours=1)
    made.idle = True
    while made.deployment.spec.replicas == 2:
        made.carry_out(made.decide())
    made.carry_out(made.decide())
    assert isinstance(made.decide(), Wait)
    made.idle = False
    made.control()
    assert made.run().status.phase == "Completed"
    assert made.taken == [OLD]


@pytest.mark.parametrize("acts", [True, False], ids=["slow", "never"])
def test_a_controller_has_its_time_on_the_way_back_too(acts: bool) -> None:
    made = cluster(min_ready=30)
    made.reach("AwaitAvailable")
    made.carry_out(made.decide(withdrawn="no longer wanted"))
    made.now += timedelta(hours=1)
    made.idle = True
    while made.deployment.spec.replicas == 2:
        made.carry_out(made.decide())
    made.carry_out(made.decide())
    assert isinstance(made.decide(), Wait)
    assert surge_turn.cost_of(made.state.pods["default", "web-0"]) == surge_turn.LOWEST
    made.idle = not acts
    made.control()
    assert made.run().status.phase == "Cancelled"
    assert left(made) == []


def test_no_quota() -> None:
    made = cluster(quota=False)
    ended = made.run()
    assert (ended.status.phase, ended.status.message) == ("Failed", "NO_QUOTA: exceeded quota")
    restored(made)


def test_a_new_pod_that_is_never_ready() -> None:
    made = cluster(ready=False)
    ended = made.run()
    assert ended.status.phase == "Failed"
    assert "not Available" in ended.status.message
    assert made.flags == [("late", "AwaitAvailable")]
    restored(made)


def test_a_cost_that_somebody_else_wrote_stays() -> None:
    made = cluster(min_ready=5)
    made.reach("AwaitAvailable")
    sets_cost("9")(made)
    assert "REPLICAS_CONTESTED" in made.run().status.message
    assert made.names() == [OLD]
    assert left(made) == ["9"]


def test_a_cost_that_was_there_is_put_back() -> None:
    made = cluster(cost="7", min_ready=5)
    made.reach("SurgeDown")
    while surge_turn.cost_of(made.state.pods["default", OLD]) != surge_turn.LOWEST:
        made.carry_out(made.decide())
    made.run(withdrawn="no longer wanted")
    assert made.names() == [OLD]
    assert left(made) == ["7"]


def test_a_sibling_that_is_not_ready_is_waited_for() -> None:
    made = cluster(2)
    made.reach("SurgeDown")
    sibling = made.state.pods["default", "web-other-0"]
    broken = replica("web-other-0", on="a", ready_at=None, created=START - timedelta(days=1))
    made.state.apply(sibling, broken)
    action = made.decide()
    assert isinstance(action, Wait)
    assert "web-other-0 is not Ready" in action.note
    made.state.apply(broken, sibling)
    assert made.run().status.phase == "Completed"
    assert made.taken == [OLD]


@pytest.mark.parametrize(
    ("step", "flags"), [("AwaitAvailable", [("ready", "AwaitReplacement")]), ("SurgeDown", [])], ids=str
)
def test_an_original_that_goes_by_itself(step: str, flags: list[tuple[str, str]]) -> None:
    """Its node died, or somebody deleted it: the number comes down all the same."""
    made = cluster(min_ready=5)
    made.reach(step)
    made.state.apply(made.state.pods["default", OLD], None)
    made.control()
    assert made.run().status.phase == "Completed"
    assert made.deployment.spec.replicas == len(made.names()) == 1
    assert left(made) == []
    assert made.flags == flags, "the other one serves, which was told already if it did before"


def test_the_way_back_is_not_given_up() -> None:
    made = cluster(ready=False)
    made.reach("SurgeBack")
    for _ in range(10):
        made.fail(outcomes.Failure("the API server is away"))
        made.now += timedelta(minutes=1)
    ended = made.run()
    assert ended.status.phase == "Failed"
    assert "not Available" in ended.status.message, "how it ended, not what went wrong on the way back"
    restored(made)


def test_a_cost_that_somebody_else_wrote_may_serve() -> None:
    """The lowest of all, though not by us."""
    made = cluster(min_ready=5)
    made.reach("AwaitAvailable")
    sets_cost("-5")(made)
    while not isinstance(action := made.decide(), Scale):
        made.carry_out(action)
    assert action.lowest == (OLD, f"uid-default-{OLD}", -5)
    assert made.run().status.phase == "Completed"
    assert made.taken == [OLD]


def test_called_off_it_is_the_new_pod_that_goes_whatever_the_original_costs() -> None:
    made = cluster(2, cost="-3", min_ready=30)
    made.reach("AwaitAvailable")
    made.run(withdrawn="no longer wanted")
    assert made.taken == ["web-0"]
    assert left(made) == ["-3"]


def test_a_sibling_that_is_as_cheap_would_be_taken_as_well() -> None:
    made = cluster(2)
    made.reach("SurgeDown")
    sibling = made.state.pods["default", "web-other-0"]
    made.state.apply(sibling, remarked(sibling, {}, {COST: str(surge_turn.LOWEST)}))
    assert "web-other-0 would be taken in its place" in made.run().status.message
    assert made.taken == ["web-0"]


def test_on_the_way_back_a_sibling_that_is_not_ready_is_waited_for() -> None:
    made = cluster(2, min_ready=30)
    made.reach("AwaitAvailable")
    sibling = made.state.pods["default", "web-other-0"]
    broken = replica("web-other-0", on="a", ready_at=None, created=START - timedelta(days=1))
    made.state.apply(sibling, broken)
    while not isinstance(action := made.decide(withdrawn="no longer wanted"), Wait):
        made.carry_out(action)
    assert "would be taken instead of the new pod" in action.note
    made.state.apply(broken, sibling)
    made.run()
    assert made.taken == ["web-0"]


def test_the_way_back_begins_with_what_a_late_raise_conflicts_with() -> None:
    made = cluster(ready=False)
    made.reach("SurgeBack")
    assert isinstance(made.decide(), MarkWorkload)


def seen(replicas: int, writer: str, generation: int = 1) -> dict[str, Any]:
    fields = [{"manager": writer, "fieldsV1": {"f:spec": {"f:replicas": {}}}}]
    return {"metadata": {"generation": generation, "managedFields": fields}, "spec": {"replicas": replicas}}


RAISE = Scale("Deployment", "web", "u", 1, 2, generation=1)
LOWER = Scale("Deployment", "web", "u", 2, 1, owned=True)
OWNERSHIP: dict[str, tuple[Scale, dict[str, Any], str | None]] = {
    "raise": (RAISE, seen(1, "kubectl"), None),
    "raised by us": (RAISE, seen(2, ownership.MANAGER, 2), None),
    "raised by somebody else": (RAISE, seen(2, "kubectl", 2), "somebody else set 2 replicas"),
    "raised and reset": (RAISE, seen(1, "argocd", 3), "its specification was changed"),
    "lower": (LOWER, seen(2, ownership.MANAGER, 2), None),
    "lower what somebody wrote": (LOWER, seen(2, "kubectl", 4), "was written by kubectl since"),
    "lowered by whomever": (LOWER, seen(1, "kubectl", 3), None),
    "another number": (LOWER, seen(5, "kubectl", 3), "somebody set 5 replicas, expected were 2"),
}


@pytest.mark.parametrize(("action", "found", "why"), OWNERSHIP.values(), ids=OWNERSHIP.keys())
def test_whose_number_it_is(action: Scale, found: dict[str, Any], why: str | None) -> None:
    said = ownership.refusal(found, action)
    assert said is None if why is None else why in (said or "")


@pytest.mark.parametrize(
    ("managers", "ours"),
    [((ownership.MANAGER,), True), ((ownership.MANAGER, "argocd"), False), (("argocd",), False), ((), False)],
    ids=["alone", "beside somebody who applies the same number", "somebody", "nobody"],
)
def test_a_number_is_ours_as_long_as_nobody_claims_it_too(managers: tuple[str, ...], ours: bool) -> None:
    wrote = [{"manager": it, "fieldsV1": {"f:spec": {"f:replicas": {}}}} for it in managers]
    other = {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:template": {}}}}
    assert ownership.owns({"metadata": {"managedFields": [*wrote, other]}}, ownership.MANAGER) is ours

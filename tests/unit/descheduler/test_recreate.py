"""A pod without a controller is copied: the copy is Ready before the original goes, or it goes itself."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import Pod, PodMigration
from descheduler.migration import copying, failing, machine, outcomes, recreate, recreate_back, recreate_turn, world
from descheduler.migration.actions import (
    Action,
    Adopt,
    CreateCopy,
    Done,
    Evict,
    MarkPod,
    Release,
    RemoveCopy,
    SeekCopy,
    Wait,
    Write,
)
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.test_machine import as_json, remarked, with_meta

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
KEYS = keys.under()
COPY = f"rescheduled-web-{int(START.timestamp())}"


@dataclass
class Cluster:
    """A state in which the scheduler and the kubelet answer at once."""

    state: ClusterState
    now: datetime = START
    ready: bool = True
    effects: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """Copies that the API has and the watch has not told of."""
    flags: list[tuple[str, str]] = field(default_factory=list)
    """What people are to be told of, with the step in which it came about."""

    @property
    def migration(self) -> PodMigration:
        return next(iter(self.state.migrations.values()))

    def names(self) -> list[str]:
        return sorted(name for _, name in self.state.pods)

    def look(self, **more: Any) -> Any:
        by = world.Viewpoint(KEYS, Settings(), "one", self.now)
        usual = {"mode": Mode.RECREATE, "urgency": Urgency.VOLUNTARY}
        return world.look(self.migration, self.state, by, **{**usual, **more})

    def decide(self, **more: Any) -> Action:
        return machine.step(self.migration, self.look(**more), self.now)

    def carry_out(self, action: Action) -> None:
        found = self.migration
        match action:
            case Adopt() | Release():
                ours = [machine.FINALIZER] if isinstance(action, Adopt) else []
                self.state.apply(found, with_meta(found, finalizers=ours))
            case Write(status=status):
                kept = {**as_json(found), "status": {**as_json(found).get("status", {})}}
                if "intent" in status:
                    kept["status"]["intent"] = {}
                self.state.apply(found, build.decode(build.merged(kept, {"status": status})))
            case MarkPod(name=name, labels=labels, annotations=annotations):
                pod = self.state.pods.get(("default", name))
                if pod is not None:
                    self.state.apply(pod, remarked(pod, labels, annotations))
            case CreateCopy():
                self._create(action)
            case RemoveCopy(name=name) | Evict(name=name):
                self._remove(name)
            case SeekCopy(name=name):
                self._seek(name)
            case Wait(until=until):
                self.now = max(self.now, until or self.now + timedelta(seconds=30))
            case _:
                pass

    def _create(self, action: CreateCopy) -> None:
        known = self.state.pods.get(("default", action.name))
        if known is None:
            self.effects.append(f"create {action.name}")
            self.state.apply(None, copy_of(action, ready=self.ready))
        elif known.metadata.annotations.get(KEYS.original_pod) != action.uid:
            taken = outcomes.Failure("another pod has its name", counts=False, taken=True)
            self.carry_out(failing.failed(self.migration, self.look(), taken, self.now))

    def _seek(self, name: str) -> None:
        if name in self.unseen:
            self.unseen.remove(name)
            self.effects.append(f"remove {name}")
        else:
            self.carry_out(recreate_back.sought(self.migration, self.look(), self.now))

    def _remove(self, name: str) -> None:
        pod = self.state.pods.get(("default", name)) or self.state.ended.get(("default", name))
        if pod is not None:
            self.effects.append(f"remove {name}")
            self.state.apply(pod, None)

    def run(self, steps: int = 60, **more: Any) -> PodMigration:
        for _ in range(steps):
            action = self.decide(**more)
            if isinstance(action, Done):
                break
            if isinstance(action, Write):
                step = self.migration.status.step
                self.flags += [(name, step) for name in ("late", "ready") if getattr(action, name)]
            self.carry_out(action)
        return self.migration


def copy_of(action: CreateCopy, **more: Any) -> Pod:
    """What the API makes of the request: the copy says whose it is."""
    marks = {"labels": {KEYS.migration_id: "migration-1-x"}, "annotations": {KEYS.original_pod: action.uid}}
    return build.pod(action.name, on="b", metadata=marks, **more)


def cluster(**more: Any) -> Cluster:
    move = build.thing(
        "PodMigration",
        "migration-1-x",
        spec={"podRef": {"name": "web"}, "targetNode": "b", "strategy": "LoadBalancing"},
    )
    return Cluster(build.state(build.node("a"), build.node("b"), build.pod("web", on="a"), move), **more)


def marks(pod: Pod) -> set[str]:
    return {*pod.metadata.labels, *pod.metadata.annotations} & set(KEYS.all)


def test_the_copy_is_ready_before_the_original_goes() -> None:
    made = cluster()
    ended = made.run()
    assert (ended.status.phase, ended.status.on_target) == ("Completed", True)
    assert made.effects == [f"create {COPY}", "remove web"]
    assert made.names() == [COPY]
    assert ended.metadata.finalizers == ()
    assert made.flags == [("ready", "AwaitReady")], "once, though it is looked at again when the original is gone"


def test_a_copy_that_is_never_ready_is_removed() -> None:
    made = cluster(ready=False)
    ended = made.run()
    assert ended.status.phase == "Failed"
    assert f"{COPY} is not Ready" in ended.status.message
    assert made.flags == [("late", "AwaitReady")]
    assert made.names() == ["web"]
    assert marks(made.state.pods["default", "web"]) == set()


def test_the_removal_of_a_copy_holds_for_the_copy_as_it_was_seen() -> None:
    made = cluster(ready=False)
    while not isinstance(action := made.decide(), RemoveCopy):
        made.carry_out(action)
    copy = made.state.pods["default", COPY]
    meta = msgspec.structs.replace(copy.metadata, resource_version="8")
    assert (action.uid, action.version) == (copy.metadata.uid, copy.metadata.resource_version)
    made.state.apply(copy, msgspec.structs.replace(copy, metadata=meta))
    assert made.decide() == RemoveCopy(COPY, copy.metadata.uid, "8")


def test_an_eviction_that_is_refused_for_good_removes_the_copy() -> None:
    made = cluster()
    while not isinstance(action := made.decide(), Evict):
        made.carry_out(action)
    made.carry_out(failing.failed(made.migration, made.look(), outcomes.Failure("no", final=True), made.now))
    assert (made.run().status.phase, made.migration.status.message) == ("Failed", "no")
    assert made.names() == ["web"]


@pytest.mark.parametrize("announced", [recreate_turn.CREATE, recreate_turn.READY])
@pytest.mark.parametrize("more", [{}, {"withdrawn": "the node is no longer about to be lost"}], ids=["lost", "anew"])
def test_what_a_lost_node_took_lives_on_in_the_copy(announced: str, more: dict[str, Any]) -> None:
    """Nobody deleted the original, and nothing but the copy is left of it."""
    made = cluster(ready=False)
    lost: dict[str, Any] = {"urgency": Urgency.INTERRUPTION}
    while COPY not in made.names() or made.migration.status.step != announced:
        made.carry_out(made.decide(**lost))
    made.state.apply(made.state.pods["default", "web"], None)
    while made.migration.status.step != "AwaitReplacement":
        made.carry_out(made.decide(**lost, **more))
    copy = made.state.pods["default", COPY]
    made.state.apply(copy, msgspec.structs.replace(copy, status=build.pod("x", on="b").status))
    assert made.run(**lost, **more).status.phase == "Completed"
    assert made.names() == [COPY]


def test_without_the_original_the_copy_is_not_wanted() -> None:
    made = cluster(ready=False)
    while made.migration.status.step != recreate_turn.READY:
        made.carry_out(made.decide())
    made.state.apply(made.state.pods["default", "web"], None)
    assert made.run().status.phase == "Cancelled"
    assert made.names() == []


@pytest.mark.parametrize("seed", range(80))
def test_one_of_the_two_is_left_whatever_is_lost(seed: int) -> None:
    """Each action may be lost or done twice, and the move may be called off at any moment."""
    rng = random.Random(seed)
    made, moment = cluster(ready=seed % 4 != 0), rng.randrange(1, 30)
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
    assert made.migration.metadata.finalizers == ()
    moved = made.migration.status.phase == "Completed"
    assert made.names() == ([COPY] if moved else ["web"])


NAMES = {
    "plain": ("web", {}, "rescheduled-web-1780315200"),
    "a copy": ("rescheduled-web-1780000000", {}, "rescheduled-web-1780315200"),
    "a copy that says so": (
        "rescheduled-web-1780000000",
        {KEYS.original_pod_name: "rescheduled-web-1770000000"},
        "rescheduled-web-1780315200",
    ),
    "long": ("a" * 63, {}, f"rescheduled-{'a' * 40}-1780315200"),
    "cut at a dash": (f"{'a' * 39}-{'b' * 9}", {}, f"rescheduled-{'a' * 39}-1780315200"),
}


@pytest.mark.parametrize(("name", "annotations", "expected"), NAMES.values(), ids=NAMES.keys())
def test_names(name: str, annotations: dict[str, str], expected: str) -> None:
    seen = cluster().look()
    assert recreate.name_of(build.pod(name, on="a", annotations=annotations), seen, START) == expected
    assert len(expected) <= 63


HINT = {
    "weight": 100,
    "preference": {"matchExpressions": [{"key": keys.HOSTNAME, "operator": "In", "values": ["b"]}]},
}
WISH = {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
TOKEN = {"name": "kube-api-access-x7", "mountPath": "/var/run/secrets"}


def original(**annotations: str) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "volumeMounts": [TOKEN, {"name": "data", "mountPath": "/data"}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [HINT, WISH]}
    return {
        "metadata": {
            "name": "web",
            "uid": "u-1",
            "resourceVersion": "7",
            "generateName": "web-",
            "finalizers": ["example.com/x"],
            "labels": {"app": "web", KEYS.migration_id: "old", KEYS.managed: "true"},
            "annotations": {"note": "mine", copying.LAST_APPLIED: "{}", **annotations},
        },
        "spec": {
            "nodeName": "a",
            "priority": 7,
            "priorityClassName": "high",
            "preemptionPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": "kube-api-access-x7", "projected": {}}, {"name": "data", "emptyDir": {}}],
            "affinity": {"nodeAffinity": preferred},
        },
        "status": {"phase": "Running"},
    }


def test_a_copy_is_what_the_author_said() -> None:
    made = copying.of(original(), "copy", "m-1", KEYS)
    assert made["metadata"] == {
        "name": "copy",
        "labels": {"app": "web", KEYS.managed: "true", KEYS.migration_id: "m-1"},
        "annotations": {"note": "mine", KEYS.original_pod: "u-1", KEYS.original_pod_name: "web"},
    }
    spec = made["spec"]
    assert set(spec) == {"priorityClassName", "containers", "volumes", "affinity"}
    assert spec["volumes"] == [{"name": "data", "emptyDir": {}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]
    assert "status" not in made


@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        pytest.param({}, [HINT, WISH], id="its own wish"),
        pytest.param({KEYS.original_pod: "u-0"}, [WISH], id="a hint"),
    ],
)
def test_the_hint_of_the_last_move_is_not_copied(annotations: dict[str, str], kept: list[Any]) -> None:
    spec = copying.of(original(**annotations), "copy", "m-1", KEYS)["spec"]
    assert spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == kept

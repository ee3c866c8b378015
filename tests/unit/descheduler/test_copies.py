"""Requests about copies, against an API that keeps pods: whose copy a pod is decides, not what it is called."""

from collections.abc import Iterator
from typing import Any

import pytest

from descheduler.migration.actions import CreateCopy, Evict, RemoveCopy, SeekCopy
from descheduler.migration.executor import Executor
from descheduler.migration.outcomes import MANAGER, Done, Failure, Overtaken
from policy import keys
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen, status
from tests.unit.descheduler import build

KEYS = keys.under()
PODS = "/api/v1/namespaces/default/pods"
COPY = "rescheduled-web-1780315200"
MOVE = build.thing("PodMigration", "m-1", spec={"podRef": {"name": "web"}})
MARKS = {KEYS.migration_id: "m-1"}
OURS = {"annotations": {KEYS.original_pod: "u-web"}}
BY_US = {"managedFields": [{"manager": MANAGER, "operation": "Update"}]}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
CREATE = CreateCopy("web", "u-web", COPY)


def pod(name: str, **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": "5", **meta},
        "spec": {"containers": []},
    }


class Pods:
    """Pods by name; `strips` is a webhook that takes marks off which it does not know."""

    def __init__(self, api: FakeApi) -> None:
        self.held = {"web": pod("web", labels=MARKS)}
        self.strips = self.refuses = False
        self.done: list[str] = []
        api.script = self
        self.executor = Executor(api.client(), KEYS)

    def __call__(self, seen: Seen) -> Answer:
        name = seen.path.removeprefix(PODS).strip("/").removesuffix("/eviction")
        if seen.method == "POST" and not name:
            return self._create(seen.body)
        if self.refuses:
            return status(403, "Forbidden")
        if name not in self.held:
            return status(404, "NotFound")
        if seen.method == "GET":
            return Answer(200, self.held[name])
        if seen.method == "PATCH":
            self.held[name] = build.merged(self.held[name], seen.body)
            self.done.append(f"mark {name}")
            return Answer(200, self.held[name])
        self.done.append(f"evict {name}")
        return Answer(201, {})

    def _create(self, body: dict[str, Any]) -> Answer:
        meta = body["metadata"]
        if meta["name"] in self.held:
            return status(409, "AlreadyExists")
        kept = {} if self.strips else {key: meta[key] for key in ("labels", "annotations")}
        self.held[meta["name"]] = pod(meta["name"], **kept, **BY_US)
        self.done.append(f"create {meta['name']}")
        return Answer(201, self.held[meta["name"]])


@pytest.fixture
def pods() -> Iterator[Pods]:
    with fake_api.running() as api:
        yield Pods(api)


def says(pods: Pods) -> object:
    return pods.held[COPY]["metadata"]["annotations"][KEYS.original_pod]


def test_a_copy_is_made_once(pods: Pods) -> None:
    assert isinstance(pods.executor.perform(MOVE, CREATE), Done)
    assert says(pods) == "u-web"
    assert pods.executor.perform(MOVE, CREATE) == Overtaken("the copy is there already")
    assert pods.done == [f"create {COPY}"]


def test_marks_that_a_webhook_took_off_are_set_again(pods: Pods) -> None:
    pods.strips = True
    made = pods.executor.perform(MOVE, CREATE)
    assert isinstance(made, Done)
    assert made.pod is not None
    assert made.pod.metadata.annotations[KEYS.original_pod] == says(pods) == "u-web"
    assert made.pod.metadata.labels[KEYS.migration_id] == "m-1"


BEARERS: dict[str, tuple[dict[str, Any], bool]] = {
    # what the pod under that name says, whether it is our copy
    "our copy": ({**OURS, "labels": MARKS}, True),
    "ours, its marks lost": (BY_US, True),
    "a copy of another pod": ({"annotations": {KEYS.original_pod: "u-other"}, **BY_US}, False),
    "somebody's pod": ({"managedFields": [{"manager": "kubectl"}]}, False),
}


@pytest.mark.parametrize(("meta", "ours"), BEARERS.values(), ids=BEARERS.keys())
def test_a_name_that_is_taken(pods: Pods, meta: dict[str, Any], ours: bool) -> None:
    pods.held[COPY] = pod(COPY, **meta)
    outcome = pods.executor.perform(MOVE, CREATE)
    if ours:
        assert outcome == Overtaken("the copy is there already")
        assert says(pods) == "u-web"
    else:
        assert outcome == Failure(f"pod {COPY} is no copy of web", counts=False, taken=True)
        assert pods.done == []


COPIES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    # its metadata, its status, whether the original may go
    "Ready": ({}, READY, True),
    "another one": ({"uid": "u-new"}, READY, False),
    "on its way out": ({"deletionTimestamp": "2026-06-01T12:00:00Z"}, READY, False),
    "crashed": ({}, {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, False),
    "ended": ({}, {**READY, "phase": "Failed"}, False),
}


@pytest.mark.parametrize(("meta", "said", "goes"), COPIES.values(), ids=COPIES.keys())
def test_the_original_goes_only_while_the_copy_is_ready(
    pods: Pods, meta: dict[str, Any], said: dict[str, Any], goes: bool
) -> None:
    pods.held[COPY] = {**pod(COPY, **meta), "status": said}
    outcome = pods.executor.perform(MOVE, Evict("web", "u-web", "5", copy=(COPY, f"u-{COPY}")))
    assert outcome == (Done() if goes else Overtaken("the copy is not Ready any more"))
    assert pods.done == (["evict web"] if goes else [])


def test_the_original_stays_when_the_copy_is_gone(pods: Pods) -> None:
    outcome = pods.executor.perform(MOVE, Evict("web", "u-web", "5", copy=(COPY, f"u-{COPY}")))
    assert isinstance(outcome, Overtaken)
    assert pods.done == []


def test_an_original_without_the_marks_of_the_move_is_not_copied(pods: Pods) -> None:
    """A process that stood still while another one called the move off."""
    del pods.held["web"]["metadata"]["labels"]
    assert isinstance(pods.executor.perform(MOVE, CREATE), Overtaken)
    assert pods.done == []


SOUGHT: dict[str, tuple[dict[str, Any] | None, bool]] = {
    "there is none": (None, False),
    "our copy": ({**OURS, "labels": MARKS}, True),
    "ours, its marks lost": (BY_US, True),
    "on its way out": ({**OURS, "deletionTimestamp": "2026-06-01T12:00:00Z"}, False),
    "somebody's pod": ({}, False),
}


@pytest.mark.parametrize(("meta", "goes"), SOUGHT.values(), ids=SOUGHT.keys())
def test_a_copy_that_nobody_has_seen_is_removed(pods: Pods, meta: dict[str, Any] | None, goes: bool) -> None:
    if meta is not None:
        pods.held[COPY] = pod(COPY, **meta)
    assert pods.executor.perform(MOVE, SeekCopy(COPY, "u-web")) == (Done() if goes else Done(absent=True))
    assert pods.done == ([f"evict {COPY}"] if goes else [])


def test_a_look_that_is_denied_says_nothing_about_the_copy(pods: Pods) -> None:
    """An apiserver that has just started denies everybody for a moment."""
    pods.held[COPY] = pod(COPY, annotations={KEYS.original_pod: "u-web"})
    pods.refuses = True
    assert isinstance(pods.executor.perform(MOVE, SeekCopy(COPY, "u-web")), Failure)
    pods.refuses = False
    assert pods.executor.perform(MOVE, SeekCopy(COPY, "u-web")) == Done()
    assert pods.done == [f"evict {COPY}"]


ORIGINALS: dict[str, tuple[dict[str, Any], bool]] = {
    # what the original says by now, whether its abandoned copy goes
    "lives on": ({}, True),
    "is moved by another": ({"labels": {KEYS.migration_id: "m-2"}}, True),
    "is moved by the move that made it": ({"labels": MARKS}, False),
    "is another pod": ({"uid": "u-new"}, False),
    "is on its way out": ({"deletionTimestamp": "2026-06-01T12:00:00Z"}, False),
}


@pytest.mark.parametrize(("meta", "goes"), ORIGINALS.values(), ids=ORIGINALS.keys())
def test_an_abandoned_copy_goes_while_its_original_stays(pods: Pods, meta: dict[str, Any], goes: bool) -> None:
    pods.held |= {"web": pod("web", **meta), COPY: pod(COPY, **OURS)}
    outcome = pods.executor.clear("default", RemoveCopy(COPY, f"u-{COPY}", "5", ("web", "u-web", "m-1")))
    assert outcome == (Done() if goes else Overtaken("its original is gone, or is being moved"))
    assert pods.done == ([f"evict {COPY}"] if goes else [])


def test_another_pod_under_the_old_name_is_not_copied(pods: Pods) -> None:
    pods.held["web"]["metadata"]["uid"] = "u-new"
    assert pods.executor.perform(MOVE, CREATE) == Overtaken("another pod has its name", gone=True)
    assert pods.done == []

"""Marks that no migration answers for are taken back, and no others."""

from typing import Any

import pytest

from descheduler.migration import leftovers, machine
from descheduler.migration.actions import MarkPod, MarkWorkload, RemoveCopy
from policy import keys
from tests.unit.descheduler import build

KEYS = keys.under()
OPEN = {"phase": "InProgress", "step": "Mark"}
LEAVING = {"phase": "Cancelled"}


def move(status: dict[str, Any] | None, *, held: bool) -> list[Any]:
    if status is None:
        return []
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": build.owner("Deployment", "web")["uid"],
    }
    meta = {"finalizers": [machine.FINALIZER] if held else []}
    status = {**status, "resolved": {"workload": workload}}
    return [build.thing("PodMigration", "m-1", metadata=meta, spec={"podRef": {"name": "web-1"}}, status=status)]


CASES: dict[str, tuple[dict[str, Any] | None, bool, str, bool]] = {
    # status of the migration, whether it holds its finalizer, status on the pod, whether marks are taken back
    "under way": (OPEN, True, "in-progress", False),
    "over, clearing away itself": (LEAVING, True, "in-progress", False),
    "over": (LEAVING, False, "in-progress", True),
    "gone": (None, False, "in-progress", True),
    "gone, made by the webhook": (None, False, "pending", True),
    "a moved pod tells where it came from": (None, False, "completed", False),
    "a pod whose move failed too": (None, False, "failed", False),
}


@pytest.mark.parametrize(("status", "held", "said", "taken_back"), CASES.values(), ids=CASES.keys())
def test_marks_of_pods(status: dict[str, Any] | None, held: bool, said: str, taken_back: bool) -> None:
    labels = {KEYS.migration_id: "m-1", KEYS.migration_status: said, "app": "web"}
    pod = build.pod("web-1", on="a", metadata={"labels": labels, "annotations": {KEYS.migration_time: "now"}})
    found = list(leftovers.find(build.state(pod, *move(status, held=held)), KEYS))
    nothing = {KEYS.migration_id: None, KEYS.migration_status: None}
    expected = MarkPod("web-1", pod.metadata.uid, nothing, {KEYS.migration_time: None})
    assert found == ([("default", expected)] if taken_back else [])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize(("status", "held", "said", "taken_back"), CASES.values(), ids=CASES.keys())
def test_a_pod_that_ended_meanwhile_does_not_keep_its_marks(
    status: dict[str, Any] | None, held: bool, said: str, taken_back: bool, phase: str
) -> None:
    labels = {KEYS.migration_id: "m-1", KEYS.migration_status: said}
    meta = {"labels": labels, "ownerReferences": [build.owner("Job", "job")]}
    running = build.pod("job-1", on="a", metadata=meta)
    state = build.state(running, *move(status, held=held))
    state.apply(running, build.pod("job-1", on="a", metadata=meta, status={"phase": phase}))
    assert not state.pods
    assert [it.name for _, it in leftovers.find(state, KEYS)] == (["job-1"] if taken_back else [])


@pytest.mark.parametrize(("status", "held"), [(OPEN, True), (LEAVING, True), (LEAVING, False), (None, False)])
def test_marks_of_workloads(status: dict[str, Any] | None, held: bool) -> None:
    web = build.thing("Deployment", "web", metadata={"labels": {KEYS.moving: "m-1"}})
    found = list(leftovers.find(build.state(web, *move(status, held=held)), KEYS))
    expected = MarkWorkload("Deployment", "web", web.metadata.uid, None)
    assert found == ([] if held else [("default", expected)])


COPY = "rescheduled-web-1780315200"
WEB, STARTS = build.pod("web", on="a"), build.pod("web", on="a", ready=False)
GOING = {"deletionTimestamp": "2026-06-01T12:00:00Z"}
STOOD_IN = {"replacement": {"name": COPY, "uid": f"uid-default-{COPY}"}}
MADE_OF = {KEYS.original_pod: "uid-default-web", KEYS.original_pod_name: "web"}
COPIES: dict[str, tuple[list[Any], dict[str, Any], bool]] = {
    # what else there is, what differs on the copy, whether it goes
    "its original lives on": ([WEB], {}, True),
    "its original is not Ready, and neither is it": ([STARTS], {"ready": False}, True),
    "its original is not Ready, and it serves": ([STARTS], {}, False),
    "though it has ended": ([WEB], {"status": {"phase": "Failed"}}, True),
    "though its move says that it was the replacement": ([WEB, *move({**LEAVING, **STOOD_IN}, held=False)], {}, True),
    "its move is under way": ([WEB, *move(OPEN, held=True)], {}, False),
    "its move clears away itself": ([WEB, *move(LEAVING, held=True)], {}, False),
    "it has taken over": ([WEB, *move({"phase": "Completed", **STOOD_IN}, held=False)], {}, False),
    "its original is gone": ([], {}, False),
    "its original is going": ([build.pod("web", on="a", metadata=GOING)], {}, False),
    "another pod has the name of its original": ([build.pod("web", on="a", metadata={"uid": "u-new"})], {}, False),
    "it is called otherwise": ([WEB], {"metadata": {"name": "mine"}}, False),
    "it belongs to somebody": ([WEB], {"of": build.owner("ReplicaSet", "web")}, False),
}


@pytest.mark.parametrize(("also", "more", "goes"), COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("said", [{}, {KEYS.migration_status: "in-progress"}], ids=["bare", "marked by the webhook"])
def test_copies(said: dict[str, str], also: list[Any], more: dict[str, Any], goes: bool) -> None:
    meta = {"labels": {KEYS.migration_id: "m-1", **said}, "annotations": MADE_OF, **more.get("metadata", {})}
    copy = build.pod(COPY, on="b", **{**more, "metadata": meta})
    found = [it for _, it in leftovers.find(build.state(copy, *also), KEYS) if isinstance(it, RemoveCopy)]
    wanted = RemoveCopy(copy.metadata.name, copy.metadata.uid, "1", ("web", "uid-default-web", "m-1"))
    assert found == ([wanted] if goes else [])


def test_a_copy_that_serves_alone_stays_known_as_one() -> None:
    """Without its marks nobody would take it back when its original is Ready."""
    meta = {"labels": {KEYS.migration_id: "m-1", KEYS.migration_status: "in-progress"}, "annotations": MADE_OF}
    state = build.state(build.pod(COPY, on="b", metadata=meta), STARTS)
    assert list(leftovers.find(state, KEYS)) == []

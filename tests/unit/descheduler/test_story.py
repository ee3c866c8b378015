"""What the log tells of one move: which line for what happened, with which fields, and never twice."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster.objects import PodMigration
from descheduler.migration import endings
from descheduler.migration.actions import (
    Action,
    Adopt,
    CreateCopy,
    Evict,
    MarkPod,
    MarkWorkload,
    Release,
    RemoveCopy,
    Scale,
    Wait,
    Write,
)
from descheduler.migration.outcomes import Done, Failure, Outcome, Overtaken
from descheduler.story import Story
from telemetry.logs import Logger
from tests.unit.descheduler import build

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
STARTED = "2026-06-01T11:59:50Z"
LATER = endings.text_of(NOW + timedelta(seconds=4))
WORKLOAD = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u"}
RESOLVED = {"workload": WORKLOAD, "sourceNode": "a", "targetNode": "b", "podUid": "p"}
LANDED = {"name": "web-2", "uid": "r", "node": "b"}
UNMARK = MarkPod("web-1", "p", {"our-label": None}, {"our-note": None})

Status = dict[str, Any]
Told = list[dict[str, Any]]


def move(status: Status) -> PodMigration:
    known = {"phase": "InProgress", "startedAt": STARTED, "resolved": RESOLVED}
    found: PodMigration = build.thing(
        "PodMigration",
        "m",
        spec={"podRef": {"name": "web-1"}, "strategy": "LoadBalancing"},
        status={**known, **status},
    )
    return found


def told(status: Status, action: Action, outcome: Outcome, *, guided: bool = True) -> Told:
    """The lines without what stands on each of them, which is checked here."""
    lines: list[Mapping[str, Any]] = []
    story = Story(Logger(lines.append, now=lambda: NOW, strict=True), lambda: guided)
    story.performed(move(status), action, outcome, NOW)
    assert all((it["migration"], it["namespace"], it["pod"]) == ("m", "default", "web-1") for it in lines)
    common = {"time", "level", "message", "migration", "namespace", "pod"}
    return [{key: value for key, value in it.items() if key not in common} for it in lines]


def at(step: str, **intent: Any) -> Status:
    return {"step": step, "intent": intent}


ACTIONS: dict[str, tuple[Status, Action, Told]] = {
    "the pod is evicted": (
        at("Evict"),
        Evict("web-1", "p", "1"),
        [{"event": "EVICTED", "sourceNode": "a", "strategy": "LoadBalancing"}],
    ),
    "one replica more": (
        at("SurgeUp"),
        Scale("Deployment", "web", "u", 1, 2),
        [{"event": "SURGED", "workload": "Deployment/web", "count": 2}],
    ),
    "as many as before": (
        at("SurgeDown"),
        Scale("Deployment", "web", "u", 2, 1, owned=True),
        [{"event": "SURGE_ENDED", "workload": "Deployment/web", "count": 1}],
    ),
    "a copy": (
        at("CreateCopy"),
        CreateCopy("web-1", "p", "rescheduled-web-1"),
        [{"event": "COPY_CREATED", "newPod": "rescheduled-web-1", "preferredNode": "b"}],
    ),
    "marks taken off when called off": (
        at("Mark"),
        UNMARK,
        [{"event": "ROLLED_BACK", "step": "Mark", "reason": "cancelled"}],
    ),
    "marks taken off when given up": (
        at("Evict", ending="Failed"),
        UNMARK,
        [{"event": "ROLLED_BACK", "step": "Evict", "reason": "failed"}],
    ),
    "marks taken off with a copy, which goes first": (at("RemoveCopy"), UNMARK, []),
    "marks taken off after the end": ({"phase": "Failed", **at("Evict")}, UNMARK, []),
    "marks": (at("Mark"), MarkPod("web-1", "p", {"our-label": "m"}), []),
    "a deletion cost": (at("SurgeDown"), MarkPod("web-1", "p", annotations={"cost": None}), []),
    "a mark on the workload": (at("Mark"), MarkWorkload("Deployment", "web", "u", "m"), []),
    "its finalizer": (at(""), Adopt(), []),
    "the copy goes": (at("RemoveCopy"), RemoveCopy("rescheduled-web-1", "c", "1"), []),
    "nothing": (at("Mark"), Wait(NOW), []),
    "the finalizer goes": (
        {"phase": "Completed", "finishedAt": "2026-06-01T11:59:59Z"},
        Release(),
        [{"event": "CLEANED_UP", "seconds": 1.0}],
    ),
}


@pytest.mark.parametrize(("status", "action", "lines"), ACTIONS.values(), ids=ACTIONS.keys())
def test_what_was_done(status: Status, action: Action, lines: Told) -> None:
    assert told(status, action, Done()) == lines
    assert told(status, action, Overtaken("somebody was faster")) == [], "it did not happen"


def ended(phase: str, message: str = "so it is", **more: Any) -> Status:
    return {"phase": phase, "message": message, "finishedAt": "2026-06-01T12:00:00Z", **more}


READY = {"event": "REPLACEMENT_READY", "newPod": "web-2", "targetNode": "b", "onTarget": True, "seconds": 10.0}
BACK = {"ending": "Failed", "why": "so it is"}
FAILED = {"event": "MIGRATION_FAILED", "reason": "failed", "attempt": 1, "detail": "so it is"}
CANCELLED = {"event": "MIGRATION_CANCELLED", "reason": "cancelled", "detail": "so it is"}

WRITES: dict[str, tuple[Status, Status, Write, Told]] = {
    "ready after the eviction": (
        at("AwaitReplacement"),
        {**at("Settle"), "replacement": LANDED, "onTarget": True},
        Write({}, ready=True),
        [READY],
    ),
    "ready beside its target": (
        at("AwaitReplacement"),
        {**at("Settle"), "replacement": {**LANDED, "node": "c"}, "onTarget": False},
        Write({}, ready=True),
        [{**READY, "targetNode": "c", "onTarget": False}],
    ),
    "ready before the original goes": (
        at("AwaitAvailable"),
        {**at("SurgeDown"), "replacement": LANDED},
        Write({}, ready=True),
        [READY],
    ),
    "the next step": (at("Mark"), at("Evict"), Write({}), []),
    "tried again": (
        at("Evict", retryAt="2026-06-01T11:59:58Z"),
        {**at("Evict", retryAt=LATER), "attempts": 2, "message": "PDB_NO_BUDGET: web"},
        Write({}),
        [{"event": "RETRIED", "step": "Evict", "attempt": 2, "delaySeconds": 4.0, "error": "PDB_NO_BUDGET: web"}],
    ),
    "tried again though nothing counts": (
        at("Evict", retryAt="2026-06-01T11:59:58Z", tries=6),
        {**at("Evict", retryAt=LATER, tries=7), "message": "PDB_NO_BUDGET: web"},
        Write({}),
        [{"event": "RETRIED", "step": "Evict", "attempt": 7, "delaySeconds": 4.0, "error": "PDB_NO_BUDGET: web"}],
    ),
    "a note beside the last retry": (at("Evict", retryAt=LATER), at("Evict", retryAt=LATER), Write({}), []),
    "finished": (
        at("Settle"),
        {**ended("Completed"), **at("Settle"), "replacement": LANDED, "onTarget": True},
        Write({}, event="MoveCompleted so"),
        [
            {
                "event": "MIGRATION_FINISHED",
                "reason": "onTarget",
                "sourceNode": "a",
                "targetNode": "b",
                "onTarget": True,
                "seconds": 10.0,
            }
        ],
    ),
    "late, and that is the end": (
        at("AwaitReplacement", evictedAt="2026-06-01T11:59:55Z"),
        {**ended("Failed"), **at("AwaitReplacement")},
        Write({}, event="MoveFailed so", late=True),
        [
            {"event": "TIMED_OUT", "step": "AwaitReplacement", "seconds": 5.0},
            {**FAILED, "step": "AwaitReplacement"},
        ],
    ),
    "late, and back": (
        at("AwaitAvailable", scaledAt="2026-06-01T11:59:57Z"),
        at("SurgeBack", **BACK),
        Write({}, late=True),
        [{"event": "TIMED_OUT", "step": "AwaitAvailable", "seconds": 3.0}],
    ),
    "back, with the number as it was": (
        at("SurgeBack", **BACK),
        {**ended("Failed"), **at("SurgeBack")},
        Write({}, event="MoveFailed so"),
        [{"event": "ROLLED_BACK", "step": "SurgeBack", "reason": "failed"}, {**FAILED, "step": "SurgeBack"}],
    ),
    "back, with a number that is not ours any more": (
        at("SurgeBack", left=True, **BACK),
        {**ended("Failed"), **at("SurgeBack")},
        Write({}, event="MoveFailed so"),
        [{**FAILED, "step": "SurgeBack"}],
    ),
    "the namespace goes meanwhile": (
        at("RemoveCopy", ending="Cancelled", why="called off"),
        {**ended("Cancelled"), **at("RemoveCopy")},
        Write({}, event="MoveCancelled so"),
        [{**CANCELLED, "step": "RemoveCopy"}],
    ),
    "refused before anything was done": (
        {"phase": "", "resolved": None, "startedAt": None},
        {**ended("Cancelled"), "resolved": None, "startedAt": None},
        Write({}, event="MoveCancelled so"),
        [{**CANCELLED, "step": "Guard"}],
    ),
}


@pytest.mark.parametrize(("before", "after", "action", "lines"), WRITES.values(), ids=WRITES.keys())
def test_what_was_written_down(before: Status, after: Status, action: Write, lines: Told) -> None:
    assert told(before, action, Done(move(after))) == lines


@pytest.mark.parametrize("guided", [True, False], ids=["guided", "unguided"])
def test_the_start_and_the_hint(guided: bool) -> None:
    found = told({"phase": ""}, Write({}, event="MoveStarted moving"), Done(move(at("Guard"))), guided=guided)
    started = {
        "event": "MIGRATION_STARTED",
        "strategy": "LoadBalancing",
        "mode": "Evict",
        "sourceNode": "a",
        "targetNode": "b",
        "workload": "Deployment/web",
    }
    hint = {"event": "HINT_PUBLISHED", "preferredNode": "b", "avoidNode": "a"}
    assert found == ([started, hint] if guided else [started])


FAILURES: dict[str, tuple[Status, Action, int]] = {
    "one that the status will tell of": (at("Evict"), Evict("web-1", "p", "1"), 0),
    "of the write itself": (at("Evict"), Write({}), 1),
    "while clearing away": ({"phase": "Completed"}, UNMARK, 1),
}


@pytest.mark.parametrize(("status", "action", "lines"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_is_told_once(status: Status, action: Action, lines: int) -> None:
    found = told(status, action, Failure("no answer", retry_after=timedelta(seconds=9)))
    assert [(it["event"], it["delaySeconds"], it["error"]) for it in found] == [("RETRIED", 9.0, "no answer")] * lines

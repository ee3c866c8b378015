"""What is written on nodes: cordon, progress, and everything taken back."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from descheduler import maintenance, marks, plan
from descheduler.guards import Context
from descheduler.requests import Request, Verb
from policy import keys
from policy.drain_status import Stage
from policy.settings import Settings
from policy.settings_strategies import NodeMaintenance, OnDeadline, Strategies
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment

KEYS = keys.under()
LABEL = {KEYS.maintenance: "true"}
SINCE = "2026-03-01T11:00:00Z"
DRAINING = {KEYS.cordoned_by: "spotshift", KEYS.maintenance_since: SINCE}
OPTED_OUT = {KEYS.rescheduling: "disabled"}


def written(*objects: Any, settings: Settings | None = None, may_begin: bool = True) -> list[Request]:
    used = settings or Settings()
    state = build.state(*objects, settings=used)
    context = Context(state, used, KEYS, NOW, {})
    made = plan.make(state, used, NOW)
    seen = maintenance.look(context)
    back = marks.requests(context, drained={it.drain.name for it in seen}, lost=set())
    return [*back, *maintenance.requests(seen, context, made, may_begin=may_begin)]


def annotations(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = request.body["metadata"]["annotations"]
    return found


def test_cordon_place_and_progress_come_in_one_patch() -> None:
    (request,) = written(build.node("a", labels=LABEL), build.node("b"), *deployment("x", ["a", "a", "b"]))
    assert (request.verb, request.name, request.body["spec"]) == (Verb.PATCH, "a", {"unschedulable": True})
    assert request.body["metadata"]["resourceVersion"] == "1", "a label that is gone makes it a conflict"
    assert annotations(request) == {
        KEYS.cordoned_by: "spotshift",
        KEYS.maintenance_since: "2026-03-01T12:00:00Z",
        KEYS.maintenance_status: "draining 0/2",
        KEYS.maintenance_remaining: "default/x-00: to be moved\ndefault/x-01: to be moved",
    }


STAGES = {
    "all are left": ({}, ["a"] * 3, "draining 0/3"),
    "some have gone": ({KEYS.maintenance_status: "draining 1/12"}, ["a"] * 3, "draining 9/12"),
    "more than before": ({KEYS.maintenance_status: "draining 1/2"}, ["a"] * 3, "draining 0/3"),
    "nothing left": ({KEYS.maintenance_status: "draining 1/12"}, [], "drained"),
    "somebody wrote nonsense": ({KEYS.maintenance_status: "draining 1/x"}, ["a"], "draining 0/1"),
    "and more of it": ({KEYS.maintenance_status: "/99999999999999999999"}, ["a"], "draining 0/1"),
}


@pytest.mark.parametrize(("before", "on", "expected"), STAGES.values(), ids=STAGES.keys())
def test_how_far_it_is(before: dict[str, str], on: list[str], expected: str) -> None:
    node = build.node("a", labels=LABEL, annotations={**DRAINING, **before}, unschedulable=True)
    (request,) = written(node, build.node("b"), *deployment("x", on))
    assert annotations(request)[KEYS.maintenance_status] == expected
    assert "spec" not in request.body
    assert KEYS.cordoned_by not in annotations(request)


def test_nothing_is_written_when_nothing_has_changed() -> None:
    told = {KEYS.maintenance_status: "draining 0/1", KEYS.maintenance_remaining: "default/x-00: to be moved"}
    node = build.node("a", labels=LABEL, annotations={**DRAINING, **told}, unschedulable=True)
    assert written(node, build.node("b"), *deployment("x", ["a"])) == []


def test_a_cordon_of_somebody_else_is_not_marked() -> None:
    (request,) = written(build.node("a", labels=LABEL, unschedulable=True))
    assert "spec" not in request.body
    assert set(annotations(request)) == {KEYS.maintenance_since, KEYS.maintenance_status}


def daemon() -> Any:
    return build.pod("agent", on="a", of=build.owner("DaemonSet", "agent"))


def test_what_stays_is_named_and_does_not_hold_up_the_drain() -> None:
    out = deployment("out", ["a"], annotations=OPTED_OUT)
    (request,) = written(build.node("a", labels=LABEL), daemon(), build.pod("bare", on="a"), *out)
    told = annotations(request)
    assert told[KEYS.maintenance_status] == "drained"
    lines = told[KEYS.maintenance_remaining].splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["default/bare", "NO_CONTROLLER"],
        ["default/out-00", "OPTED_OUT"],
    ]


def test_a_pod_that_only_ends_is_not_called_moving() -> None:
    ending = build.pod("bare", on="a", metadata={"deletionTimestamp": "2026-03-01T11:59:59Z"})
    (request,) = written(build.node("a", labels=LABEL), build.node("b"), ending)
    assert annotations(request)[KEYS.maintenance_remaining] == "default/bare: terminating"


AUTOSCALED = build.thing(
    "HorizontalPodAutoscaler", "auto", spec={"scaleTargetRef": {"kind": "Deployment", "name": "x"}}
)
"""Keeps the workload from being doubled."""


def test_a_budget_is_named() -> None:
    objects = [
        build.node("a", labels=LABEL),
        build.node("b"),
        *deployment("x", ["a", "b"]),
        build.budget("x", allowed=0, labels={"app": "x"}),
        AUTOSCALED,
    ]
    (request,) = written(*objects)
    assert "x-00: PDB_NO_BUDGET: PodDisruptionBudget x" in annotations(request)[KEYS.maintenance_remaining]


def test_the_list_of_pods_is_bounded() -> None:
    out = deployment("out", ["a"] * 99, annotations=OPTED_OUT)
    (request,) = written(build.node("a", labels=LABEL), *out)
    text = annotations(request)[KEYS.maintenance_remaining]
    assert len(text) < maintenance.REMAINING + 20
    assert text.splitlines()[-1] == f"and {99 - len(text.splitlines()) + 1} more"


def test_others_wait_their_turn_but_are_cordoned() -> None:
    objects = [build.node(name, labels=LABEL) for name in "abc"]
    found = {it.name: it for it in written(*objects, build.node("d"), *deployment("x", ["a", "b"]))}
    assert {name: annotations(it)[KEYS.maintenance_status] for name, it in found.items()} == {
        "a": "draining 0/1",
        "b": "waiting 0/1",
        "c": "drained",
    }
    told = "default/x-01: to be moved after node a is empty"
    assert annotations(found["b"])[KEYS.maintenance_remaining] == told, "and say for whom they wait"
    assert all(it.body["spec"] == {"unschedulable": True} for it in found.values())


GONE = {
    "our cordon": (DRAINING, True, {"unschedulable": None}, "Uncordoned"),
    "a cordon that was there": ({KEYS.maintenance_since: SINCE}, True, None, "MaintenanceEnded"),
    "a cordon of ours that somebody lifted": (DRAINING, False, None, "MaintenanceEnded"),
    "only words": ({KEYS.maintenance_status: "drained"}, False, None, "MaintenanceEnded"),
}


@pytest.mark.parametrize("may_begin", [True, False], ids=["going on", "stopped"])
@pytest.mark.parametrize(("marks", "cordoned", "spec", "told"), GONE.values(), ids=GONE.keys())
def test_without_the_label_it_is_as_it_was_found(
    marks: dict[str, str], cordoned: bool, spec: Any, told: str, may_begin: bool
) -> None:
    node = build.node("a", annotations={**marks, "of": "others"}, unschedulable=cordoned)
    (request,) = written(node, may_begin=may_begin)
    assert annotations(request) == dict.fromkeys(marks)
    assert request.body.get("spec") == spec
    assert [it.topic.reason for it in request.events] == [told]


def test_nothing_begins_while_everything_is_stopped() -> None:
    assert written(build.node("a", labels=LABEL), may_begin=False) == []


def deadline(at: datetime) -> dict[str, str]:
    return {KEYS.maintenance_deadline: at.isoformat()}


LATE, EARLY = deadline(NOW - timedelta(seconds=1)), deadline(NOW + timedelta(hours=1))
OVERDUE = {
    "past, delete": (LATE, OnDeadline.DELETE, 0, ["x-00"]),
    "past, respect": (LATE, OnDeadline.RESPECT, 0, []),
    "not past": (EARLY, OnDeadline.DELETE, 0, []),
    "no deadline": ({}, OnDeadline.DELETE, 0, []),
}


@pytest.mark.parametrize("others", [[], ["b"]], ids=["the only one", "one of two"])
@pytest.mark.parametrize(("marks", "choice", "allowed", "expected"), OVERDUE.values(), ids=OVERDUE.keys())
def test_pods_that_only_a_budget_holds_are_deleted_at_the_deadline(
    marks: dict[str, str], choice: OnDeadline, allowed: int, expected: list[str], others: list[str]
) -> None:
    settings = Settings(strategies=Strategies(node_maintenance=NodeMaintenance(on_deadline=choice)))
    objects = [
        build.node("a", labels=LABEL, annotations=marks),
        build.node("b"),
        *deployment("x", ["a", *others]),
        AUTOSCALED,
        build.budget("x", allowed=allowed, labels={"app": "x"}),
        *deployment("out", ["a"], annotations=OPTED_OUT),
    ]
    found = written(*objects, settings=settings)
    assert [it.name for it in found if it.verb is Verb.DELETE] == expected


def test_at_the_deadline_a_pod_that_its_budget_lets_go_is_not_deleted() -> None:
    settings = Settings(strategies=Strategies(node_maintenance=NodeMaintenance(on_deadline=OnDeadline.DELETE)))
    objects = [build.node("a", labels=LABEL, annotations=LATE), build.node("b"), *deployment("x", ["a", "b"])]
    found = written(*objects, build.budget("x", allowed=1, labels={"app": "x"}), settings=settings)
    assert [it.name for it in found if it.verb is Verb.DELETE] == []


@pytest.mark.parametrize("cordoned", [True, False], ids=["cordoned", "not yet"])
def test_pods_leave_after_the_cordon(cordoned: bool) -> None:
    objects = [build.node("a", labels=LABEL, unschedulable=cordoned), build.node("b"), *deployment("x", ["a"])]
    state = build.state(*objects)
    made = plan.make(state, Settings(), NOW)
    assert len(made.moves) == 1, "a plan tells what would be done"
    assert len(maintenance.sendable(made.moves, state)) == int(cordoned)


def test_the_stage_is_what_the_metric_counts() -> None:
    context = Context(build.state(build.node("a", labels=LABEL)), Settings(), KEYS, NOW, {})
    assert [(it.stage, it.to_go) for it in maintenance.look(context)] == [(Stage.DRAINED, 0)]

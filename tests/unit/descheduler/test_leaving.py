"""What is written on a node that is being lost, what is taken back, and what is deleted in the end."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from descheduler import interruption, leaving, marks, plan
from descheduler.guards import Context
from descheduler.requests import Request, Verb
from policy import keys
from policy.settings import Settings
from policy.settings_strategies import OnDeadline, SpotInterruption, Strategies
from telemetry.metrics import Metric
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment
from tests.unit.descheduler.test_interruption import ITN, REBALANCE, ago, noted, silent, taint, text, zone

KEYS = keys.under()
DELETING = Settings(strategies=Strategies(spot_interruption=SpotInterruption(on_deadline=OnDeadline.DELETE)))
CORDONED = {KEYS.cordoned_by: "spotshift"}


def written(*objects: Any, settings: Settings | None = None, may_begin: bool = True) -> list[Request]:
    used = settings or Settings()
    state = build.state(*objects, settings=used)
    context = Context(state, used, KEYS, NOW, {})
    made = plan.make(state, used, NOW)
    seen = leaving.look(context)
    back = marks.requests(context, drained=set(), lost={it.loss.name for it in seen})
    return [*leaving.requests(seen, context, made, may_begin=may_begin), *back]


def annotations(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = request.body["metadata"]["annotations"]
    return found


def test_cordon_cause_and_first_sight_come_in_one_patch() -> None:
    (request,) = written(build.node("a", spot=True, taints=[taint(ITN)]), *deployment("x", ["a", "a"]))
    assert (request.verb, request.name, request.body["spec"]) == (Verb.PATCH, "a", {"unschedulable": True})
    assert request.body["metadata"]["resourceVersion"] == "1"
    assert annotations(request) == {
        KEYS.cordoned_by: "spotshift",
        KEYS.interruption_cause: f"taint {ITN}",
        KEYS.interruption_since: text(NOW),
        KEYS.interruption_deadline: text(ago(-120)),
    }
    (said,) = request.events
    assert (said.topic.reason, said.note) == (
        "Interrupted",
        f"taint {ITN}: 2 pods have to leave by 2026-03-01T12:02:00Z",
    )


NOTED = {**noted(f"taint {ITN}", 30, 90), **CORDONED}
WRITES: dict[str, tuple[dict[str, Any], set[str] | None]] = {
    "all is said": ({"taints": [taint(ITN)], "annotations": NOTED, "unschedulable": True}, None),
    "somebody else had cordoned": (
        {"taints": [taint(ITN)], "unschedulable": True},
        {KEYS.interruption_cause, KEYS.interruption_since, KEYS.interruption_deadline},
    ),
    "somebody lifted the cordon": ({"taints": [taint(ITN)], "annotations": NOTED}, set()),
    "what may be taken back has no deadline that stands": (
        {"taints": [taint(REBALANCE)]},
        {KEYS.cordoned_by, KEYS.interruption_cause, KEYS.interruption_since},
    ),
}


@pytest.mark.parametrize(("node", "expected"), WRITES.values(), ids=WRITES.keys())
def test_only_what_is_new_is_written(node: dict[str, Any], expected: set[str] | None) -> None:
    found = written(build.node("a", spot=True, **node), *deployment("x", ["a"]))
    assert [set(annotations(it)) for it in found] == ([] if expected is None else [expected])


def test_nothing_is_written_while_nothing_may_be_begun() -> None:
    assert written(build.node("a", taints=[taint(ITN)]), may_begin=False) == []


BACK: dict[str, tuple[dict[str, str], bool, str]] = {
    "our cordon": ({**noted(f"taint {REBALANCE}", 60), **CORDONED}, True, "Uncordoned"),
    "another's": (noted(f"taint {REBALANCE}", 60), False, "InterruptionEnded"),
    "it is heard of again": ({**noted("NotReady", 90), **CORDONED}, True, "Uncordoned"),
    "it lived on after its deadline": ({**noted(f"taint {ITN}", 130, -10), **CORDONED}, True, "Uncordoned"),
}


@pytest.mark.parametrize(("notes", "lifts", "reason"), BACK.values(), ids=BACK.keys())
def test_what_is_over_is_taken_back(notes: dict[str, str], lifts: bool, reason: str) -> None:
    (request,) = written(build.node("a", spot=True, annotations=notes, unschedulable=True), may_begin=False)
    assert annotations(request) == dict.fromkeys(notes)
    assert request.body.get("spec") == ({"unschedulable": None} if lifts else None)
    assert [it.topic.reason for it in request.events] == [reason]


@pytest.mark.parametrize(
    ("drained", "lost", "expected"),
    [
        pytest.param(True, True, None, id="both go on"),
        pytest.param(True, False, {KEYS.interruption_cause, KEYS.interruption_since}, id="a drain goes on"),
        pytest.param(False, True, {KEYS.maintenance_since}, id="a loss goes on"),
        pytest.param(
            False,
            False,
            {KEYS.interruption_cause, KEYS.interruption_since, KEYS.maintenance_since, KEYS.cordoned_by},
            id="neither",
        ),
    ],
)
def test_the_cordon_goes_with_the_last(drained: bool, lost: bool, expected: set[str] | None) -> None:
    notes = {**noted(f"taint {REBALANCE}", 60), KEYS.maintenance_since: text(NOW), **CORDONED}
    state = build.state(build.node("a", annotations=notes, unschedulable=True))
    context = Context(state, Settings(), KEYS, NOW, {})
    found = list(marks.requests(context, drained={"a"} if drained else set(), lost={"a"} if lost else set()))
    assert [set(annotations(it)) for it in found] == ([] if expected is None else [expected])
    assert ["spec" in it.body for it in found] == ([] if expected is None else [not drained and not lost])


def blocked(pod: str) -> Any:
    intent = {"action": "Evict", "blocked": True}
    status = {"phase": "InProgress", "step": "Evict", "message": "PDB_NO_BUDGET: no", "intent": intent}
    return build.thing("PodMigration", f"m-{pod}", spec={"podRef": {"name": pod}}, status=status)


def grace(seconds: int) -> dict[str, int]:
    return {"terminationGracePeriodSeconds": seconds}


def going(deadline: float, **more: Any) -> Any:
    return build.node("a", spot=True, taints=[taint(ITN, ago(120 - deadline))], **more)


DELETIONS: dict[str, tuple[Any, dict[str, Any], list[Any], Settings, bool]] = {
    "its grace period is all that is left": (going(30), grace(30), [blocked("x-00")], DELETING, True),
    "there is time": (going(31), grace(30), [blocked("x-00")], DELETING, False),
    "the deadline has passed": (going(-5), grace(0), [blocked("x-00")], DELETING, True),
    "budgets are respected by default": (going(1), grace(30), [blocked("x-00")], Settings(), False),
    "no budget holds it": (going(1), grace(30), [], DELETING, False),
    "no deadline": (silent("a", 600), grace(30), [blocked("x-00")], DELETING, False),
}


@pytest.mark.parametrize(("node", "spec", "more", "settings", "expected"), DELETIONS.values(), ids=DELETIONS.keys())
def test_deleting_past_a_budget(
    node: Any, spec: dict[str, Any], more: list[Any], settings: Settings, expected: bool
) -> None:
    others = [build.node(f"r{number}", spot=True) for number in range(3)]
    found = written(node, *others, *deployment("x", ["a", "r0"], spec=spec), *more, settings=settings)
    deletions = [it for it in found if it.verb is Verb.DELETE]
    assert [it.name for it in deletions] == (["x-00"] if expected else [])
    for it in deletions:
        assert (it.uid, it.version) == ("uid-default-x-00", "1")
        assert it.counts == (Metric.DELETED_PAST_BUDGET,)
        assert [said.topic.reason for said in it.events] == ["DeletedPastBudget"] * 2


def test_a_partition_is_told_on_every_node_that_is_left_alone() -> None:
    nodes = zone("z", 6, 4)
    state = build.state(*nodes, *deployment("x", ["z-s0", "z-s1"]))
    told = list(leaving.partitions(Context(state, Settings(), KEYS, NOW, {})))
    assert {it.subject.name for it in told} == {"z-s0", "z-s1"}
    why = "taken for a failure of the network, nothing is evicted"
    assert {it.note for it in told} == {f"NotReady, but 6 of 10 spot nodes are NotReady: {why}"}


def dying(pod: Any, at: datetime) -> Any:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=at))


def test_pods_that_cannot_be_seen_to_stop() -> None:
    *rest, late, soon, alive = deployment("x", ["a"] * 3)
    ready = [build.node(f"r{number}", spot=True, zone="z") for number in range(3)]
    gone = [dying(late, ago(1)), dying(soon, ago(-5))]
    context = Context(build.state(silent("a", 90), *ready, *rest, *gone, alive), Settings(), KEYS, NOW, {})
    (departure,) = leaving.look(context)
    assert [it.metadata.name for it in leaving.stuck(departure.loss, context)] == ["x-00"]
    assert (len(departure.to_go), [it.metadata.name for it in departure.staying]) == (3, ["x-02"])


def test_when_to_look_again() -> None:
    context = Context(
        build.state(going(100), *deployment("x", ["a"] * 2, spec=grace(30)), *deployment("y", ["a"], spec=grace(90))),
        Settings(),
        KEYS,
        NOW,
        {},
    )
    assert leaving.next_deadline(leaving.look(context), context) == NOW + timedelta(seconds=10)


TOO_LONG = [pytest.param(99_999_999_999, id="longer than time"), pytest.param(2**63 - 1, id="as long as can be said")]


@pytest.mark.parametrize("seconds", [*TOO_LONG, pytest.param(-1, id="negative")])
def test_any_grace_period_is_reckoned_with(seconds: int) -> None:
    """One pod that asks for centuries must not keep the others from leaving."""
    odd = deployment("odd", ["a"], spec={"terminationGracePeriodSeconds": seconds})
    state = build.state(
        build.node("a", spot=True, taints=[taint(ITN)]), build.node("b"), *odd, *deployment("x", ["a"])
    )
    context = Context(state, DELETING, KEYS, NOW, {})
    made = plan.make(state, DELETING, NOW)
    seen = leaving.look(context)
    assert {it.pod.metadata.name for it in made.moves} == {"odd-00", "x-00"}
    assert leaving.next_deadline(seen, context) == NOW + timedelta(seconds=90)
    assert [it.name for it in leaving.requests(seen, context, made, may_begin=True)] == ["a"]


def test_a_node_that_became_silent_in_the_last_year_there_is() -> None:
    """Kubelets write that time themselves."""
    late = {"type": "Ready", "status": "False", "lastTransitionTime": "9999-12-31T23:59:59Z"}
    node = msgspec.to_builtins(build.node("a", spot=True))
    status = build.thing("Node", "a", "", metadata=node["metadata"], status={"conditions": [late]})
    context = Context(build.state(status, *deployment("x", ["a"])), Settings(), KEYS, NOW, {})
    assert leaving.look(context) == ()
    assert interruption.next_change(context) is None

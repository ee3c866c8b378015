"""An eviction that is refused, of a pod that has another one beside it: what that costs, and what it does not."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from descheduler import memory, overdue
from descheduler.drain import Left, Standing
from descheduler.guards import Context
from descheduler.migration import failing, machine, recreate_turn, world
from descheduler.migration.actions import Action, CreateCopy, Done, Evict, MarkPod, RemoveCopy, Scale, Write
from descheduler.migration.judge import Judge
from descheduler.migration.outcomes import Failure
from descheduler.proposal import Urgency
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build, test_machine, test_recreate, test_surge_deadline
from tests.unit.descheduler.scenes import NOW
from tests.unit.descheduler.test_interruption import ITN, taint
from tests.unit.descheduler.test_recreate import COPY, KEYS, copy_of
from tests.unit.descheduler.test_surge import OLD
from tests.unit.descheduler.test_surge_deadline import LOST, NO_BUDGET

DENIED = Failure("admission webhook denied it", eviction=True)
BUSY = Failure("503 busy", counts=False)
HURRY: dict[str, Any] = {"urgency": Urgency.INTERRUPTION}
OFTEN = Settings().migrations.max_retries + 5

# ---- a pod that is doubled


def doubled(times: int, refusal: Failure) -> test_surge_deadline.Cluster:
    """Its eviction was refused so often before the new pod became Available."""
    made = test_surge_deadline.cluster(ready=False, allowed=False)
    made.refusal = refusal
    for _ in range(times):
        made.carry_out(made.until(Evict, **LOST))
    made.becomes_ready("web-0")
    return made


@pytest.mark.parametrize("refusal", [DENIED, NO_BUDGET], ids=["webhook", "budget"])
@pytest.mark.parametrize("times", [1, OFTEN])
def test_one_other_failure_later_does_not_cost_the_new_pod(times: int, refusal: Failure) -> None:
    made = doubled(times, refusal)
    made.until(MarkPod, **LOST)
    by = world.Viewpoint(KEYS, Settings(), "one", made.now)
    seen = world.look(made.migration, made.state, by, urgency=Urgency.INTERRUPTION)
    made.carry_out(failing.failed(made.migration, seen, BUSY, made.now))
    assert made.run(**LOST).status.phase == "Completed"
    assert (made.names(), made.taken) == (["web-0"], [OLD])


@pytest.mark.parametrize("refusal", [DENIED, NO_BUDGET], ids=["webhook", "budget"])
def test_the_new_pod_says_where_it_came_from_however_often_the_old_one_was_refused(refusal: Failure) -> None:
    made = doubled(OFTEN, refusal)
    assert made.run(**LOST).status.phase == "Completed"
    assert KEYS.migration_status in made.state.pods["default", "web-0"].metadata.labels


def test_nor_does_a_number_that_was_refused_cost_it_its_marks() -> None:
    made = test_surge_deadline.cluster(ready=True)
    for _ in range(OFTEN):
        made.until(Scale)
        made.fail(BUSY)
    assert made.run().status.phase == "Completed"
    assert KEYS.migration_status in made.state.pods["default", "web-0"].metadata.labels


def test_a_node_that_is_there_long_after_its_time_is_not_left_for_ever() -> None:
    made = test_surge_deadline.cluster(ready=False, allowed=False)
    made.refusal = Failure("PDB_MULTIPLE", final=True, several=True, eviction=True)
    while made.migration.status.step != "SurgeBack":
        assert made.now - test_surge_deadline.BY <= 2 * Settings().migrations.ready_timeout
        made.carry_out(made.decide(**LOST))
    assert made.now >= test_surge_deadline.BY + Settings().migrations.ready_timeout


def test_in_a_drain_one_throttled_request_after_many_refusals_by_a_budget_ends_nothing() -> None:
    made = test_machine.cluster()
    for failure in [NO_BUDGET] * OFTEN + [Failure("429 slow", counts=False, eviction=True)]:
        test_machine.refused(made, failure, urgency=Urgency.MAINTENANCE)
    found = made.migration()
    assert found is not None
    assert (found.status.phase, found.status.attempts) == ("InProgress", 0)
    assert "ending" not in (found.status.intent or {})


# ---- a pod that is copied


def play(made: test_recreate.Cluster, refusal: Failure, steps: int = 200, **more: Any) -> None:
    """To the end, with every eviction of the original refused."""
    for _ in range(steps):
        action = made.decide(**more)
        if isinstance(action, Done):
            return
        if isinstance(action, Evict):
            action = failing.failed(made.migration, made.look(**more), refusal, made.now)
        made.carry_out(action)


def until(made: test_recreate.Cluster, wanted: type[Action], **more: Any) -> Action:
    return until_any(made, (wanted,), **more)


def until_any(made: test_recreate.Cluster, wanted: tuple[type[Action], ...], **more: Any) -> Action:
    for _ in range(60):
        action = made.decide(**more)
        if isinstance(action, wanted):
            return action
        made.carry_out(action)
    raise AssertionError(made.migration.status)


@pytest.mark.parametrize("refusal", [DENIED, Failure("no", final=True, eviction=True)], ids=["again", "for good"])
def test_a_copy_outlives_its_original_on_a_lost_node_whatever_refuses_its_eviction(refusal: Failure) -> None:
    made = test_recreate.cluster()
    play(made, refusal, steps=20, **HURRY)
    assert made.names() == sorted(["web", COPY])
    made.state.apply(made.state.pods["default", "web"], None)
    assert made.run(**HURRY).status.phase == "Completed"
    assert made.names() == [COPY]


def test_a_node_that_is_there_long_after_its_time_keeps_its_pod_and_no_copy() -> None:
    made = test_recreate.cluster()
    play(made, DENIED, **HURRY)
    assert (made.migration.status.phase, made.names()) == ("Failed", ["web"])
    assert made.now - test_recreate.START >= Settings().migrations.ready_timeout


def test_on_its_way_back_a_copy_stays_if_the_node_takes_the_original() -> None:
    made = test_recreate.cluster()
    until(made, Evict)
    play(made, Failure("no", final=True, eviction=True), steps=1)
    until(made, RemoveCopy)
    made.state.apply(made.state.pods["default", "web"], None)
    assert made.run(**HURRY).status.phase == "Completed"
    assert made.names() == [COPY]


def test_a_copy_that_nobody_has_seen_yet_is_not_sought_to_be_removed() -> None:
    made = test_recreate.cluster()
    made.unseen.append(str(getattr(until(made, CreateCopy, **HURRY), "name", "")))
    made.state.apply(made.state.pods["default", "web"], None)
    made.run(**HURRY)
    assert made.effects == []


@pytest.mark.parametrize(
    "refusal", [Failure("500 no answer", counts=False, eviction=True), NO_BUDGET], ids=["no answer", "budget"]
)
def test_who_was_copied_in_vain_rests(refusal: Failure) -> None:
    """Another copy would run what is in it again."""
    made = test_recreate.cluster()
    play(made, refusal)
    assert (made.migration.status.phase, made.names()) == ("Failed", ["web"])
    assert memory.cooldowns([made.migration], Settings(), made.now)


def test_a_copy_that_was_slow_is_not_given_up_for_one_throttled_request() -> None:
    """The time for the eviction begins when it is first asked for."""
    made = test_recreate.cluster(ready=False)
    while made.migration.status.replacement is None:
        made.carry_out(made.decide())
    made.now = test_recreate.START + Settings().migrations.ready_timeout + timedelta(seconds=1)
    copy = made.state.pods["default", COPY]
    made.state.apply(copy, copy_of(CreateCopy("web", "uid-default-web", COPY)))
    until(made, Evict)
    play(made, Failure("429 slow", counts=False, eviction=True), steps=1)
    assert made.migration.status.step == "Evict"


def test_of_work_that_was_done_nothing_was_lost() -> None:
    made = test_recreate.cluster()
    while made.migration.status.step != recreate_turn.READY:
        made.carry_out(made.decide(**HURRY))
    pod = made.state.pods["default", "web"]
    over = msgspec.structs.replace(pod.status, phase="Succeeded", conditions=())
    made.state.apply(pod, msgspec.structs.replace(pod, status=over))
    made.run(**HURRY)
    assert COPY not in made.names()


def to_ready(made: test_recreate.Cluster, **more: Any) -> Any:
    """The copy is made and not Ready; the original as it is."""
    while made.migration.status.step != recreate_turn.READY:
        made.carry_out(made.decide(**more))
    return made.state.pods["default", "web"]


def succeeded(pod: Any, **meta: Any) -> Any:
    status = msgspec.structs.replace(pod.status, phase="Succeeded", conditions=())
    return msgspec.structs.replace(pod, status=status, metadata=msgspec.structs.replace(pod.metadata, **meta))


def test_a_pod_that_was_asked_to_stop_and_obeyed_has_not_done_its_work() -> None:
    """A kubelet writes Succeeded before it lets a deleted pod go, whatever is in it."""
    made = test_recreate.cluster(ready=False)
    pod = to_ready(made, **HURRY)
    made.state.apply(pod, succeeded(pod, deletion_timestamp=made.now))
    while made.migration.status.step == recreate_turn.READY:
        made.carry_out(made.decide(**HURRY))
    assert made.migration.status.step == "AwaitReplacement"


@pytest.mark.parametrize("done", [True, False], ids=["its work was done", "somebody deleted it"])
def test_a_copy_that_nobody_wants_goes_also_when_the_node_does_meanwhile(done: bool) -> None:
    made = test_recreate.cluster(ready=False)
    before = HURRY if done else {}
    pod = to_ready(made, **before)
    made.state.apply(pod, succeeded(pod) if done else None)
    until(made, RemoveCopy, **before)
    if done:
        made.state.apply(made.state.ended["default", "web"], None)
    assert made.run(**HURRY).status.phase == "Cancelled"
    assert made.names() == []


def test_a_copy_that_its_budget_keeps_stays_where_nothing_else_is_left() -> None:
    """Asked for ever, it would hold up every other node that is to be drained."""
    made, drain = test_recreate.cluster(ready=False), {"urgency": Urgency.MAINTENANCE}
    made.state.apply(to_ready(made, **drain), None)
    for _ in range(OFTEN):
        if not isinstance(until_any(made, (RemoveCopy, Done), **drain), RemoveCopy):
            break
        kept = Failure("PDB_NO_BUDGET: web", blocked=True, eviction=True)
        made.carry_out(failing.failed(made.migration, made.look(**drain), kept, made.now))
    assert (made.migration.status.phase, made.names()) == ("Cancelled", [COPY])
    assert f"the copy {COPY} stays" in made.migration.status.message


def test_a_copy_that_took_long_to_serve_has_its_time_on_a_lost_node_too() -> None:
    made = test_recreate.cluster(ready=False)
    to_ready(made, **HURRY)
    made.now = test_recreate.START + Settings().migrations.ready_timeout - timedelta(seconds=1)
    copy = made.state.pods["default", COPY]
    made.state.apply(copy, copy_of(CreateCopy("web", "uid-default-web", COPY)))
    until(made, Evict, **HURRY)
    made.now += timedelta(minutes=1)
    play(made, Failure("no", final=True, eviction=True), steps=1, **HURRY)
    assert made.migration.status.step == "Evict"


LEAVING = {
    "with a notice": build.node("a", taints=[taint(ITN)]),
    "silent": build.node("a", ready=False),
    "being deleted": build.thing(
        "Node",
        "a",
        metadata={"deletionTimestamp": "2026-06-01T12:00:00Z"},
        status={"conditions": [{"type": "Ready", "status": "True"}]},
    ),
}


@pytest.mark.parametrize("strategy", ["SpotInterruption", "NodeMaintenance", "LoadBalancing", ""])
@pytest.mark.parametrize("there", [True, False], ids=["terminating", "gone"])
@pytest.mark.parametrize("node", LEAVING.values(), ids=LEAVING.keys())
def test_the_node_takes_it_whoever_asked_for_the_move(strategy: str, there: bool, node: Any) -> None:
    at = "2026-06-01T12:00:00Z"
    status = {
        "phase": "InProgress",
        "step": recreate_turn.READY,
        "startedAt": at,
        "intent": {"action": recreate_turn.READY, "at": at, "uid": "uid-default-web", "copy": COPY},
        "resolved": {"podUid": "uid-default-web", "sourceNode": "a", "targetNode": "b", "mode": "Recreate"},
    }
    spec = {"podRef": {"name": "web"}, "targetNode": "b", "strategy": strategy}
    move = build.thing("PodMigration", "m", metadata={"finalizers": [keys.FINALIZER]}, spec=spec, status=status)
    leaving = [build.pod("web", on="a", metadata={"deletionTimestamp": at})] if there else []
    copy = copy_of(CreateCopy("web", "uid-default-web", COPY), ready=False)
    state = build.state(node, build.node("b"), *leaving, copy, move)
    seen = Judge(Settings, lambda: "", holder="one")(move, state, NOW)
    action = machine.step(move, seen, NOW)
    assert isinstance(action, Write)
    assert action.status["step"] == "AwaitReplacement"


# ---- the deadline of a drain, where pods that only a budget holds may be deleted


def overdue_now(made: test_recreate.Cluster) -> bool:
    context = Context(made.state, Settings(), keys.under(), made.now, {})
    return overdue.only_a_budget(Left(made.state.pods["default", "web"], Standing.MOVING, ()), context, {})


def test_an_original_is_deleted_only_while_its_copy_serves() -> None:
    made, drain = test_recreate.cluster(), {"urgency": Urgency.MAINTENANCE}
    until(made, Evict, **drain)
    play(made, NO_BUDGET, steps=1, **drain)
    assert overdue_now(made)
    made.state.apply(made.state.pods["default", COPY], None)
    assert not overdue_now(made)


def test_nor_is_it_deleted_while_a_budget_holds_the_copy_that_is_to_go() -> None:
    made, drain = test_recreate.cluster(ready=False), {"urgency": Urgency.MAINTENANCE}
    until(made, RemoveCopy, **drain)
    made.carry_out(failing.failed(made.migration, made.look(**drain), Failure("no", blocked=True), made.now))
    assert not overdue_now(made)

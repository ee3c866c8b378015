"""A copy that runs to its end, that goes away or that stops being Ready takes over nothing: the original stays."""

from datetime import timedelta
from types import SimpleNamespace

import msgspec
import pytest

from cluster.objects import PodMigration
from descheduler import memory
from descheduler.migration import recreate_turn
from descheduler.migration.actions import Action, CreateCopy, Evict, MarkPod, SeekCopy, Wait, Write
from descheduler.migration.migrator import Migrator
from descheduler.migration.outcomes import Done, Outcome
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.test_loop import AtOnce
from tests.unit.descheduler.test_recreate import COPY, KEYS, Cluster, cluster, copy_of

PHASES = ["Succeeded", "Failed"]


def at(step: str, **more: bool) -> Cluster:
    """A move that has come to this step."""
    made = cluster(**more)
    while made.migration.status.step != step:
        made.carry_out(made.decide())
    return made


def end_copy(made: Cluster, phase: str) -> None:
    copy = made.state.pods["default", COPY]
    status = msgspec.structs.replace(copy.status, phase=phase, conditions=())
    made.state.apply(copy, msgspec.structs.replace(copy, status=status, ready_since=None))
    assert ("default", COPY) not in made.state.pods


@pytest.mark.parametrize("phase", PHASES)
def test_a_copy_that_ends_is_removed(phase: str) -> None:
    made = at(recreate_turn.READY, ready=False)
    end_copy(made, phase)
    ended = made.run()
    assert (ended.status.phase, ended.status.message) == ("Failed", f"the copy ended: {phase}")
    assert made.effects == [f"create {COPY}", f"remove {COPY}"]
    assert (made.names(), made.state.ended) == (["web"], {})


@pytest.mark.parametrize("phase", PHASES)
def test_whoever_takes_over_finds_a_copy_that_has_ended(phase: str) -> None:
    made = at(recreate_turn.CREATE)
    made.state.apply(None, copy_of(CreateCopy("web", "uid-default-web", COPY), status={"phase": phase}))
    ended = made.run()
    assert (ended.status.phase, ended.status.message) == ("Failed", f"the copy ended: {phase}")
    assert (made.names(), made.state.ended) == (["web"], {})


def test_the_original_rests_after_it_and_not_the_copy() -> None:
    made = at(recreate_turn.READY, ready=False)
    end_copy(made, "Failed")
    ended = made.run()
    assert memory.cooldowns([ended], Settings(), made.now) == {"default/web": made.now + timedelta(minutes=5)}


@pytest.mark.parametrize(("phase", "outcome"), [("Succeeded", "Completed"), ("Failed", "Failed")])
def test_a_copy_that_ends_when_it_has_taken_over_ends_the_move(phase: str, outcome: str) -> None:
    made = at("AwaitReplacement")
    end_copy(made, phase)
    ended = made.run()
    assert (ended.status.phase, ended.status.message) == (outcome, f"the copy ended: {phase}")
    assert made.now < (ended.status.started_at or made.now) + timedelta(minutes=1), "nobody waits for it"
    assert memory.subject(ended) == f"default/{COPY}"


def test_a_move_that_is_called_off_before_the_copy_is_seen_removes_it() -> None:
    made = at(recreate_turn.CREATE)
    while not isinstance(action := made.decide(), CreateCopy):
        made.carry_out(action)
    made.unseen.append(action.name)
    ended = made.run(withdrawn="label removed")
    assert (ended.status.phase, ended.status.message) == ("Cancelled", "label removed")
    assert made.effects == [f"remove {COPY}"]
    assert ended.metadata.finalizers == ()


def test_that_there_is_no_copy_is_written_down() -> None:
    made = at(recreate_turn.CREATE)
    while not isinstance(action := made.decide(withdrawn="x"), SeekCopy):
        made.carry_out(action)
    sent: list[Action] = []

    def perform(_: PodMigration, asked: Action) -> Outcome:
        sent.append(asked)
        return Done(absent=isinstance(asked, SeekCopy))

    listener = SimpleNamespace(performed=lambda *_: None)
    migrator = Migrator(perform, lambda *_: made.look(withdrawn="x"), listener, pool=AtOnce(), wake=lambda: None)
    migrator.turn(made.state, made.now)
    migrator.turn(made.state, made.now)
    assert [type(it) for it in sent[:2]] == [SeekCopy, Write]
    made.carry_out(sent[1])
    assert made.run().status.phase == "Cancelled"


def test_a_copy_is_sought_when_the_marks_are_off() -> None:
    """Whoever is about to make it looks for the marks first, so none can come after the search."""
    made = at(recreate_turn.CREATE)
    while not isinstance(action := made.decide(withdrawn="x"), SeekCopy):
        made.carry_out(action)
    assert KEYS.migration_id not in made.state.pods["default", "web"].metadata.labels
    assert action == SeekCopy(COPY, "uid-default-web")


def test_an_original_without_its_marks_gets_them_before_it_is_copied() -> None:
    made = at(recreate_turn.CREATE)
    made.state.apply(made.state.pods["default", "web"], build.pod("web", on="a"))
    assert isinstance(made.decide(), MarkPod)
    assert made.run().status.phase == "Completed"


def test_without_the_copy_the_original_is_not_evicted() -> None:
    made = at("Evict")
    assert isinstance(action := made.decide(), Evict)
    assert action.copy == (COPY, made.state.pods["default", COPY].metadata.uid)
    made.state.apply(made.state.pods["default", COPY], None)
    ended = made.run()
    assert (ended.status.phase, made.names()) == ("Failed", ["web"])
    assert ended.status.message == "the copy was deleted before the original was evicted"


@pytest.mark.parametrize("phase", PHASES)
def test_a_copy_that_ended_before_the_eviction_is_removed(phase: str) -> None:
    made = at("Evict")
    end_copy(made, phase)
    ended = made.run()
    assert (ended.status.phase, ended.status.message) == ("Failed", f"the copy ended: {phase}")
    assert (made.names(), made.state.ended) == (["web"], {})


def unready(made: Cluster, *, later: timedelta = timedelta()) -> None:
    """The copy crashes after so long."""
    made.now += later
    copy = made.state.pods["default", COPY]
    made.state.apply(copy, copy_of(CreateCopy("web", "uid-default-web", COPY), ready=False))


def test_a_copy_that_is_no_longer_ready_is_waited_for() -> None:
    made = at("Evict")
    unready(made, later=timedelta(hours=1))
    while not isinstance(action := made.decide(), Wait):
        assert not isinstance(action, Evict)
        made.carry_out(action)
    assert made.migration.status.step == recreate_turn.READY
    copy = made.state.pods["default", COPY]
    made.state.apply(copy, copy_of(CreateCopy("web", "uid-default-web", COPY)))
    assert made.run().status.phase == "Completed"
    assert made.names() == [COPY]
    assert made.flags == [], "people know that it serves"


def test_a_copy_that_is_never_ready_again_ends_the_move() -> None:
    made = at("Evict")
    unready(made, later=timedelta(hours=1))
    ended = made.run()
    assert ended.status.phase == "Failed"
    assert f"{COPY} is not Ready after" in ended.status.message
    assert made.names() == ["web"]

"""A copy that runs to its end, that goes away or that stops being Ready takes over nothing: the original stays."""

from datetime import timedelta

import msgspec
import pytest

from descheduler import memory
from descheduler.migration import recreate
from descheduler.migration.actions import CreateCopy, Evict, Wait
from policy.settings import Settings
from tests.unit.descheduler.test_recreate import COPY, Cluster, cluster, copy_of

PHASES = ["Succeeded", "Failed"]


def at(step: str, **more: bool) -> Cluster:
    """A move that has come to this step."""
    made = cluster(**more)
    while made.migration.status.step != step:
        made.carry_out(made.decide())
    return made


def end_copy(made: Cluster, phase: str) -> None:
    copy = made.state.pods["default", COPY]
    status = msgspec.structs.replace(copy.status, phase=phase)
    made.state.apply(copy, msgspec.structs.replace(copy, status=status, ready_since=None))
    assert ("default", COPY) not in made.state.pods


@pytest.mark.parametrize("phase", PHASES)
def test_a_copy_that_ends_is_removed(phase: str) -> None:
    made = at(recreate.READY, ready=False)
    end_copy(made, phase)
    ended = made.run()
    assert (ended.status.phase, ended.status.message) == ("Failed", f"the copy ended: {phase}")
    assert made.effects == [f"create {COPY}", f"remove {COPY}"]
    assert (made.names(), made.state.ended) == (["web"], {})


@pytest.mark.parametrize("phase", PHASES)
def test_whoever_takes_over_finds_a_copy_that_has_ended(phase: str) -> None:
    made = at(recreate.CREATE)
    made.state.apply(None, copy_of(CreateCopy("web", "uid-default-web", COPY), status={"phase": phase}))
    ended = made.run()
    assert (ended.status.phase, ended.status.message) == ("Failed", f"the copy ended: {phase}")
    assert (made.names(), made.state.ended) == (["web"], {})


def test_the_original_rests_after_it_and_not_the_copy() -> None:
    made = at(recreate.READY, ready=False)
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
    assert made.migration.status.step == recreate.READY
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

"""The thread around the rules: terms told exactly once, no answer waited for too long, handed back on stop."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from cluster import errors
from cluster.election import Record, Timing
from cluster.lease import Elector
from cluster.term import Callbacks, Term
from telemetry.metrics import Metric
from tests.unit.cluster.surroundings import Clock, World, until

TIMING = Timing(
    lease_seconds=2,
    renew_deadline=1.5,
    renew_period=0.1,
    poll_period=0.05,
    request_timeout=0.4,
    trust_absence=True,
    stop_grace=0.5,
)


@dataclass
class Memory:
    """A LeaseApi in memory with the server's rules about versions, that can be made to misbehave."""

    lease: dict[str, Any] | None = None
    version: int = 0
    requests: list[str] = field(default_factory=list)
    before: Callable[[str], None] = lambda _verb: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, timeout: float) -> dict[str, Any]:
        with self._served("get"):
            if self.lease is None:
                raise errors.NotFound("no lease", status=404)
            return self.lease

    def create(self, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        with self._served("create"):
            if self.lease is not None:
                raise errors.AlreadyExists("there is one", status=409)
            return self.commit(body)

    def replace(self, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        with self._served("replace"):
            if self.lease is None:
                raise errors.NotFound("no lease", status=404)
            if body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]:
                raise errors.Conflict("it changed", status=409)
            return self.commit(body)

    def commit(self, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version), "uid": "u"}}
        return self.lease

    def edit(self, **spec: Any) -> None:
        with self.lock:
            assert self.lease is not None
            self.commit({**self.lease, "spec": {**self.lease["spec"], **spec}})

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    @contextmanager
    def _served(self, verb: str) -> Iterator[None]:
        self.requests.append(verb)
        self.before(verb)
        with self.lock:
            yield


def patient(term: Term) -> None:
    """Work that ends with its term."""
    term.wait(60)


def hangs(release: threading.Event) -> Callable[[object], None]:
    """Something that does not come back before it is released."""

    def wait(_: object) -> None:
        release.wait(60)

    return wait


@dataclass
class Candidate:
    api: Memory
    identity: str = "me"
    timing: Timing = TIMING
    world: World = field(default_factory=World)
    begun: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    work: Callable[[Term], None] = patient
    notes: Callable[[], dict[str, str]] = dict

    def __post_init__(self) -> None:
        self.elector = Elector(
            self.api,
            Callbacks(self.lead, self.told.append),
            identity=self.identity,
            timing=self.timing,
            runtime=self.world.runtime,
            notes=self.notes,
        )

    def lead(self, term: Term) -> None:
        self.begun.append(term.number)
        try:
            self.work(term)
        finally:
            self.ended.append(term.number)


@contextmanager
def running(*candidates: Candidate) -> Iterator[None]:
    for candidate in candidates:
        candidate.elector.start()
    try:
        yield
    finally:
        for candidate in candidates:
            candidate.elector.stop(10)


def fails(error: Exception) -> Callable[[str], None]:
    def raise_it(_verb: str) -> None:
        raise error

    return raise_it


def test_a_lonely_candidate_leads_renews_and_hands_back() -> None:
    one = Candidate(Memory())
    one.elector.start()
    until(lambda: one.elector.is_leader() and one.api.requests.count("replace") >= 3)
    assert one.elector.holder() == "me"
    assert one.world.meter.read(Metric.LEADER) == 1
    assert one.elector.stop(5)
    assert not one.elector.is_leader()
    assert (one.begun, one.ended, one.told) == ([1], [1], ["stopping"])
    assert one.api.holder == ""
    assert one.api.lease is not None
    assert one.api.lease["spec"]["leaseDurationSeconds"] == 1, "marked as handed back"
    assert one.world.events() == ["LEADER_GAINED", "LEADER_RELEASED"]


def test_a_hand_over_takes_one_poll_and_counts_the_transition() -> None:
    api = Memory()
    one, two = Candidate(api, "one"), Candidate(api, "two")
    one.elector.start()
    until(one.elector.is_leader)
    with running(two):
        until(lambda: two.elector.holder() == "one")
        began = time.monotonic()
        one.elector.stop(5)
        until(two.elector.is_leader)
        assert time.monotonic() - began < 1.0, "far less than the lease of 2 s"
        assert api.lease is not None
        assert api.lease["spec"]["leaseTransitions"] == 1


FAILURES: dict[str, Exception] = {
    "connection dropped": errors.Unreachable("cut"),
    "server error": errors.ServerError("no", status=500),
    "throttled": errors.Throttled("wait", status=429, retry_after=1),
    "no rights": errors.Forbidden("no", status=403),
    "nonsense": errors.Malformed("html"),
    "a defect": RuntimeError("not an ApiError at all"),
}


@pytest.mark.parametrize("error", FAILURES.values(), ids=FAILURES.keys())
def test_any_error_ends_the_term_in_time_and_is_survived(error: Exception) -> None:
    """The official elector raised out of its loop here, never told the end, and its work went on."""
    one = Candidate(Memory())
    with running(one):
        until(one.elector.is_leader)
        one.api.before = fails(error)
        began = time.monotonic()
        until(lambda: one.told == ["expired"])
        assert time.monotonic() - began < 2 * TIMING.lease_seconds
        assert not one.elector.is_leader()
        until(lambda: one.ended == [1])
        one.api.before = lambda _verb: None
        until(lambda: one.elector.is_leader() and one.begun == [1, 2])
    assert (one.ended, one.told) == ([1, 2], ["expired", "stopping"])


def test_a_server_that_never_answers_does_not_prolong_the_term() -> None:
    """The official elector still led long after its lease had run out."""
    one, silent = Candidate(Memory()), threading.Event()
    with running(one):
        until(one.elector.is_leader)
        one.api.before = hangs(silent)
        until(lambda: one.told == ["expired"])
        sent = len(one.api.requests)
        assert not one.elector.is_leader()
        until(lambda: "earlier requests" in str(one.world.lines[-1].get("error")))
        assert len(one.api.requests) - sent <= 4, "requests that hang are not piled up"
        silent.set()
        one.api.before = lambda _verb: None
        until(one.elector.is_leader)


def test_leadership_is_read_from_the_clock_and_not_from_a_flag() -> None:
    now = [time.monotonic()]
    frozen = threading.Event()
    world = World(clock=lambda: now[0] if frozen.is_set() else time.monotonic())
    one = Candidate(Memory(), world=world)
    with running(one):
        until(one.elector.is_leader)
        now[0] = time.monotonic()
        frozen.set()  # the elector's thread gets no further from here
        assert one.elector.is_leader()
        now[0] += TIMING.renew_deadline
        assert not one.elector.is_leader()
        frozen.clear()


def test_losing_the_answer_of_the_winning_write_is_recovered_from() -> None:
    one = Candidate(Memory())
    lost = iter([True])

    def lose(body: dict[str, Any], timeout: float) -> dict[str, Any]:
        made = Memory.create(one.api, body, timeout)
        if next(lost, False):
            raise errors.Unreachable("cut after it took effect")
        return made

    one.api.create = lose  # type: ignore[method-assign]
    with running(one):
        until(one.elector.is_leader)
    assert one.begun == [1]


EDITS: dict[str, tuple[dict[str, Any], str]] = {
    "taken by another": ({"holderIdentity": "thief", "renewTime": "x"}, "superseded"),
    "emptied": ({"holderIdentity": ""}, "superseded"),
}


@pytest.mark.parametrize(("spec", "reason"), EDITS.values(), ids=EDITS.keys())
def test_foreign_edits_end_the_term(spec: dict[str, Any], reason: str) -> None:
    one = Candidate(Memory())
    with running(one):
        until(one.elector.is_leader)
        one.api.edit(**spec)
        until(lambda: one.told == [reason])
        until(lambda: one.begun == [1, 2], "the lease to run out and be taken again")


def test_an_edit_that_leaves_us_in_place_is_survived() -> None:
    one = Candidate(Memory())
    with running(one):
        until(one.elector.is_leader)
        one.api.edit(leaseDurationSeconds=3600)
        count = len(one.api.requests)
        until(lambda: len(one.api.requests) > count + 4)
        assert one.elector.is_leader()
        assert one.api.lease is not None
        assert one.api.lease["spec"]["leaseDurationSeconds"] == 2
    assert one.told == ["stopping"]


def test_a_deleted_lease_is_made_again_by_its_holder() -> None:
    one = Candidate(Memory())
    with running(one):
        until(one.elector.is_leader)
        one.api.lease = None
        until(lambda: one.api.holder == "me")
        assert one.elector.is_leader()
    assert one.told == ["stopping"], "the term was not interrupted"


def test_without_trust_an_absent_lease_is_waited_for() -> None:
    cautious = Timing(lease_seconds=2, renew_deadline=0.6, renew_period=0.1, poll_period=0.05, request_timeout=0.2)
    one = Candidate(Memory(), timing=cautious)
    began = time.monotonic()
    with running(one):
        until(one.elector.is_leader)
        assert time.monotonic() - began >= 2.0


def raising(_term: Term) -> None:
    raise ValueError("the loop broke")


@pytest.mark.parametrize("work", [lambda _term: None, raising], ids=["returned", "raised"])
def test_work_that_ends_hands_the_lease_back_and_lets_others_try(work: Callable[[Term], None]) -> None:
    one = Candidate(Memory(), work=work)
    with running(one):
        until(lambda: one.told == ["workEnded"])
        until(lambda: one.api.holder == "" and one.api.lease is not None)
        until(lambda: "LEADER_RELEASED" in one.world.events())
    assert one.begun == [1], "it sits out a whole lease"


def test_a_lease_is_not_kept_without_a_thread_for_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a limit of threads it was renewed for ever, and nobody worked."""
    begin = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("term-"):
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    api = Memory()
    one, two = Candidate(api, "one"), Candidate(api, "two")
    with running(one):
        until(lambda: "LEASE_RETRYING" in one.world.events())
        assert (api.holder, one.elector.is_leader(), one.elector.problem()) == ("", False, None)
        assert one.world.events() == ["LEADER_RELEASED", "LEASE_RETRYING"]
        assert (one.begun, one.told) == ([], []), "there was no term"
        monkeypatch.setattr(threading.Thread, "start", begin)
        with running(two):
            until(two.elector.is_leader, "another one, which has threads")
        until(one.elector.is_leader, "the next try")
    assert (one.begun, two.begun) == ([1], [1])


def test_no_new_term_while_the_work_of_the_last_goes_on() -> None:
    stuck = threading.Event()
    one = Candidate(Memory(), work=hangs(stuck))
    with running(one):
        until(one.elector.is_leader)
        one.api.edit(holderIdentity="thief")
        until(lambda: one.told == ["superseded"])
        one.api.edit(holderIdentity="", leaseDurationSeconds=1)
        count = len(one.api.requests)
        until(lambda: one.elector.problem() is not None)
        assert one.begun == [1]
        assert len(one.api.requests) <= count + 1, "it does not even ask"
        stuck.set()
        until(lambda: one.begun == [1, 2])
        assert one.elector.problem() is None


def test_work_that_does_not_stop_keeps_the_lease_from_being_handed_back() -> None:
    stuck = threading.Event()
    one = Candidate(Memory(), work=hangs(stuck))
    one.elector.start()
    until(one.elector.is_leader)
    assert one.elector.stop(5)
    assert one.api.holder == "me", "it runs out by itself instead"
    assert "LEASE_WORKER_STUCK" in one.world.events()
    stuck.set()


def test_a_broken_callback_does_not_keep_the_lease() -> None:
    api, world = Memory(), World()
    callbacks = Callbacks(patient, lambda _reason: raising(Term(0, bool)))
    elector = Elector(api, callbacks, identity="me", timing=TIMING, runtime=world.runtime)
    elector.start()
    until(elector.is_leader)
    assert elector.stop(5)
    assert api.holder == ""
    assert "HANDLER_FAILED" in world.events()


def test_stop_returns_soon_even_if_no_answer_comes() -> None:
    one, silent = Candidate(Memory()), threading.Event()
    one.elector.start()
    until(one.elector.is_leader)
    one.api.before = hangs(silent)
    began = time.monotonic()
    assert one.elector.stop(5)
    assert time.monotonic() - began < 2.0
    assert not one.elector.is_leader()
    assert one.told == ["stopping"]
    silent.set()


def test_stop_before_start() -> None:
    assert Candidate(Memory()).elector.stop(1)


def test_a_standby_asks_at_a_steady_pace() -> None:
    api = Memory()
    leader, standby = Candidate(api, "leader"), Candidate(api, "standby")
    with running(leader):
        until(leader.elector.is_leader)
        api.requests.clear()
        with running(standby):
            began = time.monotonic()
            until(lambda: api.requests.count("get") >= 10)
            assert time.monotonic() - began >= 9 * TIMING.poll_period * (1 - TIMING.jitter)
        assert standby.begun == []


HELD = Record("me", 2, "a", "r", 1, "1", "u")


@pytest.mark.parametrize("goes_on", [True, False], ids=["work goes on", "work has ended"])
def test_an_answer_that_comes_after_the_end_of_the_term(goes_on: bool) -> None:
    """The renewal took effect, but too late for this term: it has ended, and a new one needs the old work to end."""
    clock, release = Clock(), threading.Event()
    one = Candidate(Memory(), world=World(clock=clock), work=hangs(release) if goes_on else patient)
    try:
        one.elector._adopt(HELD, clock.now)
        until(lambda: one.begun == [1])
        clock.now += 1.0
        sent_at = clock.now
        clock.now = 1000.0 + TIMING.renew_deadline
        if not goes_on:
            one.elector._check_lost()
            until(lambda: not one.elector._work_runs())
        one.elector._adopt(HELD, sent_at)
        assert one.told == ["expired"]
        assert one.elector.is_leader() is not goes_on
        until(lambda: one.begun == ([1] if goes_on else [1, 2]))
    finally:
        release.set()
        one.elector._end_term("stopping")


def test_a_term_counts_from_before_its_request_was_sent() -> None:
    clock = Clock()
    one = Candidate(Memory(), world=World(clock=clock))

    def slow(verb: str) -> None:
        clock.now += 0.3 if verb == "create" else 0.0

    one.api.before = slow
    try:
        one.elector._step()
        assert clock.now == 1000.3
        clock.now = 1000.0 + TIMING.renew_deadline - 0.01
        assert one.elector.is_leader()
        clock.now = 1000.0 + TIMING.renew_deadline
        assert not one.elector.is_leader(), "0.3 s after the answer the rivals have counted them too"
    finally:
        one.elector._end_term("stopping")


def test_what_a_leader_says_of_itself_stands_on_the_lease_beside_what_others_wrote() -> None:
    said = {"a": "1"}
    one = Candidate(Memory(), notes=lambda: dict(said))
    with running(one):
        until(lambda: _annotations(one) == {"a": "1"})
        with one.api.lock:
            assert one.api.lease is not None
            foreign = {**one.api.lease["metadata"]["annotations"], "b": "theirs"}
            one.api.commit({**one.api.lease, "metadata": {**one.api.lease["metadata"], "annotations": foreign}})
        said["a"] = "2"
        until(lambda: _annotations(one) == {"a": "2", "b": "theirs"})


def _annotations(one: Candidate) -> dict[str, str]:
    return dict((one.api.lease or {"metadata": {}})["metadata"].get("annotations", {}))

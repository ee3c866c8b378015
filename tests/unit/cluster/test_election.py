"""The rules of the election as a table, and a simulated world in which no two may lead at once."""

import functools
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cluster import election
from cluster.election import NEVER, Look, Record, Timing, View, Wait, Write
from tests.effort import many

T = Timing()
ME, OTHER = "me-1", "other-2"
STAMP = "2026-11-16T03:00:00.000000Z"


def record(holder: str = OTHER, **changes: Any) -> Record:
    return replace(Record(holder, 15, "a", "r", 3, "77", "uid"), **changes)


def view(**changes: Any) -> View:
    return replace(View(known=True, record=record(), seen_at=100.0, transitions=3), **changes)


def decide(seen: View, now: float, timing: Timing = T) -> election.Action:
    return election.decide(seen, me=ME, timing=timing, now=now, stamp=STAMP)


mine = record(ME)
claim = Write(record(ME, acquired=STAMP, renewed=STAMP, transitions=4), create=False)
renew = Write(record(ME, renewed=STAMP), create=False)
vacant = Write(Record("", 15, STAMP, STAMP, 3), create=True)
TABLE: dict[str, tuple[View, float, election.Action]] = {
    "nothing known": (View(), 100, Look()),
    "time has passed since the last look": (election.outdated(view()), 114, Look()),
    "held by another": (view(), 114.9, Wait(115.0)),
    "silent for a whole lease": (view(), 115.0, claim),
    "holder with a longer lease": (view(record=record(lease_seconds=60)), 159.0, Wait(160.0)),
    "edited to a shorter lease": (view(record=record(lease_seconds=1)), 114.0, Wait(115.0)),
    "handed back": (
        view(record=record("", lease_seconds=1)),
        100.0,
        Write(record(ME, acquired=STAMP, renewed=STAMP, transitions=4), create=False),
    ),
    "emptied by somebody's edit": (view(record=record("")), 114.0, Wait(115.0)),
    "ours and valid": (view(record=mine, valid_until=110.0), 105.0, renew),
    "ours, run out, but our own write": (view(record=mine, valid_until=90.0, sent=("r",)), 105.0, renew),
    "our name, but not our write": (view(record=mine, valid_until=NEVER), 105.0, Wait(115.0)),
    "absent": (view(record=None), 100.0, vacant),
    "absent while we lead": (
        view(record=None, valid_until=110.0),
        105.0,
        Write(replace(vacant.record, holder=ME), True),
    ),
}


@pytest.mark.parametrize(("seen", "now", "action"), TABLE.values(), ids=TABLE.keys())
def test_rules(seen: View, now: float, action: election.Action) -> None:
    assert decide(seen, now) == action


def test_absence_can_be_trusted_by_who_knows() -> None:
    seen = View(known=True, record=None, seen_at=100.0)
    assert decide(seen, 100.0, Timing(trust_absence=True)) == Write(Record(ME, 15, STAMP, STAMP, 0), create=True)


def test_the_same_content_does_not_restart_the_count_but_any_other_does() -> None:
    seen = view()
    touched = record(version="78")
    assert election.observed(seen, touched, me=ME, now=110.0).seen_at == 100.0, "labels are no sign of life"
    for changed in (record(renewed="later"), record(uid="another"), record("third"), record(lease_seconds=16), None):
        assert election.observed(seen, changed, me=ME, now=110.0).seen_at == 110.0


def test_seeing_another_holder_ends_our_validity() -> None:
    leading = view(record=mine, valid_until=110.0)
    assert election.observed(leading, record(OTHER), me=ME, now=105.0).valid_until == NEVER
    assert election.observed(leading, record(""), me=ME, now=105.0).valid_until == NEVER
    assert election.observed(leading, record(ME, version="9"), me=ME, now=105.0).valid_until == 110.0
    assert election.observed(leading, None, me=ME, now=105.0).valid_until == 110.0, "we can make it again"


def test_validity_counts_from_before_the_request() -> None:
    after = election.written(mine, me=ME, timing=T, sent_at=100.0, now=103.0)
    assert after.valid_until == 110.0
    assert after.seen_at == 103.0
    assert election.written(record(""), me=ME, timing=T, sent_at=100.0, now=103.0).valid_until == NEVER


def test_transitions_survive_a_deletion() -> None:
    seen = election.observed(View(), record(transitions=41), me=ME, now=1.0)
    seen = election.observed(seen, None, me=ME, now=2.0)
    action = decide(seen, 3.0)
    assert isinstance(action, Write)
    assert action.record.transitions == 41


def test_sent_writes_are_remembered_but_not_for_ever() -> None:
    seen = view()
    for n in range(100):
        seen = election.sending(seen, record(renewed=str(n)))
    assert not seen.known
    assert seen.sent[-1] == "99"
    assert len(seen.sent) == election.SENT_KEPT


WRONG = {
    "deadline beyond the lease": {"renew_deadline": 15.0},
    "timeout beyond the deadline": {"request_timeout": 10.0},
    "only one try": {"renew_period": 6.0, "request_timeout": 4.0},
    "lease as short as a release": {"lease_seconds": 1, "renew_deadline": 0.9},
    "no poll": {"poll_period": 0.0},
    "wild jitter": {"jitter": 1.0, "renew_period": 0.1},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG.keys())
def test_unsafe_timings_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        Timing(**changes)


def test_foreign_fields_of_the_object_survive_a_write() -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "x", "resourceVersion": "7", "uid": "u", "labels": {"a": "b"}},
        "spec": {"holderIdentity": "old", "someFutureField": {"kept": True}, "leaseTransitions": 2},
    }
    parsed = election.parse(lease)
    body = election.render(replace(parsed, holder=ME, renewed=STAMP), lease)
    assert body["spec"]["someFutureField"] == {"kept": True}
    assert body["metadata"] == lease["metadata"]
    assert body["spec"]["holderIdentity"] == ME
    assert body["spec"]["leaseTransitions"] == 2


@pytest.mark.parametrize(
    "lease",
    [{}, {"spec": None, "metadata": None}, {"spec": {"holderIdentity": None, "leaseDurationSeconds": "x"}}],
    ids=["empty", "nulls", "wrong types"],
)
def test_odd_objects_are_read_as_empty(lease: dict[str, Any]) -> None:
    assert election.parse(lease) == Record("", 0, "", "", 0)


# ---- a simulated world: one server, some electors, messages that are slow or lost, processes that stall


@dataclass
class Server:
    record: Record | None = None
    version: int = 0

    def commit(self, wanted: Record) -> Record:
        self.version += 1
        uid = wanted.uid or f"u{self.version}"
        self.record = replace(wanted, version=str(self.version), uid=uid)
        return self.record

    def handle(self, action: election.Action) -> Record | str | None:
        if isinstance(action, Look):
            return self.record
        assert isinstance(action, Write)
        if action.create:
            return "conflict" if self.record else self.commit(action.record)
        if self.record is None:
            return "absent"
        fits = (self.record.version, self.record.uid) == (action.record.version, action.record.uid)
        return self.commit(action.record) if fits else "conflict"


Written = Callable[..., View]


@dataclass
class World:
    seed: int
    timing: Timing
    written: Written = election.written
    now: float = 0.0
    server: Server = field(default_factory=Server)
    views: dict[str, View] = field(default_factory=dict)
    queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    count: int = 0
    changes: int = 0
    last: str = ""
    overlaps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.queue, (self.now + seconds, self.count, act))

    def run(self, seconds: float, electors: int) -> None:
        for n in range(electors):
            self.views[f"e{n}"] = View()
            self.later(self.rng.random(), functools.partial(self.step, f"e{n}"))
        self.later(5, self.meddle)
        while self.queue and self.queue[0][0] < seconds:
            self.now, _, act = heapq.heappop(self.queue)
            act()

    def step(self, who: str) -> None:
        stall = self.rng.random() < 0.03
        if stall:
            self.later(self.rng.uniform(0, 30), lambda: self.step(who))
            return
        stamp = f"{who}-{self.now:.6f}"
        action = election.decide(self.views[who], me=who, timing=self.timing, now=self.now, stamp=stamp)
        if isinstance(action, Wait):
            self.views[who] = election.outdated(self.views[who])
            self.later(min(self.timing.poll_period, action.until - self.now), lambda: self.step(who))
            return
        if isinstance(action, Write):
            self.views[who] = election.sending(self.views[who], action.record)
        self.send(who, action)

    def send(self, who: str, action: election.Action) -> None:
        sent_at = self.now
        out, back = self.delay(), self.delay()

        def arrive() -> None:
            answer = self.server.handle(action)
            if self.rng.random() > 0.15:
                self.later(back, lambda: self.hear(who, action, answer, sent_at))

        if self.rng.random() > 0.15:
            self.later(out, arrive)
        self.later(self.timing.request_timeout, lambda: self.step(who))

    def delay(self) -> float:
        return self.rng.choice([0.01, 0.01, 0.1, 1.0, 5.0, 20.0])

    def hear(self, who: str, action: election.Action, answer: Record | str | None, sent_at: float) -> None:
        """Late answers are heard too here, which a real elector no longer does: it must not matter."""
        seen = self.views[who]
        if isinstance(action, Look) and not isinstance(answer, str):
            self.views[who] = election.observed(seen, answer, me=who, now=self.now)
        elif isinstance(answer, Record) and seen.sent and answer.renewed == seen.sent[-1]:
            self.views[who] = self.written(answer, me=who, timing=self.timing, sent_at=sent_at, now=self.now)
            self.check(who)

    def check(self, who: str) -> None:
        if self.now >= self.views[who].valid_until:
            return
        self.changes += self.last != who
        self.last = who
        for other, seen in self.views.items():
            if other != who and self.now < seen.valid_until:
                self.overlaps.append(f"{who} and {other} at {self.now:.2f}")

    def meddle(self) -> None:
        held = self.server.record
        match self.rng.randrange(6):
            case 0:
                self.server.record = None
            case 1 if held:
                self.server.commit(replace(held, holder=""))
            case 2 if held:
                self.server.commit(replace(held, holder=self.rng.choice(list(self.views))))
            case 3 if held:
                self.server.commit(held)
        self.later(self.rng.uniform(1, 60), self.meddle)


@pytest.mark.parametrize("seed", range(many(20)))
def test_no_two_lead_at_once_whatever_the_network_does(seed: int) -> None:
    world = World(seed, Timing())
    world.run(3000, electors=3)
    assert world.overlaps == []
    assert world.changes >= 3, "the world was not too hostile to mean anything"


def hopeful(record: Record, *, me: str, timing: Timing, sent_at: float, now: float) -> View:
    """What the rule forbids: to count from the answer, and for the whole lease."""
    right = election.written(record, me=me, timing=timing, sent_at=sent_at, now=now)
    return replace(right, valid_until=now + timing.lease_seconds if record.holder == me else NEVER)


def test_the_simulation_finds_the_classic_mistake() -> None:
    found = 0
    for seed in range(many(20)):
        world = World(seed, Timing(), written=hopeful)
        world.run(3000, electors=3)
        found += bool(world.overlaps)
    assert found > 5

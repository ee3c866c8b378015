"""Events become series, stay within limits, are valid, and never hold up who records them."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from cluster import errors, eventlog
from cluster.eventlog import Drop, EventLog, Limits, Said, Send, Severity, Subject, Topic
from cluster.events import Recorder
from telemetry.metrics import Metric
from tests.unit.cluster.surroundings import EPOCH, World, until

POD = Subject("v1", "Pod", "web-1", "shop", "uid-1")
NODE = Subject("v1", "Node", "node-1")
EVICTED = Topic("Evicted", "Evict")
REFUSED = Topic("NotMoved", "Plan", Severity.WARNING)
LIMITS = Limits(per_object_burst=3, per_object_seconds=60, total_burst=5, total_per_second=1, window=600, refresh=30)


def said(subject: Subject = POD, topic: Topic = EVICTED, note: str = "moved", seconds: float = 0) -> Said:
    return Said(subject, topic, note, EPOCH + timedelta(seconds=seconds))


def subject(n: int) -> Subject:
    return Subject("v1", "Pod", f"pod-{n}", "shop", f"uid-{n}")


# ---- the rule


def test_the_first_is_sent_and_repeats_only_count() -> None:
    log = EventLog(LIMITS, prefix="p")
    first = log.offer(said(), 0)
    assert first == Send(said(), "web-1.p1")
    assert [log.offer(said(seconds=n), n) for n in range(1, 10)] == [None] * 9
    assert list(log.due(29)) == []
    assert log.next_due() == 30
    assert list(log.due(30)) == [Send(said(), "web-1.p1", 10, EPOCH + timedelta(seconds=9))]
    assert list(log.due(31)) == [], "nothing new since"


def test_another_note_reason_or_object_is_another_event() -> None:
    log = EventLog(Limits(), prefix="p")
    for one in (said(), said(note="other"), said(topic=REFUSED), said(subject=NODE)):
        assert isinstance(log.offer(one, 0), Send)


def test_after_the_window_it_is_news_again() -> None:
    log = EventLog(LIMITS, prefix="p")
    log.offer(said(), 0)
    log.offer(said(), 100)
    assert [send.count for send in log.due(699)] == [2]
    assert list(log.due(700)) == []
    assert isinstance(log.offer(said(), 701), Send)


def test_the_last_chance_sends_every_open_count() -> None:
    log = EventLog(LIMITS, prefix="p")
    log.offer(said(), 0)
    log.offer(said(), 1)
    assert list(log.due(2)) == []
    assert [send.count for send in log.due(2, final=True)] == [2]


def test_what_goes_well_does_not_use_up_the_limit_of_warnings() -> None:
    log = EventLog(Limits(per_object_burst=3), prefix="p")
    assert [isinstance(log.offer(said(note=str(n)), 0), Send) for n in range(4)] == [True, True, True, False]
    warnings = [log.offer(said(topic=REFUSED, note=str(n)), 0) for n in range(4)]
    assert [isinstance(one, Send) for one in warnings] == [True, True, True, False]


def test_limits_per_object_and_in_total() -> None:
    log = EventLog(LIMITS, prefix="p")
    notes = [log.offer(said(note=str(n)), 0) for n in range(4)]
    assert [isinstance(one, Send) for one in notes] == [True, True, True, False]
    assert notes[3] is Drop.OBJECT_LIMIT
    assert isinstance(log.offer(said(note="later"), 61), Send), "one more per minute"
    others = [log.offer(said(subject=subject(n)), 61) for n in range(6)]
    assert [isinstance(one, Send) for one in others].count(True) == 4
    assert others[-1] is Drop.TOTAL_LIMIT


def test_what_many_pods_say_does_not_silence_their_node() -> None:
    log = EventLog(LIMITS, prefix="p")
    for number in range(20):
        log.offer(said(subject=subject(number)), 0)
    node = Subject("v1", "Node", "n")
    notes = [log.offer(said(subject=node, note=str(number)), 0) for number in range(4)]
    assert [isinstance(one, Send) for one in notes] == [True, True, True, False]


def test_memory_is_bounded() -> None:
    log = EventLog(Limits(objects=10, total_burst=10**6), prefix="p")
    for n in range(1000):
        log.offer(said(subject=subject(n)), n)
    assert len(log._series) == 10
    assert len(log._objects) == 10


def test_forgotten_is_news_again() -> None:
    log = EventLog(LIMITS, prefix="p")
    log.offer(said(), 0)
    log.forget(said())
    assert isinstance(log.offer(said(), 1), Send)


WORDS = {"empty": "", "lower": "evicted", "two words": "Not Moved", "too long": "E" * 129, "sentence": "Evicted."}


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS.keys())
def test_topics_that_the_api_would_refuse_fail_where_they_are_written(word: str) -> None:
    with pytest.raises(ValueError, match="CamelCase"):
        Topic(word, "Evict")
    with pytest.raises(ValueError, match="CamelCase"):
        Topic("Evicted", word)


NOTES = {
    "short": ("moved", 5),
    "exactly": ("x" * 1024, 1024),
    "too long": ("x" * 1025, 1024),
    "cut inside a character": ("\u00e4" * 600, 1023),
    "four-byte characters": ("\U0001f600" * 300, 1023),
}


@pytest.mark.parametrize(("note", "size"), NOTES.values(), ids=NOTES.keys())
def test_notes_fit(note: str, size: int) -> None:
    cut = eventlog.cut(note)
    assert len(cut.encode()) == size
    assert len(cut.encode()) <= eventlog.NOTE_BYTES
    assert "\ufffd" not in cut


def test_the_object() -> None:
    send = Send(said(topic=REFUSED), "web-1.p1")
    assert eventlog.render(send, controller="spotshift.dev/descheduler", instance="x" * 200) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-1.p1", "namespace": "shop"},
        "eventTime": "2026-11-16T03:00:00.000000Z",
        "reportingController": "spotshift.dev/descheduler",
        "reportingInstance": "x" * 128,
        "action": "Plan",
        "reason": "NotMoved",
        "type": "Warning",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "namespace": "shop", "uid": "uid-1"},
        "note": "moved",
    }
    assert (
        eventlog.render(Send(said(subject=NODE), "n"), controller="c", instance="i")["metadata"]["namespace"]
        == "default"
    )
    related = Said(POD, EVICTED, "n", EPOCH, related=NODE)
    assert eventlog.render(Send(related, "n"), controller="c", instance="i")["related"]["name"] == "node-1"


def test_names_stay_valid() -> None:
    log = EventLog(Limits(), prefix="p")
    for name in ("a" * 253, "trailing-" + "-" * 200, "..."):
        send = log.offer(said(subject=Subject("v1", "Node", name)), 0)
        assert isinstance(send, Send)
        assert len(send.name) <= 253
        assert ".." not in send.name
        assert "-." not in send.name


# ---- the thread


@dataclass
class Memory:
    """An EventApi in memory that can be made to misbehave."""

    created: list[dict[str, Any]] = field(default_factory=list)
    patched: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    before: Callable[[], object] = lambda: None

    def create(self, body: dict[str, Any], namespace: str) -> None:
        self.before()
        self.created.append(body)

    def patch(self, name: str, body: dict[str, Any], namespace: str) -> None:
        self.before()
        if all(known["metadata"]["name"] != name for known in self.created):
            raise errors.NotFound("gone", status=404)
        self.patched.append((name, body))


def make(api: Memory, world: World, **options: Any) -> Recorder:
    return Recorder(api, controller="spotshift.dev/test", instance="test-1", runtime=world.runtime, **options)


def test_recorded_is_sent_and_repeats_are_counted_at_the_end() -> None:
    api, world = Memory(), World()
    recorder = make(api, world)
    recorder.start()
    for _ in range(5):
        assert recorder.record(POD, EVICTED, "moved")
    assert recorder.stop(10)
    assert [body["reason"] for body in api.created] == ["Evicted"]
    assert [body["series"]["count"] for _, body in api.patched] == [5]
    assert world.meter.read(Metric.EVENTS_SENT) == 2
    assert not any(recorder.dropped().values())


def test_who_records_never_waits_and_drops_are_counted() -> None:
    api, world, release = Memory(), World(), threading.Event()
    api.before = lambda: bool(release.wait(60))
    recorder = make(api, world, queue=10)
    recorder.start()
    began = time.monotonic()
    kept = sum(recorder.record(subject(n), EVICTED, "moved") for n in range(1000))
    assert time.monotonic() - began < 2.0
    assert 10 <= kept <= 11
    assert recorder.dropped()[Drop.QUEUE_FULL] == 1000 - kept
    assert world.meter.read(Metric.EVENTS_DROPPED, cause="queueFull") == 1000 - kept
    assert world.events().count("EVENTS_DROPPED") == 1, "told once, counted always"
    release.set()
    recorder.stop(10)


def test_stop_keeps_its_deadline() -> None:
    api, world, release = Memory(), World(), threading.Event()
    api.before = lambda: bool(release.wait(60))
    recorder = make(api, world)
    recorder.start()
    for n in range(5):
        recorder.record(subject(n), EVICTED, "moved")
    began = time.monotonic()
    assert not recorder.stop(0.2)
    assert time.monotonic() - began < 2.0
    assert recorder.dropped()[Drop.STOPPED] == 4
    assert not recorder.record(POD, EVICTED, "too late")
    release.set()


ERRORS: dict[str, tuple[errors.ApiError, Drop]] = {
    "no rights": (errors.Forbidden("no", status=403), Drop.REFUSED),
    "invalid": (errors.Invalid("no", status=422), Drop.REFUSED),
    "namespace gone": (errors.NotFound("no", status=404), Drop.REFUSED),
}


@pytest.mark.parametrize(("error", "cause"), ERRORS.values(), ids=ERRORS.keys())
def test_what_the_server_refuses_is_dropped_and_the_next_is_sent(error: errors.ApiError, cause: Drop) -> None:
    api, world = Memory(), World()
    answers = iter([error])

    def misbehave() -> None:
        for problem in answers:
            raise problem

    api.before = misbehave
    recorder = make(api, world)
    recorder.start()
    recorder.record(POD, EVICTED, "first")
    recorder.record(POD, EVICTED, "second")
    assert recorder.stop(10)
    assert [body["note"] for body in api.created] == ["second"]
    assert recorder.dropped()[cause] == 1


def test_a_server_in_trouble_is_tried_again() -> None:
    api, world = Memory(), World()
    answers = iter([errors.Unreachable("cut"), errors.ServerError("no", status=500)])

    def misbehave() -> None:
        for problem in answers:
            raise problem

    api.before = misbehave
    recorder = make(api, world)
    recorder.start()
    recorder.record(POD, EVICTED, "moved")
    until(lambda: api.created)
    assert recorder.stop(10)
    assert not any(recorder.dropped().values())


def test_a_lost_answer_does_not_make_a_second_event() -> None:
    api, world = Memory(), World()
    answers = iter([errors.AlreadyExists("there is one", status=409)])

    def misbehave() -> None:
        for problem in answers:
            raise problem

    api.before = misbehave
    recorder = make(api, world)
    recorder.start()
    recorder.record(POD, EVICTED, "moved")
    assert recorder.stop(10)
    assert world.meter.read(Metric.EVENTS_SENT) == 1


def test_a_series_whose_event_expired_is_created_again_with_its_count() -> None:
    api, world = Memory(), World()
    recorder = make(api, world)
    recorder.start()
    recorder.record(POD, EVICTED, "moved")
    until(lambda: api.created)
    api.created.clear()
    recorder.record(POD, EVICTED, "moved")
    assert recorder.stop(10)
    assert [body["series"]["count"] for body in api.created] == [2]


def test_a_growing_series_is_refreshed_while_it_runs() -> None:
    api, world = Memory(), World()
    recorder = make(api, world, limits=Limits(refresh=0.05))
    recorder.start()
    recorder.record(POD, EVICTED, "moved")
    recorder.record(POD, EVICTED, "moved")
    until(lambda: api.patched)
    assert recorder.stop(10)


def test_limits_reach_the_counters() -> None:
    api, world = Memory(), World()
    recorder = make(api, world, limits=LIMITS)
    recorder.start()
    for n in range(6):
        recorder.record(POD, EVICTED, f"note {n}")
    assert recorder.stop(10)
    assert recorder.dropped()[Drop.OBJECT_LIMIT] == 3
    assert len(api.created) == 3


def test_stop_before_start() -> None:
    recorder = make(Memory(), World())
    recorder.record(POD, EVICTED, "moved")
    assert not recorder.stop(0.1)

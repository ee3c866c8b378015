"""A reflector on a server in memory that can be told what to do next, word for word."""

import gc
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from cluster import decode, errors, recovery
from cluster.decode import Page
from cluster.meta import ObjectMeta, PartialObjectMetadata
from cluster.pace import Pace
from cluster.recovery import Tuning
from cluster.reflector import INITIAL_END, Reflector
from cluster.source import Stream
from cluster.store import Delta
from telemetry.metrics import Metric
from tests.unit.cluster.surroundings import World, until

Item = PartialObjectMetadata
QUICK = Tuning(pace=Pace(0.001, 0.01), denied=Pace(0.005, 0.01), healthy_seconds=60)
DECODER: decode.Decoder[Item] = decode.Decoder(Item)


def item(name: str, version: int, uid: str = "") -> Item:
    return Item(ObjectMeta(name=name, namespace="ns", uid=uid or f"uid-{name}", resource_version=str(version)))


def event(kind: str, name: str, version: int, uid: str = "") -> bytes:
    meta = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": meta}}).encode()


def bookmark(version: int, *, end: bool = False) -> bytes:
    notes = {INITIAL_END: "true"} if end else {}
    body = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), "annotations": notes}}}
    return json.dumps(body).encode()


def failure(code: int, **details: Any) -> bytes:
    status = {"kind": "Status", "code": code, "message": "so it is", "reason": "Expired", "details": details}
    return json.dumps({"type": "ERROR", "object": status}).encode()


Word = bytes | Exception | None
"""A line, an error, or None: the server ends the stream."""


class Lines:
    """A stream that says what it is told."""

    def __init__(self) -> None:
        self.words: queue.SimpleQueue[Word] = queue.SimpleQueue()
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        while (word := self.words.get()) is not None and not self.closed.is_set():
            if isinstance(word, Exception):
                raise word
            yield word

    def close(self) -> None:
        self.closed.set()
        self.words.put(None)


@dataclass
class Server:
    """A Source: each request takes the next answer of its script, and waits if there is none."""

    lists: "queue.SimpleQueue[list[Page[Item]] | Exception]" = field(default_factory=queue.SimpleQueue)
    watches: "queue.SimpleQueue[list[Word] | Exception]" = field(default_factory=queue.SimpleQueue)
    asked: list[tuple[str, str]] = field(default_factory=list)
    streams: list[Lines] = field(default_factory=list)
    timeouts: list[tuple[int, float]] = field(default_factory=list)
    name: str = "configmaps"

    def pages(self) -> Iterator[Page[Item]]:
        self.asked.append(("list", ""))
        answer = self.lists.get(timeout=20)
        if isinstance(answer, Exception):
            raise answer
        yield from answer

    def watch(
        self, version: str, *, initial: bool, timeout_seconds: int, read_timeout: float
    ) -> AbstractContextManager[Stream]:
        self.asked.append(("stream" if initial else "watch", version))
        self.timeouts.append((timeout_seconds, read_timeout))
        return self._opened()

    @contextmanager
    def _opened(self) -> Iterator[Lines]:
        stream = Lines()
        self.streams.append(stream)
        try:
            answer = self.watches.get_nowait()
        except queue.Empty:
            answer = []
        if isinstance(answer, Exception):
            raise answer
        for word in answer:
            stream.words.put(word)
        yield stream

    def decode(self, line: bytes) -> tuple[str, Item | errors.ApiError]:
        return DECODER.decode_event(line)

    def say(self, *words: Word) -> None:
        until(lambda: self.streams, "an open stream")
        for word in words:
            self.streams[-1].words.put(word)


def page(*items: Item, version: int, first: bool = True) -> Page[Item]:
    return Page(items, "", str(version), first)


@dataclass
class Scene:
    server: Server = field(default_factory=Server)
    world: World = field(default_factory=World)
    deltas: list[Delta[Item]] = field(default_factory=list)
    tuning: Tuning = QUICK
    streaming: bool = False
    freeze: bool = False
    handler: Callable[[Delta[Item]], None] | None = None

    def __post_init__(self) -> None:
        self.reflector = Reflector(
            self.server,
            self.handler or self.deltas.append,
            runtime=self.world.runtime,
            tuning=self.tuning,
            streaming=self.streaming,
            freeze=self.freeze,
        )

    def __enter__(self) -> Self:
        self.reflector.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.reflector.stop(), "the thread ends"

    def story(self) -> list[str]:
        return [f"{d.kind} {d.key[1]} {d.object.metadata.resource_version}" for d in list(self.deltas)]

    def wait(self, count: int) -> list[str]:
        until(lambda: len(self.deltas) >= count, f"{count} deltas, there are {self.story()}")
        return self.story()


def test_list_then_watch_from_its_version() -> None:
    scene = Scene()
    scene.server.lists.put([page(item("a", 3), version=10), page(item("b", 4), version=10, first=False)])
    scene.server.watches.put([event("MODIFIED", "a", 11), event("DELETED", "b", 12), event("ADDED", "c", 13)])
    with scene:
        assert scene.reflector.wait_synced(10)
        assert scene.wait(5) == ["added a 3", "added b 4", "modified a 11", "deleted b 4", "added c 13"]
        assert scene.server.asked == [("list", ""), ("watch", "10")]
        assert scene.reflector.problem() is None
    assert scene.deltas[2].old == item("a", 3)
    assert scene.world.meter.read(Metric.REFLECTOR_DELTAS, resource="configmaps", delta="added") == 3


def test_pages_that_begin_anew_replace_the_earlier_ones() -> None:
    scene = Scene()
    scene.server.lists.put([page(item("stale", 1), version=5), page(item("a", 6), version=9)])
    with scene:
        assert scene.wait(1) == ["added a 6"]
        until(lambda: scene.server.asked[-1] == ("watch", "9"))


def test_the_position_advances_with_events_and_bookmarks() -> None:
    """The official client asked for the first version again and again, until it was gone."""
    scene = Scene()
    scene.server.lists.put([page(version=10)])
    scene.server.watches.put([event("ADDED", "a", 12), None])
    scene.server.watches.put([bookmark(5000), None])
    with scene:
        until(lambda: scene.server.asked[-1] == ("watch", "5000"))
    assert [version for verb, version in scene.server.asked if verb == "watch"] == ["10", "12", "5000"]


@pytest.mark.parametrize("gone", [[failure(410)], errors.Gone("too old")], ids=["in the stream", "over HTTP"])
def test_gone_lists_again_and_emits_only_the_difference(gone: Any) -> None:
    scene = Scene()
    scene.server.lists.put([page(item("same", 1), item("old", 2), item("swap", 3, "u1"), version=10)])
    scene.server.watches.put(gone)
    scene.server.lists.put([page(item("same", 1), item("new", 22), item("swap", 23, "u2"), version=30)])
    with scene:
        story = scene.wait(7)
        until(lambda: scene.server.asked[-1] == ("watch", "30"))
    assert story[3:] == ["deleted old 2", "added new 22", "deleted swap 3", "added swap 23"]
    assert scene.world.meter.read(Metric.REFLECTOR_RELISTS, resource="configmaps", cause="gone") == 1
    assert "REFLECTOR_RELISTED" in scene.world.events()


def test_replayed_and_late_events_are_not_applied_twice() -> None:
    scene = Scene()
    scene.server.lists.put([page(item("a", 8), version=10)])
    scene.server.watches.put(
        [
            event("MODIFIED", "a", 11),
            event("MODIFIED", "a", 11),
            event("ADDED", "a", 8),
            event("ADDED", "ghost", 9),
            event("DELETED", "a", 10),
            event("MODIFIED", "a", 12),
        ]
    )
    with scene:
        assert scene.wait(3) == ["added a 8", "modified a 11", "modified a 12"]
    assert scene.world.meter.read(Metric.REFLECTOR_STALE, resource="configmaps") == 4


def test_many_deletions_at_one_version_are_all_seen() -> None:
    scene = Scene()
    scene.server.lists.put([page(item("a", 1), item("b", 2), version=10)])
    scene.server.watches.put([event("DELETED", "a", 11), event("DELETED", "b", 11)])
    with scene:
        assert scene.wait(4)[2:] == ["deleted a 1", "deleted b 2"]


def test_a_name_taken_again_is_two_deltas() -> None:
    scene = Scene()
    scene.server.lists.put([page(item("a", 1, "u1"), version=10)])
    scene.server.watches.put([event("MODIFIED", "a", 12, "u2")])
    with scene:
        assert scene.wait(3)[1:] == ["deleted a 1", "added a 12"]


def test_streaming_list() -> None:
    scene = Scene(streaming=True)
    initial: list[Word] = [event("ADDED", "b", 4), event("ADDED", "a", 3), bookmark(10, end=True)]
    scene.server.watches.put(initial)
    scene.server.watches.put([event("ADDED", "c", 11)])
    with scene:
        assert scene.wait(3) == ["added b 4", "added a 3", "added c 11"]
    assert scene.server.asked == [("stream", ""), ("watch", "10")]


def test_nothing_is_handed_on_before_a_streaming_list_is_complete() -> None:
    scene = Scene(streaming=True)
    scene.server.watches.put([event("ADDED", "a", 3), errors.Unreachable("cut")])
    scene.server.watches.put([event("ADDED", "b", 4), bookmark(10, end=True)])
    with scene:
        assert scene.wait(1) == ["added b 4"]


STREAMLESS: dict[str, list[Any]] = {
    "refused": [errors.Invalid("sendInitialEvents is forbidden", status=422)],
    "ignored: ends without the bookmark": [[event("ADDED", "a", 1), None], [event("ADDED", "a", 1), None]],
    "silent": [[errors.Unreachable("no byte", timed_out=True)]] * 2,
}


@pytest.mark.parametrize("answers", STREAMLESS.values(), ids=STREAMLESS.keys())
def test_without_streaming_pages_are_used_and_that_is_remembered(answers: list[Any]) -> None:
    scene = Scene(streaming=True)
    for answer in answers:
        scene.server.watches.put(answer)
    scene.server.lists.put([page(item("a", 1), version=10)])
    scene.server.watches.put([failure(410)])
    scene.server.lists.put([page(item("a", 1), version=20)])
    with scene:
        until(lambda: ("watch", "20") in scene.server.asked)
    verbs = [verb for verb, _ in scene.server.asked]
    assert verbs == ["stream"] * len(answers) + ["list", "watch", "list", "watch"]
    assert "REFLECTOR_PAGED" in scene.world.events()


BREAKING: dict[str, Any] = {
    "an error": errors.ServerError("etcd does not answer", status=500),
    "an error in the middle": [event("ADDED", "a", 1), failure(500)],
    "a cut": [event("ADDED", "a", 1), errors.Unreachable("cut")],
    "nonsense": [b"<html>"],
}


@pytest.mark.parametrize("answer", BREAKING.values(), ids=BREAKING.keys())
def test_streams_that_break_off_are_tried_again_with_the_next_list(answer: Any) -> None:
    """They may do so because of what they are, which pages get past, or because the server was on its way down."""
    scene = Scene(streaming=True)
    answers: list[Any] = [answer, answer, [failure(410)], answer, [failure(410)]]
    for given in (*answers, [event("ADDED", "a", 1), bookmark(30, end=True)]):
        scene.server.watches.put(given)
    scene.server.lists.put([page(item("a", 1), version=10)])
    scene.server.lists.put([page(item("a", 1), version=20)])
    with scene:
        until(lambda: ("watch", "30") in scene.server.asked)
    verbs = [verb for verb, _ in scene.server.asked]
    assert verbs == ["stream", "stream", "list", "watch", "stream", "list", "watch", "stream", "watch"]
    assert scene.world.events().count("REFLECTOR_PAGED") == 2


def test_watches_that_are_accepted_and_bring_nothing_end_in_a_list() -> None:
    """After a restore of etcd our version lies in the future; the server keeps back everything up to it."""
    scene = Scene(tuning=Tuning(pace=Pace(0.001, 0.01), healthy_seconds=60, silence_seconds=0.05))
    scene.server.lists.put([page(item("a", 900), item("later", 950), version=1000)])
    scene.server.lists.put([page(item("a", 7), version=20)])
    with scene:
        until(lambda: ("watch", "1000") in scene.server.asked)
        while ("watch", "20") not in scene.server.asked:
            stream = scene.server.streams[-1]
            time.sleep(0.06)
            stream.words.put(errors.Unreachable("no byte", timed_out=True))
            until(lambda stream=stream: scene.server.streams[-1] is not stream)  # type: ignore[misc]
        assert scene.wait(4) == ["added a 900", "added later 950", "deleted later 950", "modified a 7"]
        scene.server.say(event("ADDED", "b", 21))
        assert scene.wait(5)[-1] == "added b 21", "what the server writes after the restore"
    assert scene.world.meter.read(Metric.REFLECTOR_RELISTS, resource="configmaps", cause="stuck") == 1


def test_a_watch_that_the_server_refuses_three_times_is_listed_anew() -> None:
    """A proxy or an aggregated server that does not know our version may say so with a 5xx rather than a 410."""
    scene = Scene()
    scene.server.lists.put([page(item("a", 900), version=1000)])
    for _ in range(3):
        scene.server.watches.put(errors.ServerError("Too large resource version", status=504))
    scene.server.lists.put([page(item("a", 7), version=20)])
    with scene:
        until(lambda: scene.server.asked[-1] == ("watch", "20"))
        assert scene.wait(2) == ["added a 900", "modified a 7"]


def test_denied_is_reported_and_over_when_it_is_over() -> None:
    scene = Scene()
    scene.server.lists.put(errors.Forbidden("pods is forbidden", status=403, reason="Forbidden"))
    scene.reflector.start()
    until(lambda: scene.reflector.problem() == "configmaps: 403 Forbidden: pods is forbidden")
    assert "REFLECTOR_DENIED" in scene.world.events()
    scene.server.lists.put([page(version=1)])
    until(lambda: scene.reflector.problem() is None)
    assert scene.reflector.stop()


def test_an_apiserver_that_denies_for_a_moment_is_no_reason_to_be_unready() -> None:
    """One that has just started does not know anybody's rights; with that, every webhook would leave its Service."""
    scene = Scene()
    scene.server.lists.put([page(item("a", 5), version=10)])
    for _ in range(recovery.MOMENT - 1):
        scene.server.watches.put(errors.Forbidden("configmaps is forbidden", status=403, reason="Forbidden"))
    with scene:
        until(lambda: scene.world.events().count("REFLECTOR_DENIED") == recovery.MOMENT - 1)
        assert scene.reflector.problem() is None
        scene.server.watches.put(errors.Forbidden("configmaps is forbidden", status=403, reason="Forbidden"))
        until(lambda: scene.reflector.problem() == "configmaps: 403 Forbidden: configmaps is forbidden")


def test_a_line_that_cannot_be_read_ends_the_watch_and_not_the_thread() -> None:
    scene = Scene()
    scene.server.lists.put([page(version=10)])
    scene.server.watches.put([b"<html>"])
    scene.server.watches.put([event("ADDED", "a", 11)])
    with scene:
        assert scene.wait(1) == ["added a 11"]


def bad_event(kind: str, name: str, version: int | None) -> bytes:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "labels": {"secret": ["hunter2"]}}
    stamped = meta if version is None else {**meta, "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": stamped}}).encode()


def bad_page(*names: str, version: int, good: tuple[Item, ...] = ()) -> Page[Item]:
    left_out = tuple(errors.Unreadable(namespace="ns", name=name, uid=f"uid-{name}") for name in names)
    return Page(good, "", str(version), True, left_out)


def left_out(scene: Scene) -> list[tuple[str, str, str]]:
    lines = [line for line in scene.world.lines if line["event"] == "OBJECT_UNREADABLE"]
    assert "hunter2" not in str(scene.world.lines)
    return [(line["namespace"], line["name"], line["uid"]) for line in lines]


def unreadable(scene: Scene) -> float:
    return scene.world.meter.read(Metric.OBJECTS_UNREADABLE, resource="configmaps")


def test_an_object_that_cannot_be_read_is_left_out_of_a_list_and_told_once() -> None:
    scene = Scene()
    scene.server.lists.put([bad_page("bad", version=10, good=(item("a", 3),))])
    scene.server.watches.put([failure(410)])
    scene.server.lists.put([bad_page("bad", version=20, good=(item("a", 3),))])
    with scene:
        until(lambda: scene.server.asked[-1] == ("watch", "20"))
        assert scene.reflector.problem() is None
    assert scene.wait(1) == ["added a 3"]
    assert (left_out(scene), unreadable(scene)) == ([("ns", "bad", "uid-bad")], 2)


def test_a_watch_goes_on_after_an_object_that_cannot_be_read() -> None:
    """It counts as absent, as a list would have it; the position moves on, so it is not asked for again."""
    scene = Scene()
    scene.server.lists.put([page(item("a", 1), item("bad", 2), version=10)])
    bad: list[Word] = [bad_event("MODIFIED", "bad", 11), bad_event("MODIFIED", "bad", 12)]
    scene.server.watches.put([*bad, event("ADDED", "b", 13), None])
    with scene:
        assert scene.wait(4) == ["added a 1", "added bad 2", "deleted bad 2", "added b 13"]
        until(lambda: scene.server.asked[-1] == ("watch", "13"))
    assert scene.server.asked == [("list", ""), ("watch", "10"), ("watch", "13")], "one list in all"
    assert (left_out(scene), unreadable(scene)) == ([("ns", "bad", "uid-bad")], 2)


def test_an_object_comes_back_when_it_can_be_read_again() -> None:
    scene = Scene()
    scene.server.lists.put([bad_page("bad", version=10)])
    scene.server.watches.put([event("MODIFIED", "bad", 11), bad_event("DELETED", "bad", 12)])
    with scene:
        assert scene.wait(2) == ["added bad 11", "deleted bad 11"]


def test_an_old_event_that_cannot_be_read_changes_nothing() -> None:
    scene = Scene()
    scene.server.lists.put([page(item("a", 9), version=10)])
    scene.server.watches.put([bad_event("MODIFIED", "a", 8), event("ADDED", "b", 11)])
    with scene:
        assert scene.wait(2) == ["added a 9", "added b 11"]


def test_a_streaming_list_leaves_out_what_cannot_be_read() -> None:
    scene = Scene(streaming=True)
    initial: list[Word] = [bad_event("ADDED", "bad", None), event("ADDED", "a", 3), bookmark(10, end=True)]
    scene.server.watches.put(initial)
    with scene:
        assert scene.wait(1) == ["added a 3"]
        until(lambda: scene.server.asked == [("stream", ""), ("watch", "10")])
    assert (left_out(scene), unreadable(scene)) == ([("ns", "bad", "uid-bad")], 1)


def test_an_event_without_a_version_costs_one_list_and_no_more() -> None:
    scene = Scene()
    scene.server.lists.put([page(item("a", 1), version=10)])
    for _ in range(3):
        scene.server.watches.put([bad_event("ADDED", "bad", None)])
    scene.server.lists.put([bad_page("bad", version=20, good=(item("a", 1),))])
    scene.server.watches.put([event("ADDED", "b", 21)])
    with scene:
        assert scene.wait(2) == ["added a 1", "added b 21"]
    assert [verb for verb, _ in scene.server.asked] == ["list", *["watch"] * 3, "list", "watch"]


def test_a_defect_of_ours_ends_the_watch_and_not_the_thread() -> None:
    scene = Scene()
    scene.server.lists.put(RuntimeError("a bug"))
    scene.server.lists.put([page(item("a", 1), version=10)])
    with scene:
        assert scene.wait(1) == ["added a 1"]
    assert scene.world.meter.read(Metric.INTERNAL_ERRORS) == 1


def test_a_handler_that_raises_stops_nothing() -> None:
    seen: list[str] = []

    def handler(delta: Delta[Item]) -> None:
        seen.append(delta.key[1])
        raise ValueError("broken receiver")

    scene = Scene(handler=handler)
    scene.server.lists.put([page(item("a", 1), item("b", 2), version=10)])
    scene.server.watches.put([event("ADDED", "c", 11)])
    with scene:
        until(lambda: seen == ["a", "b", "c"])
        assert scene.reflector.synced
    assert scene.world.meter.read(Metric.HANDLER_ERRORS, resource="configmaps") == 3


def test_stop_is_quick_while_a_watch_is_silent() -> None:
    scene = Scene()
    scene.server.lists.put([page(version=10)])
    scene.reflector.start()
    until(lambda: scene.server.streams)
    began = time.monotonic()
    assert scene.reflector.stop()
    assert time.monotonic() - began < 1.0
    assert scene.server.asked == [("list", ""), ("watch", "10")], "and nothing was tried again"


def test_stop_before_start_and_during_a_wait() -> None:
    assert Scene().reflector.stop()
    patient = Scene(tuning=Tuning(pace=Pace(60, 60)))
    patient.server.lists.put(errors.Unreachable("refused"))
    patient.reflector.start()
    until(lambda: "REFLECTOR_RETRYING" in patient.world.events())
    assert patient.reflector.stop()


def test_timeouts_are_spread_and_silence_is_bounded() -> None:
    scene = Scene(tuning=Tuning(pace=Pace(0.001, 0.01), healthy_seconds=60, watch_seconds=300, silence_seconds=90))
    scene.server.lists.put([page(version=10)])
    for _ in range(20):
        scene.server.watches.put([bookmark(11), None])
    with scene:
        until(lambda: len(scene.server.timeouts) >= 20)
    asked = [seconds for seconds, _ in scene.server.timeouts]
    assert len(set(asked)) > 5
    assert all(240 <= seconds <= 360 for seconds in asked)
    assert {silence for _, silence in scene.server.timeouts} == {90}


def test_age_tells_how_long_nothing_was_heard() -> None:
    scene = Scene()
    scene.server.lists.put([page(version=10)])
    with scene:
        assert scene.reflector.wait_synced(10)
        scene.server.say(bookmark(12))
        until(lambda: scene.reflector.age() < 0.5)


def test_freezing_takes_the_list_out_of_the_collector() -> None:
    gc.unfreeze()
    scene = Scene(freeze=True)
    scene.server.lists.put([page(item("a", 1), version=10)])
    try:
        with scene:
            assert scene.reflector.wait_synced(10)
            assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()

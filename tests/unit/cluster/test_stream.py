"""Watches: lines, how they end, and closing one from another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from cluster import errors, resources
from cluster.stream import WatchStream
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, status

LINES = b'{"type":"ADDED","object":{}}\n{"type":"BOOKMARK","object":{}}\n'
DEADLINE_SECONDS = 10.0


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api.running() as fake:
        yield fake


def test_the_request(api: FakeApi) -> None:
    client = api.client()
    with client.watch(resources.PODS, resource_version="7", namespace="a", label_selector="x=y", timeout_seconds=60):
        pass
    with client.watch(resources.PODS, resource_version="", send_initial_events=True, bookmarks=False):
        pass
    plain, initial = (seen.query for seen in api.seen)
    assert plain == {
        "watch": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "60",
        "labelSelector": "x=y",
        "allowWatchBookmarks": "true",
    }
    assert initial == {
        "watch": "true",
        "resourceVersion": "",
        "timeoutSeconds": "300",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(LINES, id="as-sent"),
        pytest.param(LINES.replace(b"\n", b"\n\n"), id="blank-lines"),
    ],
)
def test_lines_until_the_server_ends(api: FakeApi, body: bytes) -> None:
    api.answer(Answer(body=body))
    with api.client().watch(resources.PODS, resource_version="1") as stream:
        assert list(stream) == LINES.splitlines()


def test_a_line_longer_than_a_read(api: FakeApi) -> None:
    long = b'{"type":"ADDED","object":"' + b"x" * 500_000 + b'"}'
    api.answer(Answer(body=long + b"\n" + LINES))
    with api.client().watch(resources.PODS, resource_version="1") as stream:
        assert list(stream) == [long, *LINES.splitlines()]


def test_a_refused_watch_is_an_error(api: FakeApi) -> None:
    api.answer(status(410, "Expired"))
    with pytest.raises(errors.Gone), api.client().watch(resources.PODS, resource_version="1"):
        pass


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(body=LINES, cut=True), id="between-lines"),
        pytest.param(Answer(body=LINES[:-5], cut=True), id="inside-a-line"),
        pytest.param(Answer(body=LINES[:-5]), id="ends-inside-a-line"),
    ],
)
def test_a_broken_watch_is_unreachable(api: FakeApi, answer: Answer) -> None:
    api.answer(answer)
    with (
        api.client().watch(resources.PODS, resource_version="1") as stream,
        pytest.raises(errors.Unreachable),
    ):
        list(stream)


def test_silence_is_unreachable(api: FakeApi) -> None:
    api.answer(Answer(body=LINES, hold=True))
    lines: list[bytes] = []
    with (
        api.client().watch(resources.PODS, resource_version="1", read_timeout=0.05) as stream,
        pytest.raises(errors.Unreachable) as caught,
    ):
        lines.extend(stream)
    assert caught.value.timed_out


def test_silence_may_last_longer_than_a_call(api: FakeApi) -> None:
    api.answer(Answer(body=LINES, hold=True))
    with api.client(timeout=0.2).watch(resources.PODS, resource_version="1", read_timeout=60) as stream:
        reader = Reader(stream)
        assert reader.wait_for_lines(2)
        reader.join(timeout=0.5)
        assert reader.is_alive(), "the read timeout of the call must not end the watch"
        stream.close()
        reader.join(DEADLINE_SECONDS)


class Reader(threading.Thread):
    """Reads a stream to its end and keeps what happened."""

    def __init__(self, stream: WatchStream) -> None:
        super().__init__(daemon=True)
        self.lines: list[bytes] = []
        self.failure: Exception | None = None
        self._stream = stream
        self._grown = threading.Condition()
        self.start()

    def run(self) -> None:
        try:
            for line in self._stream:
                with self._grown:
                    self.lines.append(line)
                    self._grown.notify_all()
        except errors.ApiError as exc:
            self.failure = exc

    def wait_for_lines(self, count: int) -> bool:
        with self._grown:
            return self._grown.wait_for(lambda: len(self.lines) >= count, DEADLINE_SECONDS)


def test_close_unblocks_the_reader_at_once(api: FakeApi) -> None:
    api.answer(Answer(body=LINES, hold=True))
    with api.client().watch(resources.PODS, resource_version="1", read_timeout=600) as stream:
        reader = Reader(stream)
        assert reader.wait_for_lines(2)
        stream.close()
        reader.join(DEADLINE_SECONDS)
        assert not reader.is_alive()
        assert (reader.lines, reader.failure) == (LINES.splitlines(), None)


def test_close_twice_and_after_the_end(api: FakeApi) -> None:
    api.answer(Answer(body=LINES), Answer(body=LINES, hold=True))
    client = api.client()
    with client.watch(resources.PODS, resource_version="1") as stream:
        list(stream)
        stream.close()
        stream.close()
    with client.watch(resources.PODS, resource_version="1") as held:
        held.close()
        assert list(held) == []
    held.close()


def test_a_watch_left_early_does_not_poison_the_pool(api: FakeApi) -> None:
    api.script = lambda seen: Answer(body=LINES, hold=True) if "watch" in seen.query else Answer(body={"kind": "X"})
    client = api.client()
    for _ in range(3):
        with client.watch(resources.PODS, resource_version="1") as stream:
            assert next(iter(stream)) == LINES.splitlines()[0]
        assert client.get(resources.NODES, "x") == {"kind": "X"}

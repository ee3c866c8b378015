"""A connection of the worker: the same bytes come back on the short way as on the long one, and both keep in step."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from serving import asgi, gunicorn_conf, lane
from serving.asgi import Answer, Application
from serving.gunicorn_conf import Connection, Worker
from tests.unit.cluster.surroundings import World
from tests.unit.webhook import building
from webhook import server

POD = {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
BODY = building.body(POD)


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Written at once, so there is no buffer."""

    def pause_reading(self) -> None:
        """What is sent is sent by the test."""

    def resume_reading(self) -> None:
        """Likewise."""


class Counted(Connection):
    """Counts the requests that the parser saw."""

    parsed = 0

    async def _handle_http_request(self, request: Any, sockname: object, peername: object) -> bool:
        self.parsed += 1
        return await super()._handle_http_request(request, sockname, peername)


class Peer:
    """The other side of a connection."""

    def __init__(self, worker: Any) -> None:
        self.transport = Transport()
        self.connection = Counted(worker)
        self.connection.connection_made(self.transport)

    @property
    def parsed(self) -> int:
        return self.connection.parsed

    async def send(self, *pieces: bytes) -> bytes:
        """What comes back, once everything has come to rest."""
        self.transport.written = b""
        for piece in pieces:
            self.connection.data_received(piece)
            await rest()
        return self.transport.written


async def rest() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def request(body: bytes = BODY, *, path: str = "/mutate?timeout=2s", more: str = "") -> bytes:
    described = f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n{more}"
    return f"POST {path} HTTP/1.1\r\nHost: a\r\n{described}\r\n".encode() + body


def a_worker(app: Application | None = None) -> Any:
    cfg = Config()
    cfg.set("keepalive", gunicorn_conf.KEEPALIVE_SECONDS)
    return SimpleNamespace(
        cfg=cfg,
        log=Logger(cfg),
        asgi=app or server.application(building.view, runtime=World().runtime),
        loop=asyncio.get_running_loop(),
        heads=lane.Heads(),
        starts=gunicorn_conf.Starts(),
        nr_conns=0,
        nr=0,
        max_requests=1 << 60,
        alive=True,
        state={},
    )


def statuses(written: bytes) -> list[int]:
    return [int(it) for it in re.findall(rb"HTTP/1.1 (\d+) ", written)]


def talk(conversation: Callable[[Peer], Awaitable[None]], app: Application | None = None) -> None:
    async def run() -> None:
        peer = Peer(a_worker(app))
        await conversation(peer)
        peer.connection.connection_lost(None)
        peer.connection._task.cancel()
        await rest()

    asyncio.run(run())


def test_the_second_answer_is_like_the_first_and_the_parser_did_not_see_it() -> None:
    async def conversation(peer: Peer) -> None:
        first = await peer.send(request())
        second = await peer.send(request())
        undated = [re.sub(rb"Date: [^\r]*", b"", it) for it in (first, second)]
        assert undated[0] == undated[1]
        assert json.loads(second.partition(b"\r\n\r\n")[2])["response"]["patchType"] == "JSONPatch"
        assert (peer.parsed, peer.connection.worker.nr) == (1, 2)

    talk(conversation)


@pytest.mark.parametrize("at", [1, 20, 120, len(request()) - 1], ids=["start", "line", "body", "end"])
def test_in_two_pieces(at: int) -> None:
    async def conversation(peer: Peer) -> None:
        await peer.send(request())
        whole = request()
        for _ in range(3):
            assert statuses(await peer.send(whole[:at], whole[at:])) == [200]
        assert statuses(await peer.send(whole)) == [200]

    talk(conversation)


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        pytest.param(request() * 3, [200, 200, 200], id="three at once"),
        pytest.param(request() + request()[:50], [200], id="and the beginning of another"),
        pytest.param(request(path="/other"), [404], id="another path"),
        pytest.param(request(b"{"), [400], id="no review"),
        pytest.param(request(b""), [400], id="empty"),
        pytest.param(request(more="Connection: close\r\n"), [200], id="wants to close"),
        pytest.param(request(more="Content-Length: 1\r\n"), [400], id="two lengths"),
        pytest.param(request().replace(b"Length: ", b"Length: -"), [400], id="negative"),
        pytest.param(b"\x00" * 50 + b"\r\n\r\n", [400], id="noise"),
    ],
)
def test_after_a_known_head(sent: bytes, found: list[int]) -> None:
    async def conversation(peer: Peer) -> None:
        await peer.send(request())
        assert statuses(await peer.send(sent)) == found

    talk(conversation)


def test_half_a_head_is_not_forgotten_when_a_known_one_follows() -> None:
    """What follows belongs to the header that was begun, whatever it looks like."""

    async def conversation(peer: Peer) -> None:
        await peer.send(request())
        assert await peer.send(b"POST /mutate HTTP/1.1\r\nX-Begun: ") == b""
        assert statuses(await peer.send(request())) == [200]
        assert peer.parsed == 2

    talk(conversation)


def test_the_rest_of_several_requests_keeps_the_parser_busy() -> None:
    async def conversation(peer: Peer) -> None:
        whole = request()
        await peer.send(whole)
        assert statuses(await peer.send(whole + whole[:40], whole[40:])) == [200, 200]
        assert statuses(await peer.send(whole)) == [200]
        assert peer.parsed == 3

    talk(conversation)


def test_a_worker_that_ends_closes_after_its_answer() -> None:
    async def conversation(peer: Peer) -> None:
        await peer.send(request())
        peer.connection.worker.alive = False
        written = await peer.send(request())
        assert statuses(written) == [200]
        assert b"Connection: close" in written
        assert peer.transport.closed

    talk(conversation)


def test_whoever_does_not_read_is_not_written_to() -> None:
    async def conversation(peer: Peer) -> None:
        await peer.send(request())
        peer.connection.pause_writing()
        await peer.send(request())
        assert peer.parsed == 2, "the long way waits until there is room again"

    talk(conversation)


def test_a_body_that_does_not_come_ends_on_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gunicorn_conf, "PIECES_SECONDS", 0.0)

    async def conversation(peer: Peer) -> None:
        await peer.send(request())
        await peer.send(request()[:-10])
        await rest()
        assert peer.parsed == 2
        assert statuses(await peer.send(request()[-10:])) == [200]

    talk(conversation)


def test_a_body_byte_by_byte_is_left_to_the_parser_and_answered() -> None:
    async def conversation(peer: Peer) -> None:
        whole = request()
        await peer.send(whole)
        head = whole.index(b"{")
        single = [whole[at : at + 1] for at in range(head, len(whole))]
        assert statuses(await peer.send(whole[:head], *single)) == [200]
        assert peer.parsed == 2

    talk(conversation)


def test_an_idle_connection_is_closed_though_it_only_took_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def conversation(peer: Peer) -> None:
        peer.connection.worker.heads.learn(lane.head(request()), server.PATH)
        assert statuses(await peer.send(request())) == [200]
        assert peer.parsed == 0
        assert peer.connection._keepalive_handle is not None
        peer.connection._keepalive_timeout()
        assert not peer.transport.closed, "it was used just now"
        monkeypatch.setattr(gunicorn_conf, "KEEPALIVE_SECONDS", -1.0)
        peer.connection._keepalive_timeout()
        assert peer.transport.closed

    talk(conversation)


def test_a_peer_with_two_heads_has_both_on_the_short_way() -> None:
    async def conversation(peer: Peer) -> None:
        for _ in range(3):
            for path in ("/mutate?timeout=2s", "/mutate?timeout=10s"):
                assert statuses(await peer.send(request(path=path))) == [200]
        assert peer.parsed == 2, "each head was learnt once"

    talk(conversation)


def test_the_start_of_an_answer_is_used_again_for_a_moment_and_for_its_like_only() -> None:
    long, short, failed = (
        Answer(200, asgi.JSON, b"four"),
        Answer(200, asgi.JSON, b""),
        Answer(500, asgi.TEXT, b"four"),
    )

    async def conversation(peer: Peer) -> None:
        starts = gunicorn_conf.Starts()
        first = starts.of(peer.connection, long, 100.0)
        assert first.startswith(b"HTTP/1.1 200 OK\r\n")
        assert first.endswith(b"\r\n\r\n")
        assert b"content-length: 4\r\n" in first
        assert starts.of(peer.connection, long, 100.0 + gunicorn_conf.START_SECONDS * 0.9) is first
        assert b"content-length: 0\r\n" in starts.of(peer.connection, short, 100.0)
        assert starts.of(peer.connection, failed, 100.0).startswith(b"HTTP/1.1 500 ")
        later = starts.of(peer.connection, long, 100.0 + gunicorn_conf.START_SECONDS)
        assert later is not first, "written anew, with the date of then"
        assert await peer.send() == b"", "nothing of it was sent"

    talk(conversation)


def test_the_short_way_leads_to_the_handler_of_the_path() -> None:
    def handler(name: bytes) -> Callable[[bytes], Answer]:
        return lambda body: Answer(200, asgi.TEXT, name + b" of " + body)

    handlers = {"/one": handler(b"one"), "/two": handler(b"two")}

    async def conversation(peer: Peer) -> None:
        for path in ("one", "two", "one", "two"):
            answer = await peer.send(request(b"it", path=f"/{path}"))
            assert answer.endswith(f"\r\n\r\n{path} of it".encode())
        assert peer.parsed == 2, "each path was learnt once"

    talk(conversation, Application(handlers, body_limit=100, runtime=World().runtime))


@pytest.fixture
def switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)
    asyncio.set_event_loop(None)


@pytest.mark.usefixtures("switches")
def test_a_thread_that_works_gives_way_to_requests_sooner_than_by_default() -> None:
    """Threads of watches and views share the interpreter with the loop."""
    before = sys.getswitchinterval()
    worker = Worker.__new__(Worker)
    worker._setup_event_loop()
    worker.loop.close()
    assert sys.getswitchinterval() == pytest.approx(gunicorn_conf.SWITCH_SECONDS)
    assert sys.getswitchinterval() <= before / 5

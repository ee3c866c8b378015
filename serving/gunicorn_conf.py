"""gunicorn, set up for our callers: API servers and schedulers, with a pool of connections and a short patience.

The only module that knows gunicorn. It decides nothing about requests.
"""

import asyncio
import logging
import os
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.asgi.protocol import ASGIProtocol  # type: ignore[import-untyped]
from gunicorn.glogging import Logger as GunicornLogger  # type: ignore[import-untyped]
from gunicorn.workers import gasgi  # type: ignore[import-untyped]

from serving import asgi, lane, peers
from serving.asgi import Answer, Application
from telemetry import listening

KEEPALIVE_SECONDS: Final = 120
"""The API server keeps idle connections for 90 s. If we closed first, the next review on one would be lost."""
PIECES_SECONDS: Final = 2.0
"""For a body of which a part is there. The API server gives the whole review no more than that."""
PIECES_AT_MOST: Final = 32
"""Each piece is joined to those before it; whoever sends a body byte by byte must not make that expensive."""
START_SECONDS: Final = 0.5
"""How long the start of an answer is used again; gunicorn makes its date once a second."""
SWITCH_SECONDS: Final = 0.0005
"""How long a thread that works may keep the interpreter from the one that answers. By default that is ten times as
long, and every request waits for it while a watch has much to tell.
"""
SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the heartbeat file of the worker, not data
Compose = Callable[[], tuple[Application, ssl.SSLContext | None]]
"""Without a context it is served in plain text, if the server was made for that."""


class _Plain:
    """As much of a request as gunicorn looks at when it writes the head of an answer."""

    version = (1, 1)


_PLAIN: Final = _Plain()


class Server(BaseApplication):  # type: ignore[misc]
    """One arbiter and one worker; everything with threads is composed in the worker, after the fork."""

    def __init__(self, compose: Compose, *, listen: tuple[str, int], grace_seconds: int, tls: bool = True) -> None:
        self._compose = compose
        self._settings = settings(listen, grace_seconds) | (with_tls(self._context) if tls else {})
        self._made: tuple[Application, ssl.SSLContext | None] | None = None
        super().__init__()

    def load_config(self) -> None:
        """Called by gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Application:
        """Called by gunicorn in the worker."""
        self._made = self._compose()
        return self._made[0]

    def _context(self, _: object, __: object) -> ssl.SSLContext:
        # Never served in plain text: gunicorn would, if this raised in a worker that lives.
        if self._made is None or self._made[1] is None:
            raise SystemExit("the worker was not composed")
        return self._made[1]


def settings(listen: tuple[str, int], grace_seconds: int) -> dict[str, Any]:
    """What differs from the defaults of gunicorn, and why."""
    return {
        "bind": binds(*listen),
        "worker_class": "serving.gunicorn_conf.Worker",
        "workers": 1,  # one view of the cluster; a second core is a second replica
        "asgi_lifespan": "on",
        "keepalive": KEEPALIVE_SECONDS,
        "graceful_timeout": grace_seconds,
        "control_socket_disable": True,  # nobody needs it, and the root file system is read-only
        "worker_tmp_dir": str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None,
        "logger_class": Logger,
    }


def binds(host: str, port: int) -> list[str]:
    """For an empty host IPv6 and IPv4 where the machine has both: API servers come by the first family of the pod."""
    found = listening.where(host)
    both = found == listening.ALL_IPV6 and listening.is_ipv6_apart()
    # gunicorn takes the machine's word for what an IPv6 socket answers, and has no setting for it.
    return [listening.shown(it, port) for it in ((found, listening.ALL_IPV4) if both else (found,))]


def with_tls(context: Callable[[object, object], ssl.SSLContext]) -> dict[str, Any]:
    """What gunicorn needs to serve TLS with a context of ours."""
    # Both files only say that TLS is on: those of the context may be late.
    return {"ssl_context": context, "certfile": os.devnull, "keyfile": os.devnull}


class Starts:
    """Status lines and headers of answers that were sent a moment ago; those that follow differ in nothing but the
    date, which is as exact as a second. One per worker; owned by its event loop.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, int], bytes] = {}
        self._since = 0.0

    def of(self, connection: "Connection", answer: Answer, now: float) -> bytes:
        """The start of this answer; `now` by the clock of the loop."""
        if now - self._since >= START_SECONDS:
            self._known.clear()
            self._since = now
        key = answer.status, answer.content_type, len(answer.body)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = connection.start_of(answer)
        return found


class Connection(ASGIProtocol):  # type: ignore[misc]
    """gunicorn's connection, with the short way of `lane` in front of it.

    A request takes it only while the connection rests: nothing of another request is under way, nothing waits to be
    written, and nobody asked the worker to end. All else is gunicorn's, this class only lends it the bytes.
    """

    _response_buffer: bytes | None
    """What gunicorn keeps back of an answer until its body comes."""

    def __init__(self, worker: "Worker") -> None:
        super().__init__(worker)
        self._heads = worker.heads
        self._head: lane.Head | None = None
        """The one that was used last."""
        self._began: bytes | None = None
        """The head of the request that the parser has now, if it could be seen whole."""
        self._pieces = b""
        """A request with a known head whose body is not complete yet."""
        self._count = 0
        """How many pieces that are."""
        self._patience: asyncio.TimerHandle | None = None
        self._answered_at = 0.0
        self._parsing = False
        """Whether the parser holds a request or the beginning of one."""

    def data_received(self, data: bytes) -> None:
        """Called by the event loop. Every review comes through here, so it looks up no more than it has to."""
        flow = self._flow_control
        if self._pieces:
            data = self._pieces + data
        elif self._parsing or self._closed or flow is None or flow.write_paused:  # it does not rest
            super().data_received(data)
            return
        found = self._cut(data) if self.worker.alive else None
        missing = -1 if found is None else found.last - len(data)
        if found is not None and missing == 0:
            if self._pieces:
                self._forget()
            self._answer(found.path, data[found.first :])
        elif missing > 0 and self._count < PIECES_AT_MOST:
            self._wait(data)
        else:  # unknown, more than one request, or too many pieces
            self._long_way(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._forget()
        super().connection_lost(exc)

    def _cut(self, data: bytes) -> lane.Cut | None:
        """By the head that was used here last; a peer seldom has more than one."""
        found = None if self._head is None else self._head.cut(data)
        if found is None:
            head = self._heads.find(data)
            if head is not None:
                self._head, found = head, head.cut(data)
        return found

    def _answer(self, path: str, body: bytes) -> None:
        worker = self.worker
        answer = self.app.answer(path, body)
        worker.nr += 1
        self._answered_at = now = worker.loop.time()
        if self._keepalive_handle is None:  # gunicorn sets it after the first request that it sees
            self._arm_keepalive_timer()
        self._safe_write(worker.starts.of(self, answer, now) + answer.body)

    def start_of(self, answer: Answer) -> bytes:
        """What comes before the body of this answer, as gunicorn writes it."""
        self._send_response_start(answer.status, asgi.headers(answer.content_type, answer.body), _PLAIN)
        start, self._response_buffer = self._response_buffer, None
        return start or b""

    def _long_way(self, data: bytes) -> None:
        self._forget()
        self._began = lane.head(data)
        super().data_received(data)

    def _wait(self, data: bytes) -> None:
        self._pieces = data
        self._count += 1
        if self._patience is None:
            self._patience = self.worker.loop.call_later(PIECES_SECONDS, self._long_way_at_last)

    def _long_way_at_last(self) -> None:
        """Too slow for us; the long way has its own patience and knows how to say so."""
        self._long_way(self._pieces)

    def _forget(self) -> None:
        self._pieces, self._count = b"", 0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _feed_callback_parser(self, data: bytes) -> bool:
        self._parsing = True
        fed: bool = super()._feed_callback_parser(data)
        return fed

    async def _handle_http_request(self, request: Any, sockname: object, peername: object) -> bool:
        began, self._began = self._began, None
        if began is not None and self._may_be_known(request):
            self._heads.learn(began, request.path)
        kept: bool = await super()._handle_http_request(request, sockname, peername)
        self._parsing = not kept  # what comes behind it in one piece is fed again
        return kept

    def _may_be_known(self, request: Any) -> bool:
        return (
            self.app.serves(request.path)
            and lane.plain(request.method, request.version, request.headers_bytes)
            and asgi.is_json(dict(request.headers_bytes).get(b"content-type", b""))
        )

    def _keepalive_timeout(self) -> None:
        """The timer of gunicorn does not see the short way: it begins again where that was used since."""
        rested = self.worker.loop.time() - self._answered_at
        if self._pieces or rested < KEEPALIVE_SECONDS:
            self._keepalive_handle = self.worker.loop.call_later(
                max(KEEPALIVE_SECONDS - rested, PIECES_SECONDS), self._keepalive_timeout
            )
        else:
            super()._keepalive_timeout()


class Worker(gasgi.ASGIWorker):  # type: ignore[misc]
    """Fails readiness the moment it is told to end; gunicorn itself looks only once a second.

    From then on every answer closes its connection, so the API server takes its next review elsewhere. Connections
    that are idle stay open until it closes them or the grace ends: closing one could cross a review on its way.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.heads = lane.Heads()
        self.starts = Starts()

    def init_process(self) -> None:
        """Called by gunicorn in the worker, which has no setting for the class of its connections."""
        gasgi.ASGIProtocol = Connection
        super().init_process()

    def _setup_event_loop(self) -> None:
        """Called by gunicorn, which would wait for ever for a peer that does not say what it wants."""
        self.loop = peers.Loop(peers.Patience(silent=KEEPALIVE_SECONDS))
        asyncio.set_event_loop(self.loop)
        sys.setswitchinterval(SWITCH_SECONDS)

    def handle_exit_signal(self) -> None:
        """SIGTERM."""
        self.asgi.drain()
        super().handle_exit_signal()


class Logger(GunicornLogger):  # type: ignore[misc]
    """Leaves format and destination to the handlers of the process."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn."""
        super().setup(cfg)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
        self.error_log.setLevel(logging.WARNING)
        self.error_log.propagate = True

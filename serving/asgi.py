"""The HTTP shell around handlers: an ASGI application that takes JSON by POST at a few paths, and nothing else.

It reads a request, asks the handler of its path and answers. A request is answered inline on the event loop: a
decision takes around a millisecond at most, and handing it to a thread would cost more. A handler that raises is
answered with 500 and counted; every caller of ours goes on without us then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

import msgspec

from cluster.runtime import Runtime
from telemetry.catalogue import Log
from telemetry.metrics import Metric

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
BODY_SECONDS: Final = 5.0
"""Our callers send a request in one piece and wait for less than that; whoever takes longer is somebody else."""
DISCARDED: Final = 4
"""How many times the limit of a body is read and thrown away before the connection is closed on it."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What goes back over HTTP."""

    status: int
    content_type: str
    body: bytes


Handler = Callable[[bytes], Answer]


class Refused(Exception):
    """A request that is answered without looking at its body."""

    def __init__(self, status: int, message: str, *headers: Header) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class Application:
    """One per worker. `handlers` by path; `start` and `stop` frame the life of the worker."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        body_limit: int,
        runtime: Runtime,
        start: Callable[[], None] = lambda: None,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._handlers = handlers
        self._body_limit = body_limit
        self._runtime = runtime
        self._start = start
        self._stop = stop
        self._draining = False

    def drain(self) -> None:
        """The end is near: not ready from now on. Requests are still answered."""
        self._draining = True
        self._runtime.log.emit(Log.STOPPING, signal="SIGTERM")

    def problem(self) -> str | None:
        """For readiness."""
        return "shutting down" if self._draining else None

    def serves(self, path: str) -> bool:
        """Whether there is a handler for it."""
        return path in self._handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one life."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close"})  # before it was accepted, which is a 403

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._body(scope, receive)
        except Refused as refused:
            said = b"" if scope["method"] == "HEAD" else str(refused).encode()
            await _send(send, refused.status, headers(TEXT, said, *refused.headers), said)
            return
        except Exception as error:  # noqa: BLE001 - outermost place: 500, and the caller goes on without us
            answer = self._broken(error)
        else:
            if body is None:
                return  # nobody is waiting any more
            answer = self.answer(scope["path"], body)
        await _send(send, answer.status, headers(answer.content_type, answer.body), answer.body)

    def answer(self, path: str, body: bytes) -> Answer:
        """The answer to a whole body that came to the right place. Total: it never raises."""
        try:
            return self._handlers[path](body)
        except Exception as error:  # noqa: BLE001 - outermost place: 500, and the caller goes on without us
            return self._broken(error)

    def _broken(self, error: Exception) -> Answer:
        self._runtime.meter.inc(Metric.INTERNAL_ERRORS)
        self._runtime.log.emit(Log.INTERNAL_ERROR, detail=type(error).__name__)
        return Answer(500, TEXT, b"internal error")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await asyncio.to_thread(self._start)
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(self._stop)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None if the peer went away."""
        if not self.serves(scope["path"]):
            raise Refused(404, "not found")
        if scope["method"] != "POST":
            raise Refused(405, "only POST", (b"allow", b"POST"))
        given = dict(scope["headers"])
        if not is_json(given.get(b"content-type", b"")):
            raise Refused(415, f"only {JSON}")
        length = given.get(b"content-length", b"")
        if length.isdigit() and int(length) > DISCARDED * self._body_limit:
            raise _too_large(self._body_limit)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await _whole(receive, self._body_limit)
        except TimeoutError:
            raise Refused(408, "the body did not come in time") from None


def is_json(content_type: bytes) -> bool:
    """Whether the header of this value announces JSON."""
    return content_type.partition(b";")[0].strip().lower() == JSON.encode()


def headers(content_type: str, body: bytes, *more: Header) -> list[Header]:
    """What every answer says about its body."""
    return [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode()), *more]


async def _whole(receive: Receive, limit: int) -> bytes | None:
    """What is too large is read but not kept: a peer that is still sending would not see an answer."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        return _joined([message.get("body", b"")], limit)
    parts: list[bytes] = []
    size = 0
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            parts.clear()
        if size > DISCARDED * limit or not message.get("more_body"):
            return _joined(parts, limit, size)
        message = await receive()
    return None


def _joined(parts: list[bytes], limit: int, size: int | None = None) -> bytes:
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    if (len(body) if size is None else size) > limit:
        raise _too_large(limit)
    return body


def _too_large(limit: int) -> Refused:
    return Refused(413, f"at most {limit} bytes")


async def _send(send: Send, status: int, headers: list[Header], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

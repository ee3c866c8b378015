"""The HTTP shell around `handle`: an ASGI application for POST /mutate and nothing else.

It reads a request, asks, counts and answers. A request is answered inline on the event loop: a decision takes well
under a millisecond, and handing it to a thread would cost more. Nothing in here can deny a pod: what goes wrong is
a status that is not 200, and then the failure policy of the webhook configuration applies, which is to let it pass.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, NamedTuple

from cluster.runtime import Runtime
from telemetry.catalogue import Log
from telemetry.metrics import Metric
from webhook import handle
from webhook.handle import Outcome
from webhook.memory import Memory
from webhook.reasons import Note, Result
from webhook.view import View

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

PATH: Final = "/mutate"
BODY_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""The API server takes requests of at most 3 MiB, and the review of a creation holds one object (no `oldObject`);
1 MiB more is for user info, options and defaults. Where that is not enough the pod is created as it was written.
"""
TOO_LARGE: Final = f"at most {BODY_LIMIT_BYTES} bytes"
DISCARD_LIMIT_BYTES: Final = 4 * BODY_LIMIT_BYTES
"""How much of a body that is too large is read and thrown away before the connection is closed on it."""
BODY_SECONDS: Final = 5.0
"""The API server sends a review in one piece and waits for 2 s; whoever takes longer than this is somebody else."""

_RESULTS: Final = {
    Result.PATCHED: "patched",
    Result.UNCHANGED: "unchanged",
    Result.LEFT_ALONE: "skipped",
    Result.PATCH_UNAPPLICABLE: "failed",
    Result.INTERNAL_ERROR: "failed",
    Result.BAD_REQUEST: "failed",
}


_OURS: Final = frozenset({Result.INTERNAL_ERROR, Result.PATCH_UNAPPLICABLE})
"""Faults of this program."""


class Refused(Exception):
    """A request that is answered without looking at its review."""

    def __init__(self, status: int, message: str, *headers: Header) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class Answer(NamedTuple):
    """What goes back over HTTP."""

    status: int
    content_type: str
    body: bytes


class Application:
    """One per worker. `view` is asked for each request; `start` and `stop` frame the life of the worker."""

    def __init__(
        self,
        view: Callable[[], View],
        *,
        runtime: Runtime,
        start: Callable[[], None] = lambda: None,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._view = view
        self._runtime = runtime
        self._start = start
        self._stop = stop
        self._draining = False
        self._memory = Memory()

    def drain(self) -> None:
        """The end is near: not ready from now on. Requests are still answered."""
        self._draining = True
        self._runtime.log.emit(Log.STOPPING, signal="SIGTERM")

    def problem(self) -> str | None:
        """For readiness."""
        return "shutting down" if self._draining else None

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
            body = await _body(scope, receive)
        except Refused as refused:
            said = b"" if scope["method"] == "HEAD" else str(refused).encode()
            await _send(send, refused.status, headers(handle.TEXT, said, *refused.headers), said)
            return
        except Exception as error:  # noqa: BLE001 - outermost place: 500, so that the failure policy applies
            answer = self._broken(error)
        else:
            if body is None:
                return  # nobody is waiting any more
            answer = self.answer(body)
        await _send(send, answer.status, headers(answer.content_type, answer.body), answer.body)

    def answer(self, body: bytes) -> Answer:
        """The answer to a whole body that came to the right place. Total: it never raises."""
        try:
            outcome = self._answered(body)
        except Exception as error:  # noqa: BLE001 - outermost place: 500, so that the failure policy applies
            return self._broken(error)
        return Answer(outcome.status, outcome.content_type, outcome.body)

    def _broken(self, error: Exception) -> Answer:
        self._runtime.meter.inc(Metric.INTERNAL_ERRORS)
        self._runtime.log.emit(Log.INTERNAL_ERROR, detail=type(error).__name__)
        return Answer(500, handle.TEXT, b"internal error")

    def _answered(self, body: bytes) -> Outcome:
        began = self._runtime.clock()
        outcome = handle.handle(body, self._view(), self._runtime.wall(), self._memory)
        meter = self._runtime.meter
        meter.observe(Metric.ADMISSION_SECONDS, self._runtime.clock() - began)
        meter.inc(Metric.ADMISSIONS, result=_RESULTS[outcome.result])
        if outcome.ignored:
            meter.inc(Metric.VALUES_IGNORED, outcome.ignored)
        if outcome.choice is not None and outcome.choice.fresh and not outcome.dry_run:
            meter.inc(Metric.MIX_CHOICES, capacity=outcome.choice.side.value)
        if Note.REPLACEMENT in outcome.notes:
            meter.inc(Metric.HINTS, result="given" if Note.HINTED in outcome.notes else "none")
        if outcome.result in _OURS:
            meter.inc(Metric.INTERNAL_ERRORS)
            detail = outcome.error or outcome.result.sentence
            self._runtime.log.emit(Log.INTERNAL_ERROR, detail=detail, namespace=outcome.namespace)
        return outcome

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


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body; None if the peer went away."""
    if scope["path"] != PATH:
        raise Refused(404, "not found")
    if scope["method"] != "POST":
        raise Refused(405, "only POST", (b"allow", b"POST"))
    given = dict(scope["headers"])
    if not is_json(given.get(b"content-type", b"")):
        raise Refused(415, "only application/json")
    length = given.get(b"content-length", b"")
    if length.isdigit() and int(length) > DISCARD_LIMIT_BYTES:
        raise Refused(413, TOO_LARGE)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _whole(receive)
    except TimeoutError:
        raise Refused(408, "the body did not come in time") from None


def is_json(content_type: bytes) -> bool:
    """Whether the header of this value announces JSON."""
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


async def _whole(receive: Receive) -> bytes | None:
    """What is too large is read but not kept: a peer that is still sending would not see an answer."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        return _joined([message.get("body", b"")])
    parts: list[bytes] = []
    size = 0
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_LIMIT_BYTES:
            parts.clear()
        if size > DISCARD_LIMIT_BYTES or not message.get("more_body"):
            return _joined(parts, size)
        message = await receive()
    return None


def _joined(parts: list[bytes], size: int | None = None) -> bytes:
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    if (len(body) if size is None else size) > BODY_LIMIT_BYTES:
        raise Refused(413, TOO_LARGE)
    return body


def headers(content_type: str, body: bytes, *more: Header) -> list[Header]:
    """What every answer says about its body."""
    return [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode()), *more]


async def _send(send: Send, status: int, headers: list[Header], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

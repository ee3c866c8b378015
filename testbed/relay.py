"""One exchange through the fault proxy: the request there, the answer back, less what the fault takes away."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

import h11

from testbed import faults
from testbed.bed import ControlPlane

READ_BYTES = 65536
SLOW_STEP_SECONDS = 0.05
FLUSH_SECONDS = 30.0
GATE_STEP_SECONDS = 0.01


class Cut(Exception):
    """Drop the client's connection now."""


@dataclass(slots=True)
class Side:
    """One end of the proxy: a connection with its HTTP state."""

    connection: h11.Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def event(self) -> object:
        while (event := self.connection.next_event()) is h11.NEED_DATA:
            if self.connection.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            self.connection.receive_data(await self.reader.read(READ_BYTES))
        return event

    async def body(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self.event(), h11.Data):
            yield bytes(event.data)

    async def send(self, *events: h11.Event) -> None:
        for event in events:
            self.writer.write(self.connection.send(event) or b"")
        await self.writer.drain()


@dataclass(slots=True)
class Upstream:
    """The connection to the apiserver that belongs to one client's connection; kept while it can be used."""

    bed: ControlPlane
    side: Side | None = None

    async def send(self, request: h11.Request, body: bytes) -> Side:
        headers = [(name, value) for name, value in request.headers if name != b"expect"]  # answered by us
        if all(name != b"host" for name, _ in headers):
            headers.append((b"host", b"127.0.0.1"))  # HTTP/1.0 does not need one
        if all(name != b"authorization" for name, _ in headers):
            headers.append((b"authorization", f"Bearer {self.bed.layout.token_of('admin')}".encode()))
        request = h11.Request(method=request.method, target=request.target, headers=headers)
        if not self._usable():
            await self._open()
        assert self.side is not None  # noqa: S101 - just opened
        await self.side.send(request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage())
        return self.side

    def _usable(self) -> bool:
        """Open, at rest, and not closed by the apiserver meanwhile."""
        return self.side is not None and self.side.connection.our_state is h11.IDLE and not self.side.reader.at_eof()

    def settle(self) -> None:
        """Use the connection again if both ends agree that the exchange is over."""
        if self.side and self.side.connection.our_state is self.side.connection.their_state is h11.DONE:
            self.side.connection.start_next_cycle()

    def close(self) -> None:
        if self.side is not None:
            self.side.writer.transport.abort()
            self.side = None

    async def _open(self) -> None:
        self.close()
        context = ssl.create_default_context(cafile=self.bed.layout.ca.pair.cert)
        port = self.bed.ports["kube-apiserver"]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        self.side = Side(h11.Connection(h11.CLIENT), reader, writer)


async def exchange(
    client: Side, upstream: Upstream, request: h11.Request, body: bytes, fault: faults.Fault | None
) -> None:
    """Forward one request and its answer, less what the fault takes away."""
    match fault:
        case faults.Answer():
            await client.send(*_error(fault))
            return
        case faults.Blackhole():
            await _hold()
        case faults.Delay(seconds):
            await asyncio.sleep(seconds)
        case faults.Gate(after=False):
            await _pass(fault)
    try:
        server = await upstream.send(request, body)
        while isinstance(response := await server.event(), h11.InformationalResponse):
            pass
    except OSError:
        raise Cut from None  # the apiserver is down: the client sees what it would see without us
    if not isinstance(response, h11.Response):
        raise Cut
    if isinstance(fault, faults.Gate) and fault.after:
        await _pass(fault)
    await _forward(client, server, response, fault)
    upstream.settle()


async def _forward(client: Side, server: Side, response: h11.Response, fault: faults.Fault | None) -> None:
    limit = fault.after_bytes if isinstance(fault, faults.Cut | faults.Hold) else -1
    end = _cut if isinstance(fault, faults.Cut) else _hold
    if limit is None:
        await end()
    await client.send(response)
    sent = 0
    async for part in server.body():
        kept = part if limit is None or limit < 0 else part[: max(limit - sent, 0)]
        await _send_part(client, kept, fault)
        sent += len(kept)
        if limit is not None and 0 <= limit <= sent:
            await end()
    await client.send(h11.EndOfMessage())


async def _send_part(client: Side, part: bytes, fault: faults.Fault | None) -> None:
    if not isinstance(fault, faults.Slow):
        await client.send(h11.Data(data=part))
        return
    step = max(int(fault.bytes_per_second * SLOW_STEP_SECONDS), 1)
    for start in range(0, len(part), step):
        await client.send(h11.Data(data=part[start : start + step]))
        await asyncio.sleep(SLOW_STEP_SECONDS)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close after what was written has left: a slow client gets every byte it was promised."""
    writer.close()
    with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
        async with asyncio.timeout(FLUSH_SECONDS):
            await writer.wait_closed()


async def _cut() -> None:
    raise Cut


async def _hold() -> None:
    """Wait for ever: `while_connected` ends it when the client gives up."""
    await asyncio.get_running_loop().create_future()


async def _pass(gate: faults.Gate) -> None:
    """Wait until somebody in another thread opens it."""
    gate.reached.set()
    while not gate.opened.is_set():
        await asyncio.sleep(GATE_STEP_SECONDS)


async def while_connected(client: Side, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, but drop it as soon as the client hangs up: a watch may be silent for minutes."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(_hung_up(client))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise Cut
        tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _hung_up(client: Side) -> None:
    while early := await client.reader.read(READ_BYTES):
        client.connection.receive_data(early)  # the next request already; it waits its turn


def _error(fault: faults.Answer) -> tuple[h11.Event, ...]:
    reason = fault.reason or faults.REASONS.get(fault.status, "InternalError")
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "code": fault.status,
        "message": f"the fault proxy answered {fault.status}",
    }
    body = json.dumps(status).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    if fault.retry_after is not None:
        headers.append(("Retry-After", str(fault.retry_after)))
    return (h11.Response(status_code=fault.status, headers=headers), h11.Data(data=body), h11.EndOfMessage())

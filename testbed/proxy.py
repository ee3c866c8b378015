"""A proxy between a client and the apiserver that misbehaves by rules a test sets while it runs.

It speaks HTTP/1.1 over TLS on both sides and passes every piece of an answer on as it comes, so watches stay
live. The token of the client goes through; a client without one is served as cluster administrator.
"""

import asyncio
import contextlib
import secrets
import ssl
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import h11

from testbed import faults, pki, relay
from testbed.bed import ControlPlane

T = TypeVar("T")


@dataclass(slots=True)
class FaultProxy:
    """Runs in a thread of its own between `start` and `stop`; use it as a context manager."""

    bed: ControlPlane
    rules: faults.Rules = field(default_factory=faults.Rules)
    requests: list[faults.Request] = field(default_factory=list)
    """Every request seen, in order."""
    port: int = 0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None
    _listener: asyncio.Server | None = None
    _clients: set[asyncio.Task[None]] = field(default_factory=set)
    _context: ssl.SSLContext | None = None

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._clients)

    def kubeconfig(self, path: Path, *, token: str | None = None) -> Path:
        """Write a kubeconfig that leads through the proxy, as the token's user or as administrator."""
        user = {"token": token} if token else {}
        return pki.kubeconfig(path, server=self.server, ca=self.bed.layout.ca.bundle(), user=user)

    def start(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._thread.start()
        self.accept()
        return self

    def stop(self) -> None:
        """Close everything and end the thread."""
        self.refuse()
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join()
        self._loop.close()

    def refuse(self) -> None:
        """From now on connections are refused, and open ones are cut."""
        self._run(self._close())

    def accept(self) -> None:
        """Listen (again), on the same port as before."""
        self._run(self._listen())

    def cut_all(self) -> None:
        """Break every open connection at once; new ones are welcome."""
        self._run(self._cut_clients())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(timeout=10)

    async def _listen(self) -> None:
        if self._listener is not None:
            return
        if self._context is None:
            self._context = self._certified()
        self._listener = await asyncio.start_server(self._accepted, "127.0.0.1", self.port, ssl=self._context)
        self.port = self._listener.sockets[0].getsockname()[1]

    def _certified(self) -> ssl.SSLContext:
        """One certificate for the life of the proxy: a server that comes back is the same server."""
        pair = self.bed.layout.ca.server(f"fault-proxy-{secrets.token_hex(4)}")  # several run at once
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.cert, pair.key)
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        await self._cut_clients()

    async def _cut_clients(self) -> None:
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a callback of start_server runs in a task
        self._clients.add(task)
        upstream = relay.Upstream(self.bed)
        try:
            with contextlib.suppress(relay.Cut, OSError, ssl.SSLError, h11.ProtocolError):  # this program's trade
                await self._serve(relay.Side(h11.Connection(h11.SERVER), reader, writer), upstream)
            await relay.hang_up(writer)
        except asyncio.CancelledError:
            pass  # `refuse` or `cut_all`: break it now
        finally:
            self._clients.discard(task)
            upstream.close()
            writer.transport.abort()

    async def _serve(self, client: relay.Side, upstream: relay.Upstream) -> None:
        while True:
            request = await client.event()
            if not isinstance(request, h11.Request):
                return
            body = b"".join([part async for part in client.body()])
            seen = faults.parse(request.method.decode(), request.target.decode(), body)
            self.requests.append(seen)
            await relay.while_connected(
                client, relay.exchange(client, upstream, request, body, self.rules.choose(seen))
            )
            if client.connection.our_state is not h11.DONE or client.connection.their_state is not h11.DONE:
                return
            client.connection.start_next_cycle()

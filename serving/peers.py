"""How long a peer may take to say what it wants, and how many may be there at once.

Everybody on the network can connect, and a connection costs a third of a megabyte before its first byte. gunicorn
waits without end for the first request of a connection and counts connections without limiting them; this stands
between it and the event loop. Decides about connections only, never about what they say.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import uvloop

END_OF_HEAD: Final = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits, in seconds and connections."""

    handshake: float = 10.0
    """For TLS; the API server itself gives up after as long."""
    head: float = 10.0
    """From the first byte of a connection to the end of its first head."""
    silent: float = 120.0
    """To the first byte. API servers open connections ahead and may use one up to 90 s later."""
    goodbye: float = 5.0
    """For the other half of the end of TLS; until then a connection that we closed costs as much as an open one."""
    connections: int = 600
    """Some 200 MB (measured: 0.34 MB each), which leaves as much of the memory limit of the manifests for handshakes.
    Three API servers with their usual limit of 200 creations at a time stay within it.
    """


class Peers:
    """The open connections of one worker, the one that has been silent for longest first."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self._open: OrderedDict[Peer, None] = OrderedDict()

    def guarded(self, factory: Callable[[], asyncio.BaseProtocol]) -> Callable[[], asyncio.Protocol]:
        """The same protocols, each behind a guard."""
        return lambda: Peer(cast("asyncio.Protocol", factory()), self)

    def came(self, peer: "Peer") -> None:
        """It is there. If it is one too many, the most silent one has to go."""
        self._open[peer] = None
        if len(self._open) > self.patience.connections:
            next(iter(self._open)).abort()

    def heard(self, peer: "Peer") -> None:
        """It has just said something."""
        if peer in self._open:  # and was not hung up on
            self._open.move_to_end(peer)

    def gone(self, peer: "Peer") -> None:
        """It is not there any more."""
        self._open.pop(peer, None)


class Peer(asyncio.Protocol):
    """One connection: passes everything on, and hangs up on a peer that does not come to the point."""

    def __init__(self, inner: asyncio.Protocol, peers: Peers) -> None:
        self._inner = inner
        self._peers = peers
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._head: bytes | None = b""
        """The end of what was said of the first head; None once that is complete."""

    def abort(self) -> None:
        """Hang up at once, whatever is still to be sent."""
        self._peers.gone(self)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop, after the handshake."""
        self._transport = cast("asyncio.Transport", transport)
        self._expect(self._peers.patience.silent)
        self._inner.connection_made(transport)
        self._peers.came(self)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._peers.heard(self)
        if self._head is not None:
            self._listen(data)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Called by the event loop."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._expect(None)
        self._peers.gone(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Called by the event loop."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Called by the event loop."""
        self._inner.resume_writing()

    def _listen(self, data: bytes) -> None:
        """To the first head; what comes after it has deadlines of its own."""
        known = self._head or b""
        if END_OF_HEAD in known + data:
            self._head = None
            self._expect(None)
            return
        if not known:
            self._expect(self._peers.patience.head)
        self._head = (known + data)[-len(END_OF_HEAD) + 1 :]

    def _expect(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        self._deadline = None if seconds is None else loop.call_later(seconds, self.abort)


class Loop(uvloop.Loop):
    """An event loop whose servers guard their connections."""

    def __init__(self, patience: Patience) -> None:
        super().__init__()
        self._patience = patience

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        """As the base class, which has more to say about its arguments."""
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = self._patience.handshake
            options["ssl_shutdown_timeout"] = self._patience.goodbye
        return await super().create_server(Peers(self._patience).guarded(protocol_factory), *args, **options)

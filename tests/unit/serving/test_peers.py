"""Connections that do not come to the point, and too many of them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import TypeVar

import pytest

from serving.peers import Loop, Patience, Peer, Peers
from testbed import pki

T = TypeVar("T")
SHORT = 0.01
HEAD = b"POST /mutate HTTP/1.1\r\nHost: webhook\r\n\r\n"


class Line(asyncio.Transport):
    """A transport that only knows whether it was cut."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = asyncio.Event()

    def abort(self) -> None:
        self.cut.set()


class Hears(asyncio.Protocol):
    """What stands behind the guard."""

    def __init__(self) -> None:
        self.heard = b""

    def data_received(self, data: bytes) -> None:
        self.heard += data


def connected(peers: Peers, *pieces: bytes) -> tuple[Peer, Line]:
    peer, line = Peer(Hears(), peers), Line()
    peer.connection_made(line)
    for piece in pieces:
        peer.data_received(piece)
    return peer, line


def run(patience: Patience, talk: Callable[[], Awaitable[T]]) -> T:
    async def in_time() -> T:
        async with asyncio.timeout(10):
            return await talk()

    with asyncio.Runner(loop_factory=lambda: Loop(patience)) as runner:
        return runner.run(in_time())


@pytest.mark.parametrize(
    ("pieces", "cut"),
    [
        pytest.param([], True, id="nothing"),
        pytest.param([HEAD[:1]], True, id="one byte"),
        pytest.param([HEAD[:-1]], True, id="all but the last byte"),
        pytest.param([HEAD], False, id="a head"),
        pytest.param([bytes([byte]) for byte in HEAD], False, id="a head byte by byte"),
        pytest.param([HEAD[:-3], HEAD[-3:]], False, id="a head whose end is split"),
        pytest.param([HEAD + b"{"], False, id="a head and the beginning of a body"),
    ],
)
def test_the_first_head_must_come_in_time(pieces: Sequence[bytes], cut: bool) -> None:
    async def talk() -> bool:
        peers = Peers(Patience(head=SHORT, silent=SHORT))
        _, line = connected(peers, *pieces)
        _, later = connected(peers)  # its time is over after that of the first
        await later.cut.wait()
        return line.cut.is_set()

    assert run(Patience(), talk) is cut


def test_saying_a_little_again_and_again_gains_no_time() -> None:
    async def talk() -> int:
        said = 0
        peer, line = connected(Peers(Patience(head=SHORT)))
        while not line.cut.is_set():
            peer.data_received(b"x")
            said += 1
            await asyncio.sleep(0)
        return said

    assert run(Patience(), talk) > 1


def test_one_too_many_costs_the_most_silent_one() -> None:
    async def talk() -> list[bool]:
        peers = Peers(Patience(connections=3))
        held = [connected(peers, HEAD) for _ in range(3)]
        held[0][0].data_received(HEAD)
        held.append(connected(peers))
        return [line.cut.is_set() for _, line in held]

    assert run(Patience(), talk) == [False, True, False, False]


def test_who_was_hung_up_on_does_not_count_however_much_it_still_says() -> None:
    async def talk() -> list[bool]:
        peers = Peers(Patience(connections=2))
        held = [connected(peers, HEAD) for _ in range(3)]
        held[0][0].data_received(HEAD)
        held[2][0].connection_lost(None)
        held.append(connected(peers))
        return [line.cut.is_set() for _, line in held]

    assert run(Patience(), talk) == [True, False, False, False]


def test_who_has_left_does_not_count() -> None:
    async def talk() -> list[bool]:
        peers = Peers(Patience(connections=2))
        held = [connected(peers, HEAD) for _ in range(2)]
        held[1][0].connection_lost(None)
        held.append(connected(peers))
        return [line.cut.is_set() for _, line in held]

    assert run(Patience(), talk) == [False, False, False]


def test_everything_is_passed_on() -> None:
    async def talk() -> bytes:
        inner = Hears()
        peer = Peer(inner, Peers(Patience()))
        peer.connection_made(Line())
        for piece in (HEAD[:5], HEAD[5:], HEAD):
            peer.data_received(piece)
        peer.connection_lost(None)
        return inner.heard

    assert run(Patience(), talk) == HEAD * 2


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["nothing", "half a handshake"])
def test_a_server_of_the_loop_waits_for_no_handshake(tmp_path: Path, said: bytes) -> None:
    pair = pki.authority(tmp_path, "ca").server("webhook")
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)

    async def talk() -> bytes:
        server = await asyncio.get_running_loop().create_server(Hears, "127.0.0.1", 0, ssl=context)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(said)
        read = await reader.read()
        writer.close()
        server.close()
        return read

    assert run(Patience(handshake=0.1), talk) == b""


def test_a_server_of_the_loop_guards_its_connections() -> None:
    async def talk() -> bytes:
        server = await asyncio.get_running_loop().create_server(Hears, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        read = await reader.read()
        writer.close()
        server.close()
        return read

    assert run(Patience(silent=SHORT), talk) == b""

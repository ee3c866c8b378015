"""Two hundred peers that stop in the middle of what they say, and an honest one that does not notice."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from testbed.waiting import eventually
from tests.integration.webhook.serving import Serving
from tests.unit.webhook import building

STALLED = 200
ROUNDS, HONEST = 3, 100
"""Reviews, one in ten on a connection of its own, handshake included; the others on one that is kept. Each round has
fresh peers, for the server does not wait for them without end.
"""
DELAY_SECONDS = 0.1
HEAD = b"POST /mutate HTTP/1.1\r\nHost: webhook\r\nContent-Length: 100\r\nContent-Type: application/json\r\n"


def _silent(webhook: Serving, stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", webhook.port), timeout=10))


def _half_handshake(webhook: Serving, stack: ExitStack) -> socket.socket:
    peer = _silent(webhook, stack)
    peer.sendall(b"\x16\x03\x01\x02\x00\x01")
    return peer


def _said(text: bytes) -> Callable[[Serving, ExitStack], socket.socket]:
    def peer(webhook: Serving, stack: ExitStack) -> socket.socket:
        connection = webhook.connection()
        stack.callback(connection.close)
        connection.connect()
        connection.sock.sendall(text)
        return connection.sock

    return peer


PATIENT = (_silent, _half_handshake, _said(HEAD[: len(HEAD) // 2]))
"""Those that the server has patience with for longer than this test."""
PEERS = (*PATIENT, _said(HEAD + b"\r\n"), _said(HEAD + b"\r\n{"))


def longest(webhook: Serving, body: bytes) -> float:
    """Of the reviews of a round."""
    waits = []
    with contextlib.closing(webhook.connection()) as kept:
        for number in range(HONEST):
            began = time.monotonic()
            if number % 10 == 0:
                assert webhook.post(body)[0] == 200
            else:
                kept.request("POST", "/mutate", body, {"Content-Type": "application/json"})
                assert kept.getresponse().read()
            waits.append(time.monotonic() - began)
    return max(waits)


@contextlib.contextmanager
def stalled(webhook: Serving) -> Iterator[None]:
    """They are there from the beginning to the end."""
    with ExitStack() as stack:
        peers = [(make, make(webhook, stack)) for make in (PEERS[number % len(PEERS)] for number in range(STALLED))]
        yield
        assert [peer for make, peer in peers if make in PATIENT and not _waits(peer)] == []


def _waits(peer: socket.socket) -> bool:
    """The server has neither answered nor hung up."""
    peer.setblocking(False)
    try:
        peer.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False
    return False


def test_stalled_peers_delay_nobody(namespace: str, webhook: Serving) -> None:
    """Beside the same measurement without them, and once more if need be: the machine has other things to do."""
    good = building.body({"metadata": {}, "spec": {"containers": []}}, namespace=namespace)
    longest(webhook, good)
    delays: list[float] = []
    while not delays or (delays[-1] >= DELAY_SECONDS and len(delays) < 2):
        undisturbed, disturbed = [], []
        for _ in range(ROUNDS):
            undisturbed.append(longest(webhook, good))
            with stalled(webhook):
                disturbed.append(longest(webhook, good))
        delays.append(max(disturbed) - max(undisturbed))
    assert delays[-1] < DELAY_SECONDS, delays


def test_peers_that_do_not_come_to_the_point_are_hung_up_on(webhook: Serving) -> None:
    with ExitStack() as stack:
        peers = [make(webhook, stack) for make in PEERS]
        eventually(lambda: [_waits(peer) for peer in peers], until=lambda waits: not any(waits), what="their end")
    assert '"level":"error"' not in webhook.log

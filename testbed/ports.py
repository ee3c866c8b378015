"""Free ports on loopback."""

import random
import socket
from collections.abc import Sequence

RANGE = range(20000, 32000)
"""Below the range Linux hands out for outgoing connections, which could take a port before its server does."""


def free(names: Sequence[str], *, rng: random.Random | None = None) -> dict[str, int]:
    """One port for each name. All are held open until the last is found, so they differ."""
    rng = rng or random.SystemRandom()
    held: dict[str, socket.socket] = {}
    try:
        for name in names:
            held[name] = _bind_any(rng)
        return {name: sock.getsockname()[1] for name, sock in held.items()}
    finally:
        for sock in held.values():
            sock.close()


def is_free(port: int) -> bool:
    with socket.socket() as sock:
        return _try_bind(sock, port)


def _bind_any(rng: random.Random) -> socket.socket:
    for port in rng.sample(RANGE, k=500):
        sock = socket.socket()
        if _try_bind(sock, port):
            return sock
        sock.close()
    raise OSError(f"no free port between {RANGE.start} and {RANGE.stop} on 127.0.0.1")


def _try_bind(sock: socket.socket, port: int) -> bool:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True

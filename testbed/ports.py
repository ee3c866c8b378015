"""Free ports on loopback, promised to one caller for long enough to bind them.

A control plane binds its last port many seconds after it chose it, and several start at once. Which ports were given
out lately is therefore written down in one file for all processes of a user.
"""

import contextlib
import fcntl
import json
import os
import random
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

RANGE = range(20000, 32000)
"""Below the range Linux hands out for outgoing connections, which could take a port before its server does."""
PROMISED_SECONDS = 180.0


def free(names: Sequence[str], *, rng: random.Random | None = None) -> dict[str, int]:
    """One port for each name, which nobody else is given for some minutes."""
    rng = rng or random.SystemRandom()
    with _promised() as promised:
        chosen: dict[str, int] = {}
        for name in names:
            chosen[name] = _choose(rng, promised)
            promised[chosen[name]] = time.time()
        return chosen


def is_free(port: int) -> bool:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _choose(rng: random.Random, promised: dict[int, float]) -> int:
    for port in rng.sample(RANGE, k=500):
        if port not in promised and is_free(port):
            return port
    raise OSError(f"no free port between {RANGE.start} and {RANGE.stop} on 127.0.0.1")


@contextlib.contextmanager
def _promised() -> Iterator[dict[int, float]]:
    """The ports given out lately, and when; one process at a time looks and adds."""
    path = Path(tempfile.gettempdir()) / f"spotshift-ports-{os.getuid()}.json"
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        promised = {port: at for port, at in _read(file.read()).items() if time.time() - at < PROMISED_SECONDS}
        yield promised
        file.seek(0)
        file.truncate()
        json.dump(promised, file)


def _read(text: str) -> dict[int, float]:
    """What was written; nothing if a full disk left half of it."""
    try:
        return {int(port): float(at) for port, at in json.loads(text or "{}").items()}
    except ValueError:
        return {}

"""One candidate in a process of its own, so that it can really be stopped and killed. It writes what it believed.

Lines of its log: `P t` it was asked at t and said that it leads, `N t` it said that it does not (only the first
after a P), `S n t` the work of term n began, `E n t` it ended, `X n t` the end of term n was told. t is
CLOCK_MONOTONIC, which is the same for all processes of a machine; the t of P and N is the very reading on which
the answer was based.
"""

import os
import random
import signal
import ssl
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import urllib3

from cluster.auth import Connection
from cluster.client import Client
from cluster.election import Timing
from cluster.lease import Elector
from cluster.runtime import Runtime
from cluster.term import Callbacks, ClusterLease, Term
from cluster.tokens import Anonymous
from telemetry.logs import Logger
from telemetry.meter import Meter

ASK_SECONDS = 0.004


class Setup(msgspec.Struct, frozen=True):
    """What a candidate is told on its command line, as JSON."""

    server: str
    ca: str
    namespace: str
    name: str
    identity: str
    log: str
    timing: Timing


class Diary:
    """Lines that survive a kill: each is one write of its own to the file."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._terms = 0

    def write(self, line: str) -> None:
        """One line."""
        os.write(self._file, f"{line}\n".encode())

    def lead(self, term: Term) -> None:
        """The work of a term: nothing but to be there until it ends."""
        self._terms = term.number
        self.write(f"S {term.number} {time.monotonic():.6f}")
        while term.active():
            term.wait(0.01)
        self.write(f"E {term.number} {time.monotonic():.6f}")

    def stopped(self, reason: str) -> None:
        """The end of a term was told."""
        self.write(f"X {self._terms} {time.monotonic():.6f} {reason}")


class Reading(threading.local):
    """The last reading of the clock in this thread."""

    value = 0.0

    def __call__(self) -> float:
        self.value = time.monotonic()
        return self.value


def main(setup: Setup) -> int:
    """Run until SIGTERM, then hand over."""
    diary, clock = Diary(setup.log), Reading()
    context = ssl.create_default_context(cafile=setup.ca)
    connection = Connection(setup.server, urllib3.PoolManager(ssl_context=context), Anonymous())
    client = Client(connection, timeout=setup.timing.request_timeout, rate_limit=None)
    numbers = Meter(strict=True)
    log = Logger(lambda line: diary.write(f"L {line}"), now=lambda: datetime.now(UTC), strict=True)
    runtime = Runtime(clock, lambda: datetime.now(UTC), random.Random(setup.identity), log, numbers)
    elector = Elector(
        ClusterLease(client, setup.namespace, setup.name),
        Callbacks(diary.lead, diary.stopped),
        identity=setup.identity,
        timing=setup.timing,
        runtime=runtime,
    )
    # A plain list: an Event may not be set by a handler that runs in the very thread that waits for it, because the
    # signal can come while that thread holds the Event's lock.
    asked_to_end: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked_to_end.append(number))
    pause = threading.Event()
    elector.start()
    diary.write(f"B {time.monotonic():.6f}")
    led = False
    while not asked_to_end:
        leads = elector.is_leader()
        if leads or led:
            diary.write(f"{'P' if leads else 'N'} {clock.value:.6f}")
        led = leads
        pause.wait(ASK_SECONDS)
    ended = elector.stop(timeout=5.0)
    leads = elector.is_leader()
    diary.write(f"{'P' if leads else 'N'} {clock.value:.6f}")
    return 0 if ended else 1


if __name__ == "__main__":
    raise SystemExit(main(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Setup)))

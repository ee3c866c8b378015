"""The measured process: the product's own reflectors, state and planner, with pipes in the place of watches.

`python -m bench.scale.listener KIND=FD...` says `synced`, is told when the story begins, and prints its figures
whenever it is asked. A change counts as seen when a plan has been made of a state that holds it.
"""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

from bench.measured import Figures, peak, resident
from bench.scale.story import PROBE, PROBE_LABEL, PROBES_PER_SECOND
from cluster import errors
from cluster.decode import Decoder, Page
from cluster.objects import Decoders
from cluster.runtime import Runtime
from cluster.source import Stream
from cluster.store import Object
from descheduler import gauges, kinds, plan, sync
from descheduler.state import ClusterState
from policy.settings import Settings
from telemetry.logs import Logger
from telemetry.meter import Meter

T = TypeVar("T", bound=Object)
IDLE_SECONDS = 1.0
"""Until the next look if nothing comes: the last event may be a heartbeat, which gives no reason for a plan."""


class Lines:
    """What is left in a pipe, then silence until somebody closes it."""

    def __init__(self, pipe: BinaryIO | None) -> None:
        self._pipe = pipe
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pipe or ()
        self._closed.wait()

    def close(self) -> None:
        """End the silence."""
        self._closed.set()


class Piped(Generic[T]):
    """A collection that comes through a pipe: pages, an empty line, events. Without a pipe it is empty."""

    def __init__(self, kind: kinds.Watched, decoder: Decoder[T], pipe: BinaryIO | None) -> None:
        self.name = kind.name
        self._decoder = decoder
        self._pipe = pipe

    def pages(self) -> Iterator[Page[T]]:
        """What is there at the beginning."""
        yield Page((), "", "1", first=True)
        for line in self._pipe or ():
            if line == b"\n":
                return
            yield dataclasses.replace(self._decoder.decode_list_page(line), first=False)

    @contextmanager
    def watch(self, version: str, *, initial: bool, timeout_seconds: int, read_timeout: float) -> Iterator[Stream]:
        """What happens then; versions and time-outs are a server's."""
        del version, initial, timeout_seconds, read_timeout
        yield Lines(self._pipe)

    def decode(self, line: bytes) -> tuple[str, T | errors.ApiError]:
        """As the product does it."""
        return self._decoder.decode_event(line)


class Seen:
    """Plans in every turn, and how late each change of the probe was by then."""

    def __init__(self) -> None:
        self._settings = Settings()
        self._last = 0
        self.began: float | None = None
        self.lags = array("d")
        self.plans = array("d")
        self.moves = 0
        self.changes = 0
        self.at = 0.0
        self.synced = threading.Event()

    def turn(self, state: ClusterState) -> float | None:
        """One pass, with what the product counts after each."""
        began = time.perf_counter()
        made = plan.make(state, self._settings, datetime.now(UTC))
        list(gauges.read(state, made, self._settings, datetime.now(UTC)))
        self.plans.append(time.perf_counter() - began)
        self.moves += len(made.moves)
        self.at, self.changes = time.time(), state.changes
        number = int(state.pods[PROBE].metadata.labels[PROBE_LABEL])
        if self.began is not None:
            due = (self.began + it / PROBES_PER_SECOND for it in range(self._last, number))
            self.lags.extend(self.at - it for it in due)
        self._last = number
        self.synced.set()
        return IDLE_SECONDS

    def figures(self) -> Figures:
        """Everything since the beginning."""
        return {
            "changes": self.changes,
            "at": self.at,
            "moves": self.moves,
            "turns": len(self.plans),
            "probes": len(self.lags),
            **{f"lag p{name} ms": quantile(self.lags, share) * 1000 for name, share in QUANTILES.items()},
            **{f"plan p{name} ms": quantile(self.plans, share) * 1000 for name, share in QUANTILES.items()},
            "MiB resident": resident(),
            "MiB peak": peak(),
            "processor seconds": time.process_time(),
        }


QUANTILES = {"50": 0.5, "99": 0.99, "100": 1.0}


def quantile(values: array[float], share: float) -> float:
    """The value that this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def main() -> None:
    """Listen until the input ends."""
    fds = dict(it.split("=") for it in sys.argv[1:])
    decoders = Decoders()
    sources: list[tuple[kinds.Watched, Any]] = []
    for kind in kinds.ALL:
        pipe = os.fdopen(int(fds[kind.name]), "rb") if kind.name in fds else None
        sources.append((kind, Piped(kind, decoders.of(kind.type), pipe)))
    log = Logger(lambda _: None, now=lambda: datetime.now(UTC), strict=False)
    runtime = Runtime(time.monotonic, lambda: datetime.now(UTC), random.Random(1), log, Meter(strict=False))
    seen = Seen()
    sync.Live(sources, Settings(), seen.turn, runtime=runtime).start()
    seen.synced.wait()
    print("synced", seen.changes, time.process_time(), flush=True)
    for line in sys.stdin:
        word, _, value = line.partition(" ")
        if word == "begin":
            seen.began = float(value)
        else:
            sys.stdout.write(msgspec.json.encode(seen.figures()).decode() + "\n")
            sys.stdout.flush()
    sys.stdout.flush()


if __name__ == "__main__":
    main()

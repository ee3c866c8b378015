"""What `bench.plan` measures of us, in a process of its own: `python -m bench.planning KUBECONFIG` prints JSON lines.

The process is what the loop of the descheduler is: watches, state, and a plan in every turn. It ends with its input.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec

from bench.measured import peak, resident
from cluster import auth
from cluster.client import Client
from cluster.runtime import Runtime
from descheduler import plan, sync
from descheduler.state import ClusterState
from policy.settings import Settings
from telemetry.logs import Logger
from telemetry.meter import Meter

STEADY = 10
"""Plans of the same state, one after the other."""


def tell(event: str, **figures: float) -> None:
    """One line for the parent."""
    sys.stdout.write(msgspec.json.encode({"event": event, **figures}).decode() + "\n")
    sys.stdout.flush()


class Loop:
    """Plans in every turn, and after the first one measures what costs no event."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._settings = Settings()
        self._first = True

    def turn(self, state: ClusterState) -> float | None:
        """One pass."""
        synced = time.time() - self._began
        seconds, moves = self._plan(state)
        at = time.time()
        if self._first:
            self._first = False
            self._measure(state, synced, seconds)
        tell("turn", at=at, seconds=seconds, moves=moves)
        return None

    def _measure(self, state: ClusterState, synced: float, first: float) -> None:
        steady = [self._plan(state)[0] for _ in range(STEADY)]
        anew = time.perf_counter()
        _copy(state, self._settings)
        anew = time.perf_counter() - anew
        gc.collect()
        tell(
            "synced",
            seconds=synced,
            cpu=time.process_time(),
            first=first,
            steady=median(steady),
            fastest=min(steady),
            anew=anew,
            pods=len(state.pods),
            nodes=len(state.nodes),
        )

    def _plan(self, state: ClusterState) -> tuple[float, int]:
        began = time.perf_counter()
        made = plan.make(state, self._settings, datetime.now(UTC))
        return time.perf_counter() - began, len(made.moves)


def _copy(state: ClusterState, settings: Settings) -> ClusterState:
    """A state of the same nodes and pods from nothing: what it costs if everything changes at once."""
    made = ClusterState(settings)
    for node in state.nodes.values():
        if node.node is not None:
            made.apply(None, node.node)
        for key, pod in node.pods.items():
            made.apply(None, pod, key)
    return made


def main() -> None:
    """Watch and plan until the parent closes the input; a line in it is answered with the memory in use."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    asked = parser.parse_args()
    log = Logger(lambda _: None, now=lambda: datetime.now(UTC), strict=False)
    runtime = Runtime(time.monotonic, lambda: datetime.now(UTC), random.Random(1), log, Meter(strict=False))
    client = Client(auth.connect(asked.kubeconfig), rate_limit=None, timeout=600.0)
    began = time.time()
    live = sync.Live(sync.sources(client), Settings(), Loop(began).turn, runtime=runtime)
    live.start()
    for _ in sys.stdin:
        tell("memory", resident=resident(), peak=peak())
    os._exit(0)  # the watches would keep the process for seconds


if __name__ == "__main__":
    main()

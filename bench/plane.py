"""A control plane for the time of a benchmark, in a folder of its own that goes with it, and who leads in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from testbed import bed, binaries, figures, progress
from testbed.bed import ControlPlane
from testbed.waiting import eventually

DESCHEDULER = "spotshift-descheduler"


@contextmanager
def started(*, nodes: int = 0, spot: int = 0) -> Iterator[ControlPlane]:
    """Up; gone afterwards. What lies beside its `home` goes with it."""
    found = binaries.ensure(os.environ, report=progress.BuildProgress(Console(stderr=True)))
    with tempfile.TemporaryDirectory(prefix="spotshift-bench-") as name:
        home = Path(name) / "bed"
        try:
            yield bed.up(home, found, nodes=nodes, spot=spot, owner=os.getpid())
        finally:
            bed.down(home)


def await_leader(running: ControlPlane) -> None:
    """Until a descheduler says of itself that it leads; before that nobody acts. The first ever to start waits for as
    long as a lease lasts, for it cannot know that nobody led before, and so does who comes after one that was killed.
    What the Lease says is not enough: it names a leader that was killed until the next one takes it.
    """
    eventually(
        lambda: figures.measured(running, "spotshift_leader", DESCHEDULER),
        until=lambda found: sum(found.values()) == 1,
        timeout=60,
        what="a leader",
    )

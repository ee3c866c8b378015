"""A control plane for the time of a benchmark, in a folder of its own that goes with it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from testbed import bed, binaries, progress
from testbed.bed import ControlPlane


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

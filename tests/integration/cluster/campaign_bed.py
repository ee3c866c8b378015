"""The control plane a long campaign runs on."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from testbed import bed, binaries, progress
from testbed.bed import ControlPlane


@contextlib.contextmanager
def control_plane(home: Path | None, own: Path) -> Iterator[ControlPlane]:
    """The one that runs in `home`, or one for the time of the campaign."""
    if home is not None:
        yield bed.attach(home)
        return
    built = binaries.ensure(os.environ, report=progress.BuildProgress(Console(stderr=True)))
    try:
        yield bed.up(own, built, owner=os.getpid())
    finally:
        bed.down(own)

"""What every long campaign has: its options, and the control plane it runs on."""

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from testbed import bed, binaries, progress
from testbed.bed import ControlPlane

Item = TypeVar("Item")
Result = TypeVar("Result")


def options(description: str | None, *, schedules: int, parallel: int) -> argparse.ArgumentParser:
    """The options that all campaigns share; a campaign may add its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--schedules", type=int, default=schedules)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule; the others count on from it")
    parser.add_argument("--parallel", type=int, default=parallel)
    parser.add_argument("--home", type=Path, help="use the control plane that runs in this folder")
    return parser


def seeds(chosen: argparse.Namespace) -> range:
    """One for each schedule."""
    return range(chosen.seed, chosen.seed + chosen.schedules)


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


def side_by_side(
    home: Path | None,
    folder: Path,
    items: Sequence[Item],
    part: Callable[[ControlPlane, Sequence[Item], Path], Result],
    *,
    parallel: int,
) -> list[Result]:
    """Deal the items out to as many control planes, or to the one in `home`; what each part gave.

    They wait far more than they compute.
    """
    parallel = 1 if home else parallel

    def play(number: int) -> Result:
        own = folder / str(number)
        with control_plane(home, own / "bed") as running:
            return part(running, items[number::parallel], own / "product")

    with ThreadPoolExecutor(parallel) as pool:
        return list(pool.map(play, range(parallel)))

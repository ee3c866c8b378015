"""A run: rounds of acts, each ended by a quiet point, until the time is over or something is wrong."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from testbed.bed import ControlPlane
from tests.chaos.model import Act
from tests.chaos.product import Product
from tests.chaos.schedule import Author
from tests.chaos.stage import Stage
from tests.chaos.timeline import Timeline
from tests.integration.cluster import campaign_bed

ROUND_SECONDS: Final = 120.0


@contextlib.contextmanager
def stage(home: Path, timeline: Timeline) -> Iterator[Stage]:
    """The whole product on a control plane of its own, watched."""
    with campaign_bed.control_plane(None, home) as bed, opened(bed, timeline) as made:
        yield made


@contextlib.contextmanager
def opened(bed: ControlPlane, timeline: Timeline) -> Iterator[Stage]:
    """The product put into this control plane, and watched."""
    kube = bed.api()
    with Product(bed, kube) as product:
        made = Stage(product, kube, timeline)
        try:
            yield made
        finally:
            made.watcher.stop()


def rounds(on: Stage, author: Author, *, seconds: float, of: float = ROUND_SECONDS) -> None:
    """One after the other for at least so many seconds, each to its quiet point."""
    began = time.monotonic()
    perform(on, author.opening())
    on.settle()
    while not on.violations and time.monotonic() < began + seconds:
        on.timeline.tell(f"round {on.quiet_points}")
        perform(on, author.round(of))
        on.settle()


def perform(on: Stage, acts: Sequence[Act]) -> None:
    """Each at its time, or as soon as the one before it is done."""
    began = time.monotonic()
    for act in acts:
        on.wait(began + act.at)
        if on.violations:
            return
        on.do(act)


def summary(on: Stage, seed: int) -> str:
    """The figures; and if something was wrong, what led to it."""
    ends = Counter(it.phase for it in on.moves.latest())
    strategies = Counter(it.strategy or "by hand" for it in on.moves.latest())
    modes = Counter(it.mode or "none" for it in on.moves.latest())
    lines = [
        f"acts {on.acts.total()}: {_counted(on.acts)}",
        f"moves {ends.total()}: {_counted(ends)}; {_counted(strategies)}; {_counted(modes)}",
        f"evictions {len(on.evictions.known)}",
        f"pods shown to the webhook {on.admission.asked}, created while nobody was there {on.admission.missed}",
        f"terms of leaders {on.leaders.terms}, half sent when a process went on {on.leaders.stragglers}",
        f"writes of leaders {on.leaders.writes.total()}: {_counted(on.leaders.writes)}",
        f"parts of the control plane that had ended and were started again {_counted(on.product.revived) or 'none'}",
        f"quiet points {on.quiet_points}, the longest after {on.longest_settling:.0f} s",
        f"seed {seed}, {time.time() - on.timeline.began:.0f} s, violations {len(on.violations)}",
    ]
    if on.violations:
        at, first = min(on.violations)
        lines = ["--- timeline", on.timeline.around(at), "---", *lines, f"VIOLATION (seed {seed}): {first}"]
    return "\n".join(lines)


def _counted(found: Mapping[Any, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items(), key=lambda it: str(it[0])))

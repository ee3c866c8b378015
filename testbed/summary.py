"""What the moves of the demo came to, from their own records."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.table import Table

from testbed.api import Api, Object

ENDED = ("Completed", "Failed", "Cancelled")


@dataclass(frozen=True, slots=True)
class Move:
    """One PodMigration."""

    strategy: str
    mode: str
    phase: str
    on_target: bool
    seconds: float | None

    @property
    def ended(self) -> bool:
        return self.phase in ENDED


def moves(client: Api) -> list[Move]:
    """Every move there was or is, in the order in which they were asked for."""
    found = sorted(client.list("podmigrations"), key=lambda it: str(it["metadata"]["creationTimestamp"]))
    return [of(it) for it in found]


def of(record: Object) -> Move:
    spec, status = record["spec"], record.get("status", {})
    return Move(
        strategy=spec.get("strategy", "by hand"),
        mode=status.get("resolved", {}).get("mode", spec.get("mode", "")),
        phase=status.get("phase", ""),
        on_target=bool(status.get("onTarget")),
        seconds=_between(status.get("startedAt"), status.get("finishedAt")),
    )


def table(found: Sequence[Move]) -> Table:
    """A row for each strategy that moved something, and one for all."""
    made = Table(title="what was moved", title_justify="left")
    for heading in ("strategy", "moves", "on target", "elsewhere", "called off", "failed", "median"):
        first = heading == "strategy"
        made.add_column(heading, justify="left" if first else "right", no_wrap=first)
    names = list(dict.fromkeys(it.strategy for it in found))
    for name in names:
        made.add_row(name, *_figures([it for it in found if it.strategy == name]))
    made.add_section()
    made.add_row("all", *_figures(found))
    return made


def doubled(found: Sequence[Move]) -> int:
    """Pods whose successor was Ready before they went."""
    return sum(it.mode == "Surge" and it.phase == "Completed" for it in found)


def _figures(found: Sequence[Move]) -> Iterator[str]:
    completed = [it for it in found if it.phase == "Completed"]
    yield str(len(found))
    yield str(sum(it.on_target for it in completed))
    yield str(sum(not it.on_target for it in completed))
    yield str(sum(it.phase == "Cancelled" for it in found))
    yield str(sum(it.phase == "Failed" for it in found))
    times = [it.seconds for it in completed if it.seconds is not None]
    yield f"{statistics.median(times):.0f} s" if times else "-"


def _between(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()

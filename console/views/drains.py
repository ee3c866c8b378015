"""How far the drain of a node is, read from what stands on the node: that is where its state is kept.   Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from cluster.objects import Node
from console import ages
from descheduler.tables import Table
from policy import drain_status, signals
from policy.keys import Keys

Plain = dict[str, Any]
MORE: Final = re.compile(r"and (\d{1,6}) more")
"""The last line of what is left, where there is no room for all of it."""


class Asked(StrEnum):
    """A node that asks to be emptied, or did, and on which no stage is written."""

    REQUESTED = "requested"
    """Nobody has taken it up yet."""
    RESTORING = "restoring"
    """The label is gone, our marks are not yet."""


@dataclass(frozen=True, slots=True)
class Drain:
    """The drain of one node as it stands on it."""

    node: str
    asked: bool
    """Whether our label is there; other signs of maintenance drain a node too."""
    stage: str
    done: int
    total: int
    """0 where no number is written: drained, or not begun."""
    since: datetime | None
    deadline: datetime | None
    remaining: tuple[tuple[str, str], ...]
    """Pods that are left, each with why."""
    cordoned: bool
    ours: bool
    """The cordon is ours."""

    @property
    def left(self) -> int:
        """How many pods that are; where they are many, the last line only counts the rest of them."""
        more = MORE.fullmatch(self.remaining[-1][0]) if self.remaining else None
        return len(self.remaining) - 1 + int(more[1]) if more else len(self.remaining)

    @property
    def text(self) -> str:
        """`draining 7/12`."""
        return f"{self.stage} {self.done}/{self.total}" if self.total else self.stage


def read(node: Node, keys: Keys) -> Drain | None:
    """None for a node that neither asks to be emptied nor carries a mark of a drain. A cordon of ours is one too, but
    where an interruption is written down it is that of the interruption, and stays as long.
    """
    notes = node.metadata.annotations
    asked = node.metadata.labels.get(keys.maintenance) == "true"
    status = drain_status.read(notes.get(keys.maintenance_status, ""))
    marked = any(key in notes for key in (keys.maintenance_status, keys.maintenance_since))
    marked = marked or (keys.cordoned_by in notes and not interrupted(node, keys))
    if not asked and not marked:
        return None
    unwritten = Asked.REQUESTED if asked else Asked.RESTORING
    return Drain(
        node.metadata.name,
        asked,
        status.stage if status is not None else unwritten,
        status.done if status is not None else 0,
        status.total if status is not None else 0,
        signals.instant(notes.get(keys.maintenance_since, "")),
        signals.instant(notes.get(keys.maintenance_deadline, "")),
        tuple(_remaining(notes.get(keys.maintenance_remaining, ""))),
        node.spec.unschedulable,
        keys.cordoned_by in notes,
    )


def interrupted(node: Node, keys: Keys) -> str:
    """What says that the node will be lost, if somebody has written that on it."""
    return node.metadata.annotations.get(keys.interruption_cause, "")


def _remaining(text: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, text.splitlines()):
        pod, _, why = line.partition(": ")
        yield pod, why


def of(found: Iterable[Drain]) -> Plain:
    """For programs."""
    return {"maintenance": [_plain(it) for it in found]}


def _plain(drain: Drain) -> Plain:
    return {
        "node": drain.node,
        "requested": drain.asked,
        "stage": str(drain.stage),
        "done": drain.done,
        "total": drain.total,
        "since": ages.stamp(drain.since),
        "deadline": ages.stamp(drain.deadline),
        "cordoned": drain.cordoned,
        "cordonedByUs": drain.ours,
        "remaining": [{"pod": pod, "why": why} for pod, why in drain.remaining],
    }


def pages(found: Iterable[Drain], now: datetime, *, wide: bool) -> Iterator[Table]:
    """A row for each node; which pods are left, where there is one node, or where that is wanted."""
    drains = tuple(found)
    if not drains:
        yield Table("No node is in maintenance")
        return
    rows = tuple(
        (it.node, str(it.stage), _progress(it), _pods(it), ages.between(it.since, now), _left(it, now))
        for it in drains
    )
    yield Table("", ("NODE", "STAGE", "PROGRESS", "LEFT", "SINCE", "DEADLINE"), rows)
    for drain in drains:
        if drain.remaining and (wide or len(drains) == 1):
            yield Table(f"Left on {drain.node}", ("POD", "WHY"), drain.remaining)


def _progress(drain: Drain) -> str:
    return f"{drain.done}/{drain.total}" if drain.total else "-"


def _pods(drain: Drain) -> str:
    """Nobody has counted them on a node that nobody has taken up."""
    return "-" if drain.stage == Asked.REQUESTED else str(drain.left)


def _left(drain: Drain, now: datetime) -> str:
    if drain.deadline is None:
        return "-"
    return f"in {ages.length(drain.deadline - now)}" if drain.deadline > now else "passed"

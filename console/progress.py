"""Shows how far something is while it is waited for: bars on a terminal, a line for each change elsewhere.

A program that reads JSON or YAML gets neither; it gets the object when it is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from console import screen
from console.session import Session

STEPS: Final = ("Guard", "Mark", "Evict", "AwaitReplacement", "Settle")
"""Of a plain move; other modes have some of their own between the second and the last but one."""
MIDDLE: Final = {"SurgeUp": 3, "AwaitAvailable": 3, "SurgeDown": 4, "CreateCopy": 3, "AwaitReady": 3}


class Tracker(Protocol):
    """Where progress goes."""

    def tell(self, name: str, text: str, done: int, total: int) -> None:
        """How far `name` is by now; a total of 0 says that nobody knows."""


@dataclass(slots=True)
class Lines:
    """A line whenever something changes."""

    session: Session
    last: dict[str, str] = field(default_factory=dict)

    def tell(self, name: str, text: str, done: int, total: int) -> None:
        """Write it, if it is new."""
        del done, total
        if self.last.get(name) != text:
            self.last[name] = text
            self.session.say(f"{name}: {text}")


@dataclass(slots=True)
class Bars:
    """A bar for each name."""

    progress: Progress
    tasks: dict[str, TaskID]

    def tell(self, name: str, text: str, done: int, total: int) -> None:
        """Draw it."""
        self.progress.update(self.tasks[name], text=screen.clean(text), completed=done, total=total or None)


@contextmanager
def shown(session: Session, names: Sequence[str]) -> Iterator[Tracker]:
    """For the time of the block; the last state of each bar stays on the screen."""
    if not session.live:
        yield Lines(session)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen.terminal(session.out)) as progress:
        tasks = {name: progress.add_task(screen.clean(name), total=None, text="") for name in names}
        yield Bars(progress, tasks)


def steps(step: str) -> tuple[int, int]:
    """How far a move is, of its steps."""
    if step in MIDDLE:
        return MIDDLE[step], len(STEPS) + 1
    return (STEPS.index(step), len(STEPS)) if step in STEPS else (0, 0)

"""How far the drain of a node is, as it stands on the node: `draining 7/12`.   Pure.

Written by who drains; read by it again after a restart, and by whoever shows it to people.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST: Final = 999_999
"""Pods that are believed; a node runs some hundreds, and anybody may write to an annotation."""


class Stage(StrEnum):
    """The first word."""

    WAITING = "waiting"
    """Cordoned; other nodes are emptied first."""
    DRAINING = "draining"
    DRAINED = "drained"
    """Only pods that belong to the node, or whose owners said that they stay, are left."""


@dataclass(frozen=True, slots=True)
class DrainStatus:
    """What it says."""

    stage: Stage
    done: int = 0
    total: int = 0
    """Pods that had to leave when it began; 0 where no number is written."""

    def __str__(self) -> str:
        """The value of the annotation; a drained node has nothing left to count."""
        return self.stage.value if self.stage is Stage.DRAINED else f"{self.stage.value} {self.done}/{self.total}"


def read(text: str) -> DrainStatus | None:
    """None for what we would not have written: nothing, or the words of somebody else."""
    word, _, numbers = text.partition(" ")
    if word not in set(Stage):
        return None
    done, slash, total = numbers.partition("/")
    counted = slash and _is_count(done) and _is_count(total)
    return DrainStatus(Stage(word), int(done), int(total)) if counted else DrainStatus(Stage(word))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(MOST))

"""How a move ends, and times as its status holds them.   Values only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Ending:
    """The move is over, and what its mode had changed is as it should be."""

    phase: str
    why: str


def text_of(at: datetime) -> str:
    """A time as the status holds it."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""How a move ends, and times as its status holds them.   Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from descheduler.migration.actions import Write

MESSAGE: Final = 1024
"""Characters of a message; the rest would only be cut off by whoever shows it."""
ANSWERED: Final = frozenset({"retryAt", "blocked", "several", "denied", "eviction", "tries"})
"""What an intent notes of a request that was refused."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The move is over, and what its mode had changed is as it should be."""

    phase: str
    why: str


def text_of(at: datetime) -> str:
    """A time as the status holds it."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_of(text: object) -> datetime | None:
    """What the status holds, if it is a time."""
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def unanswered(intent: Mapping[str, Any] | None) -> dict[str, Any]:
    """An intent as it was announced: with another step, what was refused in the last one is over."""
    return {key: value for key, value in (intent or {}).items() if key not in ANSWERED}


def end(phase: str, message: str, now: datetime, **more: Any) -> Write:
    """Write down how it ended; what it left in the cluster is cleared away after that."""
    event = {"Completed": "MoveCompleted", "Failed": "MoveFailed", "Cancelled": "MoveCancelled"}[phase]
    return Write(
        {"phase": phase, "message": message[:MESSAGE], "finishedAt": text_of(now), **more}, event=f"{event} {message}"
    )

"""What a check found.   Values only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from descheduler.tables import Table

Plain = dict[str, Any]

APPLY: Final = "kubectl apply -k manifests/overlays/production, or what else it was installed from"
"""Never the base by itself: it would put its own settings in the place of those in force."""


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but somebody should know."""
    UNKNOWN = "unknown"
    """It could not be looked at, mostly for want of rights."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer."""

    check: str
    level: Level
    text: str
    advice: str = ""
    """What to do about it."""


def of(found: Sequence[Finding]) -> Plain:
    """For programs."""
    checks = [
        {"check": it.check, "result": str(it.level), "text": it.text, "advice": it.advice or None} for it in found
    ]
    return {"healthy": all(it.level is not Level.FAILED for it in found), "checks": checks}


def pages(found: Sequence[Finding]) -> Iterator[Table]:
    """For people: every answer, then what to do."""
    yield Table("", ("CHECK", "RESULT", "WHAT"), tuple((it.check, str(it.level), it.text) for it in found))
    advice = tuple(dict.fromkeys((it.check, it.advice) for it in found if it.advice and it.level is not Level.OK))
    if advice:
        yield Table("What to do", ("CHECK", "ADVICE"), advice)
    counts = {level: sum(it.level is level for it in found) for level in Level}
    yield Table(", ".join(f"{count} {level}" for level, count in counts.items() if count))

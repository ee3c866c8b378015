"""What tests of things that run on their own lend to them: a clock they move, and logs and numbers they can read."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cluster.runtime import Runtime
from telemetry.logs import Logger
from telemetry.meter import Meter

EPOCH = datetime(2026, 11, 16, 3, 0, 0, tzinfo=UTC)
PATIENCE_SECONDS = 20.0


@dataclass(slots=True)
class Clock:
    """Moves only when told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return EPOCH + timedelta(seconds=self.now)


@dataclass(slots=True)
class World:
    """A runtime, and what was said and counted through it."""

    clock: Callable[[], float] = time.monotonic
    lines: list[dict[str, Any]] = field(default_factory=list)
    meter: Meter = field(default_factory=lambda: Meter(strict=True))
    level: int = 0
    """Everything is told."""

    @property
    def runtime(self) -> Runtime:
        log = Logger(lambda line: self.lines.append(dict(line)), now=_now, strict=True, level=self.level)
        return Runtime(self.clock, _now, random.Random(7), log, self.meter)

    def events(self) -> list[str]:
        return [str(line["event"]) for line in list(self.lines)]


def _now() -> datetime:
    return datetime.now(UTC)


def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait for something another thread does."""
    end = time.monotonic() + PATIENCE_SECONDS
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < end, f"{what} did not come"
        pause.wait(0.002)

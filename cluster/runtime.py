"""What the composition root lends to everything that runs on its own: time, chance, logs and numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random

from telemetry.logs import Logger
from telemetry.meter import Meter


@dataclass(frozen=True, slots=True)
class Runtime:
    """One per process; `log` may be bound to a component."""

    clock: Callable[[], float]
    """Monotonic seconds. Should go on while the machine is suspended (CLOCK_BOOTTIME), because leases do."""
    wall: Callable[[], datetime]
    """Time of day with a zone, for what people read. Never used to measure anything."""
    rng: Random
    """For jitter only."""
    log: Logger
    meter: Meter

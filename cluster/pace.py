"""How long to wait before trying again: exponential, bounded, jittered. Pure but for the given source of chance."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Pace:
    """The curve. `delay(0)` is the wait after the first failure."""

    base: float
    """Seconds after the first failure."""
    top: float
    """Seconds that no wait exceeds before jitter."""
    jitter: float = 0.2
    """Waits are spread evenly over plus and minus this share, so that many processes do not come back together."""

    def __post_init__(self) -> None:
        if not 0 < self.base <= self.top or not 0 <= self.jitter < 1:
            raise ValueError(f"a pace needs 0 < base <= top and 0 <= jitter < 1, got {self}")

    def delay(self, failures: int, rng: Random) -> float:
        """Wait after `failures` earlier failures in a row."""
        plain = min(self.top, self.base * 2.0 ** min(failures, 60))
        return plain * rng.uniform(1 - self.jitter, 1 + self.jitter)

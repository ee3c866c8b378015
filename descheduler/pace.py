"""When the next turn is due: at once after a rest, not too often under churn, again after a while without any change.

Pure but for what it remembers of the last turn.
"""

from __future__ import annotations

import math
from typing import Final

COALESCE_SECONDS: Final = 0.05
"""Between two turns at least. The first change after a rest is looked at at once; a roll-out brings hundreds."""
REST_FACTOR: Final = 1.0
"""Rest after a turn, in turns, unless something urgent happens: constant churn then costs half of one core. With
three, the last of a hundred changes in the largest of clusters was planned for after half a second.
"""


class Pace:
    """One per loop; times are monotonic seconds."""

    def __init__(self) -> None:
        self._wanted = False
        self._urgent = False
        self._ended = -math.inf
        self._took = 0.0
        self._again = math.inf

    def want(self, *, urgent: bool) -> None:
        """Something has changed."""
        self._wanted = True
        self._urgent = self._urgent or urgent

    def due(self, now: float) -> bool:
        """Whether a turn should be taken now."""
        return now >= self._at()

    def wait(self, now: float) -> float | None:
        """Seconds until a turn is due; None if nothing asks for one."""
        at = self._at()
        return None if at == math.inf else max(0.0, at - now)

    def took(self, began: float, ended: float, again: float | None) -> None:
        """A turn was taken, and wants to be taken again after so long without any change."""
        self._wanted = self._urgent = False
        self._ended = ended
        self._took = ended - began
        self._again = math.inf if again is None else ended + max(again, COALESCE_SECONDS)

    def _at(self) -> float:
        if not self._wanted:
            return self._again
        rest = COALESCE_SECONDS if self._urgent else max(COALESCE_SECONDS, REST_FACTOR * self._took)
        return min(self._again, self._ended + rest)

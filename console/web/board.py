"""Where the latest picture hangs: one thread puts it there, any number of streams wait for the next one.

A stream that is slow misses pictures and gets the latest; nothing is kept for it.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Final

from console.web.picture import Picture, Sample

KEPT: Final = 1800
"""Points of the plots: an hour at one in two seconds."""


@dataclass(frozen=True, slots=True)
class Hung:
    """A picture and its number."""

    number: int
    picture: Picture


class Board:
    """Safe from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._latest: Hung | None = None
        self._closed = False
        self._samples: deque[Sample] = deque(maxlen=KEPT)

    def hang(self, picture: Picture) -> None:
        """The next picture."""
        with self._changed:
            number = 1 if self._latest is None else self._latest.number + 1
            self._latest = Hung(number, picture)
            self._samples.append(picture.sample)
            self._changed.notify_all()

    def close(self) -> None:
        """No more pictures: whoever waits is let go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether the end has come."""
        return self._closed

    @property
    def latest(self) -> Hung | None:
        """The latest one; None before the first."""
        return self._latest

    def samples(self) -> tuple[Sample, ...]:
        """The points of the plots, the oldest first."""
        with self._changed:
            return tuple(self._samples)

    def after(self, number: int, seconds: float) -> Hung | None:
        """A picture later than this one; None if there is none within the time, or the end has come."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_later(number), seconds)
            return self._latest if self._is_later(number) and not self._closed else None

    def _is_later(self, number: int) -> bool:
        return self._latest is not None and self._latest.number > number

"""What happened when, for whoever reads a failure."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

BEFORE_SECONDS: Final = 60.0
"""As much as is shown before a violation."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened."""

    at: float
    text: str

    def __str__(self) -> str:
        minutes, seconds = divmod(self.at, 60)
        return f"{int(minutes):3}:{seconds:06.3f}  {self.text}"


@dataclass(slots=True)
class Timeline:
    """Times count from its beginning."""

    echo: Callable[[str], object] = lambda _line: None
    began: float = field(default_factory=time.time)
    lines: list[Line] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, text: str, *, at: float | None = None) -> None:
        """Something happened, just now or at that time."""
        line = Line((time.time() if at is None else at) - self.began, text)
        with self._lock:
            self.lines.append(line)
        self.echo(str(line))

    def around(self, at: float) -> str:
        """The minute before a moment, and what came after it."""
        since = at - self.began - BEFORE_SECONDS
        return "\n".join(map(str, sorted((it for it in self.lines if it.at >= since), key=lambda it: it.at)))

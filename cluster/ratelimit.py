"""A token bucket: how fast one client may send requests.

Waiting is the only thing it does. It is for work that can wait (migrations, events); watches and admission never
pass through it, and whoever must not queue behind that work (the lease) takes a client with a bucket of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How many requests, how evenly."""

    per_second: float = 50.0
    """Sustained requests per second. One eviction takes about 100 ms on a loaded API server, so this feeds five
    workers that do nothing else; the server's own priority levels stay the real protection."""
    burst: int = 100
    """Requests that may go out at once after a quiet time."""

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ValueError(f"a rate limit needs per_second > 0 and burst >= 1, got {self}")


DEFAULT = RateLimit()


class Bucket:
    """Tokens of one client, shared by its threads.

    A caller takes its token at once, possibly into debt, and sleeps outside the lock until the debt is paid; so
    callers are served in the order in which they came.
    """

    def __init__(self, limit: RateLimit, *, now: Callable[[], float], sleep: Callable[[float], object]) -> None:
        self._limit = limit
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()
        self._tokens = float(limit.burst)
        self._filled_at = now()

    def take(self) -> float:
        """Wait for one token; the seconds waited."""
        wait = self._book()
        if wait > 0:
            self._sleep(wait)
        return wait

    def _book(self) -> float:
        with self._lock:
            now = self._now()
            earned = max(0.0, now - self._filled_at) * self._limit.per_second
            self._tokens = min(float(self._limit.burst), self._tokens + earned) - 1.0
            self._filled_at = now
            return max(0.0, -self._tokens / self._limit.per_second)

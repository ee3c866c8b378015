"""How many pages may be open at once: each holds a thread of the server for as long as it is."""

from __future__ import annotations

import threading


class Streams:
    """Safe from any thread."""

    def __init__(self, limit: int) -> None:
        self._free = threading.BoundedSemaphore(limit)

    def enter(self) -> bool:
        """Whether there is room for one more."""
        return self._free.acquire(blocking=False)

    def leave(self) -> None:
        """One page less."""
        self._free.release()

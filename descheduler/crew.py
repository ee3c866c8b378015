"""Threads for what cannot wait: the most urgent piece of work first, whenever it came.

A node that is being lost brings dozens of moves at once, each of several requests in a row. In the order of arrival
the first pod would leave after the last move was written down. So a request goes before all those of moves that are
less far, and the ordinary threads, which are few so as to spare the API server, are left to ordinary moves.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from enum import IntEnum
from typing import Any, Final

THREADS: Final = 16
"""Evictions over that many connections reach what an API server on two cores can give; twenty were measured at 180
a second."""


class Rank(IntEnum):
    """What goes before what."""

    EVICT = 0
    """Also a cordon: new pods must not come."""
    ANNOUNCE = 1
    MARK = 2
    TAKE_UP = 3
    CREATE = 4
    FOLLOW = 5
    """What happens after the eviction: nobody waits for it."""
    STOP = 6


Job = tuple[int, int, Callable[[], None] | None]


class Crew:
    """Start it with the first piece of work; the threads end with the process, or when `stop` is called."""

    def __init__(self, threads: int = THREADS) -> None:
        self._jobs: queue.PriorityQueue[Job] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._threads = [
            threading.Thread(target=self._work, name=f"hurry-{it}", daemon=True) for it in range(threads)
        ]
        self._lock = threading.Lock()
        self._started = False

    def at(self, rank: Rank) -> Executor:
        """Where to hand in work of this rank."""
        return _Lane(self, rank)

    def put(self, rank: Rank, job: Callable[[], None]) -> None:
        """Hand it in."""
        with self._lock:
            if not self._started:
                self._started = True
                for thread in self._threads:
                    thread.start()
        self._jobs.put((rank, next(self._numbers), job))

    def stop(self) -> None:
        """What is under way is finished, what waits is not begun."""
        while True:
            try:
                self._jobs.get_nowait()
            except queue.Empty:
                break
        for _ in self._threads:
            self._jobs.put((Rank.STOP, next(self._numbers), None))

    def _work(self) -> None:
        while True:
            _, _, job = self._jobs.get()
            if job is None:
                return
            job()


class _Lane(Executor):
    """The crew as who hands in work sees it."""

    def __init__(self, crew: Crew, rank: Rank) -> None:
        self._crew = crew
        self._rank = rank

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As a pool of threads does."""
        future: Future[Any] = Future()

        def job() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - outermost place of the thread, which others need
                future.set_exception(error)

        self._crew.put(self._rank, job)
        return future

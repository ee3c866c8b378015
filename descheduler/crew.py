"""Threads for what cannot wait: the most urgent piece of work first, whenever it came.

A node that is being lost brings dozens of moves at once, each of several requests in a row. In the order of arrival
the first pod would leave after the last move was written down. So a request goes before all those of moves that are
less far, and the ordinary threads, which are few so as to spare the API server, are left to ordinary moves.

Evictions against one disruption budget go one after the other: the API server writes to the budget with each, and
whoever comes second at the same moment is made to wait there for half a second at a time.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from enum import IntEnum
from typing import Any, Final

THREADS: Final = 8
"""With fewer, an API server that takes its time is waited for; with more, the first eviction shares it with too many
other requests."""


class Rank(IntEnum):
    """What goes before what."""

    EVICT = 0
    """Also a cordon: new pods must not come."""
    MARK = 1
    TAKE_UP = 2
    CREATE = 3
    FOLLOW = 4
    """What happens after the eviction: nobody waits for it."""
    STOP = 5


Job = Callable[[], None]
Entry = tuple[int, int, Job | None]


class Crew:
    """Start it with the first piece of work; the threads end with the process, or when `stop` is called."""

    def __init__(self, threads: int = THREADS) -> None:
        self._jobs: queue.PriorityQueue[Entry] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._threads = [
            threading.Thread(target=self._work, name=f"hurry-{it}", daemon=True) for it in range(threads)
        ]
        self._lock = threading.Lock()
        self._started = False
        self._behind: dict[Hashable, deque[tuple[Rank, Job]]] = {}
        """By what only one may touch at a time, and while one does: who comes next."""

    def at(self, rank: Rank, *, alone: Hashable | None = None) -> Executor:
        """Where to hand in work of this rank; of work with an equal `alone` one piece is done at a time."""
        return _Lane(self, rank, alone)

    def put(self, rank: Rank, job: Job, alone: Hashable | None = None) -> None:
        """Hand it in."""
        with self._lock:
            if not self._started:
                self._started = True
                for thread in self._threads:
                    thread.start()
            if alone is not None and alone in self._behind:
                self._behind[alone].append((rank, job))
                return
            if alone is not None:
                self._behind[alone] = deque()
        self._jobs.put((rank, next(self._numbers), job if alone is None else self._followed(job, alone)))

    def _followed(self, job: Job, alone: Hashable) -> Job:
        """The work, and after it whoever waited for its end."""

        def run() -> None:
            job()
            with self._lock:
                if not self._behind[alone]:
                    del self._behind[alone]
                    return
                rank, following = self._behind[alone].popleft()
            self._jobs.put((rank, next(self._numbers), self._followed(following, alone)))

        return run

    def stop(self) -> None:
        """What is under way is finished, what waits is not begun."""
        with self._lock:
            for waiting in self._behind.values():
                waiting.clear()
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

    def __init__(self, crew: Crew, rank: Rank, alone: Hashable | None) -> None:
        self._crew = crew
        self._rank = rank
        self._alone = alone

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As a pool of threads does."""
        future: Future[Any] = Future()

        def job() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - outermost place of the thread, which others need
                future.set_exception(error)

        self._crew.put(self._rank, job, self._alone)
        return future

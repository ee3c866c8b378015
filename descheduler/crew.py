"""Threads for what cannot wait: the most urgent piece of work first, whenever it came.

A node that is being lost brings dozens of moves at once, each of several requests in a row. In the order of arrival
the first pod would leave after the last move was written down. So a request goes before all those of moves that are
less far, and the ordinary threads, which are few so as to spare the API server, are left to ordinary moves.

Evictions have threads of their own, and more of them: the API server writes to the budget of the pod with each, and
whoever comes at the same moment as another, such as the controller that counts, is made to wait there for half a
second at a time. For the same reason our own evictions against one budget go one after the other.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from enum import IntEnum
from typing import Any, Final

EVICTING: Final = 16
"""Threads for evictions and cordons: they mostly wait for the API server, not with it."""
PREPARING: Final = 6
"""Threads for all the rest. With more, the first eviction would share the API server with too many others."""


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
Line = queue.PriorityQueue[Entry]


class Crew:
    """Start it with the first piece of work; the threads end with the process, or when `stop` is called."""

    def __init__(self, evicting: int = EVICTING, preparing: int = PREPARING) -> None:
        self._evictions: Line = queue.PriorityQueue()
        self._rest: Line = queue.PriorityQueue()
        self._numbers = itertools.count()
        lines = [self._evictions] * evicting + [self._rest] * preparing
        self._lines = {
            threading.Thread(target=self._work, args=(line,), name=f"hurry-{number}", daemon=True): line
            for number, line in enumerate(lines)
        }
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
                for thread in self._lines:
                    thread.start()
            if alone is not None and alone in self._behind:
                self._behind[alone].append((rank, job))
                return
            if alone is not None:
                self._behind[alone] = deque()
        self._enqueue(rank, job if alone is None else self._followed(job, alone))

    def _enqueue(self, rank: Rank, job: Job) -> None:
        line = self._evictions if rank is Rank.EVICT else self._rest
        line.put((rank, next(self._numbers), job))

    def _followed(self, job: Job, alone: Hashable) -> Job:
        """The work, and after it whoever waited for its end."""

        def run() -> None:
            job()
            with self._lock:
                if not self._behind[alone]:
                    del self._behind[alone]
                    return
                rank, following = self._behind[alone].popleft()
            self._enqueue(rank, self._followed(following, alone))

        return run

    def stop(self) -> None:
        """What is under way is finished, what waits is not begun."""
        with self._lock:
            for waiting in self._behind.values():
                waiting.clear()
        for line in (self._evictions, self._rest):
            with contextlib.suppress(queue.Empty):
                while True:
                    line.get_nowait()
        for line in self._lines.values():
            line.put((Rank.STOP, next(self._numbers), None))

    def _work(self, line: Line) -> None:
        while True:
            _, _, job = line.get()
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

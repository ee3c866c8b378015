"""A queue of keys to work on: each key at most once in it, and at most one worker on a key at a time.

`Schedule` is the bookkeeping, pure and told the time; `WorkQueue` adds the lock and the waiting. Keys are
served in the order in which they became due, and a key that comes back goes to the end, so a noisy key
cannot starve the others. Waiting is on a condition with the exact time of the next due key: nothing
polls.
"""

import enum
import heapq
import threading
from collections import deque
from collections.abc import Callable, Hashable
from random import Random
from typing import Final, Generic, Protocol, TypeVar

from cluster.pace import Pace

K = TypeVar("K", bound=Hashable)

RETRY: Final = Pace(base=1.0, top=300.0)
"""One second is the documented `retryBackoff`; five minutes is the pace at which hopeless keys are looked at."""


class Signal(enum.StrEnum):
    """What the queue tells its observer, each with a number."""

    ADDED = "added"
    DEPTH = "depth"
    RETRIED = "retried"
    WAITED_SECONDS = "waitedSeconds"
    WORKED_SECONDS = "workedSeconds"
    DROPPED = "dropped"


class Observer(Protocol):
    """Called outside the queue's lock, so it may take its time and may call the queue."""

    def __call__(self, signal: Signal, value: float, /) -> None: ...


class Schedule(Generic[K]):
    """Which key is next. Not safe for threads by itself."""

    def __init__(self) -> None:
        self._ready: deque[K] = deque()
        self._due_since: dict[K, float] = {}
        """Keys that wait for a worker, and since when: also the test for being in the queue."""
        self._working: dict[K, float] = {}
        self._later: list[tuple[float, int, K]] = []
        self._later_at: dict[K, float] = {}
        self._count = 0

    def add(self, key: K, now: float) -> bool:
        """Make a key due; False if it was already. One that is being worked on is served again afterwards."""
        if key in self._due_since:
            return False
        self._due_since[key] = now
        if key not in self._working:
            self._ready.append(key)
        return True

    def add_at(self, key: K, at: float) -> None:
        """Make a key due later. Of several times for one key the earliest counts."""
        if key in self._later_at and self._later_at[key] <= at:
            return
        self._later_at[key] = at
        self._count += 1
        heapq.heappush(self._later, (at, self._count, key))

    def advance(self, now: float) -> int:
        """Move what has become due into the line; how many."""
        moved = 0
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            if self._later_at.get(key) == at:  # else an earlier time replaced this entry
                del self._later_at[key]
                moved += self.add(key, at)
        return moved

    def next_due(self) -> float | None:
        """When `advance` will have something to do."""
        while self._later and self._later_at.get(self._later[0][2]) != self._later[0][0]:
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None

    def take(self, now: float) -> tuple[K, float] | None:
        """The next key and how long it waited."""
        if not self._ready:
            return None
        key = self._ready.popleft()
        self._working[key] = now
        return key, max(0.0, now - self._due_since.pop(key))

    def done(self, key: K, now: float) -> float:
        """Give a key back; how long the work took."""
        began = self._working.pop(key)
        if key in self._due_since:
            self._ready.append(key)
        return now - began

    def clear(self) -> int:
        """Forget everything that nobody works on; how many keys that were."""
        dropped = len(self._due_since.keys() | self._later_at.keys())
        self._ready.clear()
        self._due_since.clear()
        self.clear_later()
        return dropped

    def clear_later(self) -> int:
        """Forget what is not due yet; how many keys that were."""
        dropped = len(self._later_at.keys() - self._due_since.keys())
        self._later.clear()
        self._later_at.clear()
        return dropped

    @property
    def depth(self) -> int:
        """Keys that are due and wait."""
        return len(self._due_since)

    @property
    def idle(self) -> bool:
        """Nothing due and nobody at work."""
        return not self._due_since and not self._working


class WorkQueue(Generic[K]):
    """Schedule for threads, with a memory of failures per key."""

    def __init__(
        self, *, clock: Callable[[], float], rng: Random, pace: Pace = RETRY, observer: Observer | None = None
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._pace = pace
        self._observer = observer or (lambda _signal, _value: None)
        self._schedule: Schedule[K] = Schedule()
        self._failures: dict[K, int] = {}
        self._closed = False
        self._changed = threading.Condition()

    def add(self, key: K) -> None:
        """Have the key worked on soon. Refused, and counted, once the queue is shut down."""
        with self._changed:
            refused = self._closed
            added = not refused and self._schedule.add(key, self._clock())
            if added:
                self._changed.notify()
        self._tell_added(added=int(added), refused=refused)

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key worked on in a while."""
        with self._changed:
            refused = self._closed
            if not refused:
                self._schedule.add_at(key, self._clock() + seconds)
                self._changed.notify()
        self._tell_added(added=0, refused=refused)

    def retry(self, key: K) -> float:
        """Have the key worked on again after its own back-off; the seconds until then."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            seconds = self._pace.delay(failures, self._rng)
        self._observer(Signal.RETRIED, 1)
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """The key went well: its next failure is its first."""
        with self._changed:
            self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Failures in a row."""
        with self._changed:
            return self._failures.get(key, 0)

    def get(self, timeout: float | None = None) -> K | None:
        """The next due key, which the caller must give back with `done`. None: timed out, or shut down and empty."""
        end = None if timeout is None else self._clock() + timeout
        with self._changed:
            while (taken := self._poll()) is None:
                if self._closed or (end is not None and self._clock() >= end):
                    self._changed.notify()  # it may have been meant for one who stays
                    return None
                self._changed.wait(self._wait_seconds(end))
            # Whoever leaves with a key hands the watch over the next due time to another waiting worker.
            self._changed.notify()
            depth = self._schedule.depth
        self._observer(Signal.WAITED_SECONDS, taken[1])
        self._observer(Signal.DEPTH, depth)
        return taken[0]

    def done(self, key: K) -> None:
        """The work on a key ended, well or not."""
        with self._changed:
            worked = self._schedule.done(key, self._clock())
            self._changed.notify_all()
        self._observer(Signal.WORKED_SECONDS, worked)

    def shut_down(self, *, drain: bool) -> None:
        """Take nothing new. With `drain` what is due is still served; what is not due yet never is."""
        with self._changed:
            self._closed = True
            dropped = self._schedule.clear_later() if drain else self._schedule.clear()
            self._changed.notify_all()
        self._observer(Signal.DROPPED, dropped)

    def join(self, timeout: float) -> bool:
        """Wait until nothing is due and nobody is at work; whether that came true in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._schedule.idle, timeout)

    def __len__(self) -> int:
        with self._changed:
            return self._schedule.depth

    def _poll(self) -> tuple[K, float] | None:
        now = self._clock()
        self._schedule.advance(now)
        return self._schedule.take(now)

    def _wait_seconds(self, end: float | None) -> float | None:
        times = [at for at in (end, self._schedule.next_due()) if at is not None]
        return max(0.0, min(times) - self._clock()) if times else None

    def _tell_added(self, *, added: int, refused: bool) -> None:
        if refused:
            self._observer(Signal.DROPPED, 1)
        elif added:
            self._observer(Signal.ADDED, added)

"""Threads that work off a queue: a fixed number of them, and none of them ends because a piece of work failed."""

import contextlib
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cluster.workqueue import WorkQueue

K = TypeVar("K", bound=Hashable)


def run(
    queue: WorkQueue[K],
    handle: Callable[[K], float | None],
    failed: Callable[[K, Exception, float], None],
) -> None:
    """The life of one worker thread: until the queue is shut down and has nothing left.

    `handle` may return seconds after which it wants the key again. What it raises is told to `failed` with
    the seconds until the retry; it never ends the worker.
    """
    while (key := queue.get()) is not None:
        try:
            again = handle(key)
        except Exception as error:  # noqa: BLE001 - the outermost place of one piece of work
            seconds = queue.retry(key)
            with contextlib.suppress(Exception):  # who only tells of failures must not cause the next one
                failed(key, error, seconds)
        else:
            queue.forget(key)
            if again is not None:
                queue.add_after(key, again)
        finally:
            queue.done(key)


class Workers(Generic[K]):
    """A fixed number of threads on one queue."""

    def __init__(
        self,
        queue: WorkQueue[K],
        handle: Callable[[K], float | None],
        failed: Callable[[K, Exception, float], None],
        *,
        count: int,
        name: str,
    ) -> None:
        self._queue = queue
        self._threads = tuple(
            threading.Thread(target=run, args=(queue, handle, failed), name=f"{name}-{n}", daemon=True)
            for n in range(count)
        )

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def stop(self, *, drain: bool, timeout: float) -> bool:
        """Shut the queue down and wait for the threads; False if some work did not end in time."""
        self._queue.shut_down(drain=drain)
        idle = self._queue.join(timeout)
        for thread in self._threads:
            thread.join(timeout if idle else 0)
        return not any(thread.is_alive() for thread in self._threads)

"""Requests that must not be waited for longer than their sender can afford, and the names of how they end.

A read timeout bounds the silence between two packets, not a whole request: a server that sends a byte now and
then holds its client for ever. So the request runs on a thread of its own, and who asked waits as long as it
wants to.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from cluster import errors

R = TypeVar("R")

MAX_HANGING: Final = 4
"""Requests that may be left behind unanswered; with so many open, no further one is sent."""

_ANSWERS: Final[tuple[tuple[type[errors.ApiError], str], ...]] = (
    (errors.NotFound, "notFound"),
    (errors.Conflict, "conflict"),
    (errors.DisruptionBlocked, "blocked"),
    (errors.Throttled, "throttled"),
    (errors.Gone, "gone"),
    (errors.Forbidden, "forbidden"),
    (errors.Unauthorized, "unauthorized"),
    (errors.Unreachable, "unreachable"),
    (errors.ServerError, "serverError"),
)


def answer_of(error: errors.ApiError) -> str:
    """The short code of an error for metrics."""
    return next((code for kind, code in _ANSWERS if isinstance(error, kind)), "invalid")


@dataclass(slots=True)
class Answer(Generic[R]):
    """Filled in by the thread of the request; read it under the lock that was given, once `done`."""

    done: bool = False
    value: R | None = None
    error: errors.ApiError | None = None

    def unwrap(self) -> R:
        """The value, or the error raised."""
        if self.error is not None:
            raise self.error
        if self.value is None:
            raise errors.Unreachable("no answer in time", timed_out=True)
        return self.value


class Caller:
    """Starts requests and wakes whoever waits on `changed` when one of them ends."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._open = 0

    def start(self, request: Callable[[], R]) -> Answer[R]:
        """Send without waiting."""
        answer: Answer[R] = Answer()
        with self._changed:
            if self._open >= MAX_HANGING:
                raise errors.Unreachable("earlier requests are still not answered", maybe_applied=False)
            self._open += 1
        try:
            threading.Thread(target=self._perform, args=(request, answer), name="call", daemon=True).start()
        except RuntimeError as refused:  # the limit of threads or pids of the container
            with self._changed:
                self._open -= 1
            raise errors.Unreachable(f"no thread for the request: {refused}", maybe_applied=False) from refused
        return answer

    def _perform(self, request: Callable[[], R], answer: Answer[R]) -> None:
        try:
            answer.value = request()
        except errors.ApiError as error:
            answer.error = error
        except Exception as error:  # noqa: BLE001 - whatever it was, there is no answer
            answer.error = errors.Unreachable(f"{type(error).__name__}: {error}")
        with self._changed:
            answer.done = True
            self._open -= 1
            self._changed.notify_all()

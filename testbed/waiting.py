"""Wait for a condition instead of for a time, and tell what was seen last when it does not come."""

import os
import pprint
import time
from collections.abc import Callable
from typing import TypeVar

from testbed.api import ApiError

T = TypeVar("T")
SHOWN = 2000
"""Characters of the last state in a failure message: a screenful."""

SHARE = 0.2
"""Of the time waited so far, until the next look: what comes soon is seen soon, and a long wait costs less."""
SOONEST_SECONDS, LATEST_SECONDS = 0.2, 0.4

PATIENCE = float(os.environ.get("SPOTSHIFT_PATIENCE", "1"))
"""How many times longer to wait where several tests share the processors: `make test` sets it."""


def patient(seconds: float) -> float:
    """So many seconds of a machine that does nothing else."""
    return seconds * PATIENCE


class NeverCame(AssertionError):
    """The deadline passed; the message holds the last state."""


class Hopeless(Exception):
    """Raised by a probe that knows that it cannot come any more: there is nothing left to wait for."""


def eventually(
    probe: Callable[[], T],
    *,
    until: Callable[[T], object] = bool,
    timeout: float = 30.0,
    interval: float | None = None,
    what: str = "the condition",
) -> T:
    """Call `probe` until `until` likes what it returns, and return that. Without an `interval`, less often the
    longer it takes.

    The time is that of an idle machine, see `patient`. An assertion or an API error inside `probe` counts as
    "not yet": the thing may still be on its way. `Hopeless` ends the waiting.
    """
    timeout = patient(timeout)
    began = time.monotonic()
    deadline = began + timeout
    while True:
        try:
            last: object = (value := probe())
            if until(value):
                return value
        except (AssertionError, ApiError) as refusal:
            last = refusal
        now = time.monotonic()
        if now >= deadline:
            raise NeverCame(f"{what} did not come within {timeout:g} s; last seen:\n{_shown(last)}")
        time.sleep(next_look(now - began) if interval is None else interval)


def next_look(waited: float) -> float:
    """Seconds until then, after so many."""
    return min(max(SHARE * waited, SOONEST_SECONDS), LATEST_SECONDS)


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, BaseException) else pprint.pformat(value, width=110, compact=True)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ... ({len(text) - SHOWN} more characters)"

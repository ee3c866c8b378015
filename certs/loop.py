"""Runs passes for as long as the process lives: woken by changes, by the end of a wait, or by the interval.

Every pass starts from the cluster as it is. What wakes the loop says only that something may have changed.
"""

import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Final

from certs import reconcile
from certs.objects import Api
from certs.reconcile import Clock, Outcome, Pass
from certs.report import Reporter
from certs.settings import Settings
from cluster import errors
from cluster.pace import Pace

PACE: Final = Pace(base=1.0, top=60.0)
"""After a failed pass. Nothing expires within a minute, and the apiserver has other guests."""
DUST_SECONDS: Final = 0.2
"""Between a wake-up and the pass it asks for. Changes come in groups, our own among them, and two controllers that
undo each other's work do so at this pace.
"""
STOP_SECONDS: Final = 0.5
"""How long a stop waits for a request in flight. A pass that is cut short is healed by the next one."""


class Loop:
    """One thread. `wake` is safe from any thread and from signal handlers."""

    def __init__(
        self,
        api: Api,
        settings: Settings,
        *,
        reporter: Reporter,
        clock: Clock,
        monotonic: Callable[[], float],
        rng: Random,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`beat` is called once per turn, whatever came of it: for liveness."""
        self._api = api
        self._settings = settings
        self._reporter = reporter
        self._clock = clock
        self._monotonic = monotonic
        self._rng = rng
        self._beat = beat
        self._mail: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopped = False
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="certs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the cluster now."""
        self._mail.put(None)

    def stop(self, timeout: float = STOP_SECONDS) -> bool:
        """No further pass; False if one is still waiting for an answer."""
        self._stopped = True
        self.wake()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def turn(self) -> timedelta:
        """Passes until there is nothing to do, and how long to rest after them."""
        began = self._monotonic()
        try:
            last = reconcile.settle(self._api, self._settings, self._clock, self._reporter.told)
        except errors.ApiError as error:
            self._reporter.failed(error, self._monotonic() - began)
            return self._back_off(error.retry_after)
        except Exception as error:  # noqa: BLE001 - the outermost place: the next turn starts from the cluster again
            self._reporter.broken(error)
            return self._back_off(None)
        self._failures = 0
        self._reporter.finished(self._monotonic() - began)
        return self._rest(last)

    def _rest(self, last: Pass) -> timedelta:
        due = last.decision.wait_until
        if due is None or last.outcome is not Outcome.IDLE:
            return self._settings.interval
        return max(timedelta(0), min(self._settings.interval, due - self._clock()))

    def _back_off(self, asked: float | None) -> timedelta:
        delay = PACE.delay(self._failures, self._rng)
        self._failures += 1
        return timedelta(seconds=max(delay, asked or 0.0))

    def _run(self) -> None:
        while not self._stopped:
            rest = self.turn()
            self._beat()
            woken = self._sleep(rest.total_seconds(), deaf=self._failures > 0)
            if woken:
                self._sleep(DUST_SECONDS, deaf=True)

    def _sleep(self, seconds: float, *, deaf: bool) -> bool:
        """True if somebody woke us. A deaf sleep is ended by a stop only, as after a failure."""
        end = self._monotonic() + seconds
        while not self._stopped:
            try:
                self._mail.get(timeout=max(0.0, end - self._monotonic()))
            except queue.Empty:
                return False
            if not deaf:
                return True
        return False

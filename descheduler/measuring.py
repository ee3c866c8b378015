"""Asks who measures what nodes and pods use, on a thread of its own, while a strategy wants to know.

A cluster in which nobody measures is an ordinary cluster: the question is asked again, and nothing else happens.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final

from cluster import errors
from cluster.runtime import Runtime
from descheduler.strategies import resource_optimization
from descheduler.usage import Samples
from descheduler.usage_sources import Answer, Sources
from policy.settings import Settings
from policy.settings_strategies import ResourceOptimization, UsageSource
from telemetry.catalogue import Log
from telemetry.metrics import Metric

EVERY_SECONDS: Final = 15.0
"""As often as metrics-server measures by default, or as often as passes are made if that is more often."""

Asked = tuple[UsageSource, str]
"""What the settings named when somebody was asked."""


class Measuring:
    """`usage` is for the thread of the state; answers come to it through a queue, so the samples need no lock."""

    def __init__(self, sources: Sources, settings: Callable[[], Settings], *, runtime: Runtime) -> None:
        self._sources = sources
        self._settings = settings
        self._runtime = runtime
        self._answers: queue.SimpleQueue[tuple[Asked, Answer]] = queue.SimpleQueue()
        self._samples: Samples | None = None
        self._asked: Asked | None = None
        self._told: tuple[Asked, UsageSource | None] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="usage", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more; a question that is under way is not waited for."""
        self._stop.set()

    def usage(self) -> Samples | None:
        """What was measured; None as long as nobody has answered. No mean is made over what different settings asked
        for: whoever names another source does not trust the one before.
        """
        while not self._answers.empty():
            asked, answer = self._answers.get()
            if self._samples is None or asked != self._asked:
                self._samples, self._asked = Samples(), asked
            self._samples.add_nodes(answer.nodes)
            self._samples.set_pods(answer.pods)
        return self._samples

    def ask(self) -> None:
        """One question, if the answer is of use to anybody."""
        settings = self._settings()
        if not wanted(settings):
            return
        own = settings.strategies.resource_optimization
        try:
            answer = self._sources.ask(own)
            self._answers.put((_asked(own), answer))
            self._tell(own, answer.by)
        except errors.ApiError as error:  # measurements grow old, and the strategy says so
            self._tell(own, None, error)
        except Exception as error:  # noqa: BLE001 - outermost place of the thread
            self._runtime.log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
            self._runtime.meter.inc(Metric.INTERNAL_ERRORS)

    def _tell(self, own: ResourceOptimization, by: UsageSource | None, error: errors.ApiError | None = None) -> None:
        """Once for each change: who answers now, or why nobody does."""
        if self._told == (_asked(own), by):
            return
        self._told = _asked(own), by
        if error is None:
            self._runtime.log.emit(Log.USAGE_MEASURED, cause=str(by))
        else:
            self._runtime.log.emit(Log.USAGE_UNKNOWN, error=error)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.ask()
            self._stop.wait(min(EVERY_SECONDS, self._settings().rescheduling_interval.total_seconds()))


def wanted(settings: Settings) -> bool:
    """Whether a strategy is enabled that uses measurements."""
    source = settings.strategies.resource_optimization.source
    return resource_optimization.NAME in settings.enabled_strategies and source is not UsageSource.REQUESTS


def _asked(own: ResourceOptimization) -> Asked:
    return own.source, own.prometheus_url

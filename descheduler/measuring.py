"""Asks the metrics API what nodes and pods use, on a thread of its own, while a strategy wants to know.

A cluster without metrics-server is an ordinary cluster: the question is asked again, and nothing else happens.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cluster import errors
from cluster.client import Client
from cluster.objects import NodeMetrics, PodMetrics
from cluster.resources import NODEMETRICS, PODMETRICS
from cluster.runtime import Runtime
from descheduler.strategies import resource_optimization
from descheduler.usage import Samples
from policy.settings import Settings
from policy.settings_strategies import UsageSource
from telemetry.catalogue import Log
from telemetry.metrics import Metric

EVERY_SECONDS: Final = 15.0
"""As often as metrics-server measures by default, or as often as passes are made if that is more often."""
REQUEST_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the metrics API."""

    nodes: Sequence[NodeMetrics]
    pods: Sequence[PodMetrics]


class Source(Protocol):
    """Who measures. Raises ApiError."""

    def ask(self) -> Answer: ...


class MetricsApi:
    """metrics.k8s.io."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def ask(self) -> Answer:
        """Two lists."""
        nodes = self._client.list(NODEMETRICS, type=NodeMetrics, timeout=REQUEST_SECONDS)
        pods = self._client.list(PODMETRICS, type=PodMetrics, timeout=REQUEST_SECONDS)
        return Answer(nodes.items, pods.items)


class Measuring:
    """`usage` is for the thread of the state; answers come to it through a queue, so the samples need no lock."""

    def __init__(self, source: Source, settings: Callable[[], Settings], *, runtime: Runtime) -> None:
        self._source = source
        self._settings = settings
        self._runtime = runtime
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._samples: Samples | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="usage", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more; a question that is under way is not waited for."""
        self._stop.set()

    def usage(self) -> Samples | None:
        """What was measured; None as long as nobody has answered."""
        while not self._answers.empty():
            answer = self._answers.get()
            self._samples = self._samples or Samples()
            self._samples.add_nodes(answer.nodes)
            self._samples.set_pods(answer.pods)
        return self._samples

    def ask(self) -> None:
        """One question, if the answer is of use to anybody."""
        if not wanted(self._settings()):
            return
        try:
            self._answers.put(self._source.ask())
        except errors.ApiError:
            return  # counted by the client; measurements grow old, and the strategy says so
        except Exception as error:  # noqa: BLE001 - outermost place of the thread
            self._runtime.log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
            self._runtime.meter.inc(Metric.INTERNAL_ERRORS)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.ask()
            self._stop.wait(min(EVERY_SECONDS, self._settings().rescheduling_interval.total_seconds()))


def wanted(settings: Settings) -> bool:
    """Whether a strategy is enabled that uses measurements of this API."""
    source = settings.strategies.resource_optimization.source
    enabled = resource_optimization.NAME in settings.enabled_strategies
    return enabled and source in {UsageSource.AUTO, UsageSource.METRICS}

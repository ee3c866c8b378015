"""A work queue whose numbers are kept: what its observer is told, as metrics."""

from collections.abc import Hashable
from typing import Final, TypeVar

from cluster.pace import Pace
from cluster.runtime import Runtime
from cluster.workqueue import RETRY, Signal, WorkQueue
from telemetry.metrics import Metric

K = TypeVar("K", bound=Hashable)

_COUNTED: Final = {Signal.ADDED: Metric.QUEUE_ADDED, Signal.RETRIED: Metric.QUEUE_RETRIES}
_TIMED: Final = {Signal.WAITED_SECONDS: Metric.QUEUE_WAIT_SECONDS, Signal.WORKED_SECONDS: Metric.QUEUE_WORK_SECONDS}


def metered(name: str, *, runtime: Runtime, pace: Pace = RETRY) -> WorkQueue[K]:
    """A queue that is counted under this name, which must be one of the declared ones."""
    meter = runtime.meter

    def observe(signal: Signal, value: float, /) -> None:
        if signal in _COUNTED:
            meter.inc(_COUNTED[signal], value, queue=name)
        elif signal in _TIMED:
            meter.observe(_TIMED[signal], value, queue=name)

    queue: WorkQueue[K] = WorkQueue(clock=runtime.clock, rng=runtime.rng, pace=pace, observer=observe)
    meter.follow(Metric.QUEUE_DEPTH, lambda: float(len(queue)), queue=name)
    return queue

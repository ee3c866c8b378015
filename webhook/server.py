"""POST /mutate: asks `handle`, counts and answers. The HTTP around it is `serving.asgi`.

Nothing in here can deny a pod: what goes wrong is a status that is not 200, and then the failure policy of the
webhook configuration applies, which is to let it pass.
"""

from collections.abc import Callable
from typing import Final

from cluster.runtime import Runtime
from serving import asgi
from serving.asgi import Answer
from telemetry.catalogue import Log
from telemetry.metrics import Metric
from webhook import admitted, handle
from webhook.handle import Outcome
from webhook.memory import Memory
from webhook.reasons import Note, Result
from webhook.view import View

PATH: Final = "/mutate"
BODY_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""The API server takes requests of at most 3 MiB, and the review of a creation holds one object (no `oldObject`);
1 MiB more is for user info, options and defaults. Where that is not enough the pod is created as it was written.
"""

_RESULTS: Final = {
    Result.PATCHED: "patched",
    Result.UNCHANGED: "unchanged",
    Result.LEFT_ALONE: "skipped",
    Result.PATCH_UNAPPLICABLE: "failed",
    Result.INTERNAL_ERROR: "failed",
    Result.BAD_REQUEST: "failed",
}


_OURS: Final = frozenset({Result.INTERNAL_ERROR, Result.PATCH_UNAPPLICABLE})
"""Faults of this program."""


def application(
    view: Callable[[], View],
    *,
    runtime: Runtime,
    start: Callable[[], None] = lambda: None,
    stop: Callable[[], None] = lambda: None,
) -> asgi.Application:
    """The application of one worker. `view` is asked for each request."""
    handlers = {PATH: Admission(view, runtime=runtime).answer}
    return asgi.Application(handlers, body_limit=BODY_LIMIT_BYTES, runtime=runtime, start=start, stop=stop)


class Admission:
    """Answers reviews; remembers what it decided as long as the view stays the same."""

    def __init__(self, view: Callable[[], View], *, runtime: Runtime) -> None:
        self._view = view
        self._runtime = runtime
        self._memory = Memory()
        self._tells = runtime.log.writes(Log.ADMITTED)
        self._took = runtime.meter.observing(Metric.ADMISSION_SECONDS)
        self._ended = {
            result: runtime.meter.counting(Metric.ADMISSIONS, result=name) for result, name in _RESULTS.items()
        }

    def answer(self, body: bytes) -> Answer:
        """The answer to a whole body; what it raises is answered by the shell."""
        clock = self._runtime.clock
        began = clock()
        view = self._view()
        outcome = handle.recalled(body, view, self._memory)
        if outcome is None:
            outcome = handle.decided(body, view, self._runtime.wall(), self._memory)
            self._count_once(outcome)
        took = clock() - began
        self._took(took)
        self._ended[outcome.result](1)
        if outcome.ignored:
            self._runtime.meter.inc(Metric.VALUES_IGNORED, outcome.ignored)
        if outcome.result in _OURS:
            self._runtime.meter.inc(Metric.INTERNAL_ERRORS)
            detail = outcome.error or outcome.result.sentence
            self._runtime.log.emit(Log.INTERNAL_ERROR, detail=detail, namespace=outcome.namespace)
        elif self._tells:
            for found in admitted.fields(body, view, outcome, self._runtime.wall()):
                self._runtime.log.emit(Log.ADMITTED, seconds=round(took, 6), **found)
        return Answer(outcome.status, outcome.content_type, outcome.body)

    def _count_once(self, outcome: Outcome) -> None:
        """Of a pod with a choice or a move, which are never remembered."""
        meter, choice = self._runtime.meter, outcome.choice
        if choice is not None and choice.fresh and not outcome.dry_run:
            meter.inc(Metric.MIX_CHOICES, capacity=choice.side.value)
        if Note.REPLACEMENT in outcome.notes:
            meter.inc(Metric.HINTS, result="given" if Note.HINTED in outcome.notes else "none")

"""POST /filter and POST /prioritize: asks `answer`, counts and answers. The HTTP around it is `serving.asgi`."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from cluster.runtime import Runtime
from extender import answer
from extender.answer import Outcome, Result
from extender.promises import Promises
from extender.view import View
from serving import asgi
from serving.asgi import Answer
from telemetry.catalogue import Log
from telemetry.metrics import Metric

BODY_LIMIT_BYTES: Final = 8 * 1024 * 1024
"""Names of 5,000 nodes are 0.3 MB; of whole nodes, some 10 kB each, these are about 800. A scheduler with more of
them than that should send names, and until it does it goes on without us."""

Decide = Callable[[bytes, View, datetime, Promises], Outcome]


def application(
    view: Callable[[], View],
    *,
    runtime: Runtime,
    start: Callable[[], None] = lambda: None,
    stop: Callable[[], None] = lambda: None,
) -> asgi.Application:
    """The application of one worker. `view` is asked for each request."""
    questions = Questions(view, runtime=runtime)
    handlers = {
        "/filter": partial(questions.answer, "filter", answer.to_filter),
        "/prioritize": partial(questions.answer, "prioritize", answer.to_prioritize),
    }
    return asgi.Application(handlers, body_limit=BODY_LIMIT_BYTES, runtime=runtime, start=start, stop=stop)


class Questions:
    """Answers a scheduler; remembers which replacement was told which target."""

    def __init__(self, view: Callable[[], View], *, runtime: Runtime) -> None:
        self._view = view
        self._runtime = runtime
        self._promises = Promises()

    def answer(self, verb: str, decide: Decide, body: bytes) -> Answer:
        """The answer to a whole body."""
        began = self._runtime.clock()
        outcome = decide(body, self._view(), self._runtime.wall(), self._promises)
        meter = self._runtime.meter
        meter.observe(Metric.EXTENDER_SECONDS, self._runtime.clock() - began, verb=verb)
        meter.inc(Metric.EXTENDER_REQUESTS, verb=verb, result=outcome.result.value)
        if outcome.out:
            meter.inc(Metric.EXTENDER_NODES_OUT, outcome.out)
        if outcome.target is not None and verb == "filter":
            meter.inc(Metric.EXTENDER_TARGETS, result="reachable" if outcome.target else "unreachable")
        if outcome.result is Result.PASSED:
            meter.inc(Metric.INTERNAL_ERRORS)
            self._runtime.log.emit(Log.INTERNAL_ERROR, detail=outcome.error)
        if outcome.result is Result.REFUSED:
            return Answer(400, asgi.TEXT, outcome.body)
        return Answer(200, asgi.JSON, outcome.body)

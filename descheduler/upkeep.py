"""Keeps nodes and temporary budgets as they should be: asks what to write, has it sent, and asks again.

`turn` runs on the thread that owns the state; requests run on the threads of moves and come back through a queue. Of
one object at most one request is under way. An answer is put into the state at once, because the watch may be slower.
"""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor as Pool
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cluster import errors
from cluster.resources import NODES, PDBS, PODS
from descheduler import interruption, leaving, maintenance, marks, writes
from descheduler.guards import Context
from descheduler.leaving import Departure
from descheduler.maintenance import Progress
from descheduler.migration import temporary_budget
from descheduler.notices import Notices
from descheduler.plan import Plan
from descheduler.requests import Request, Said, Verb
from descheduler.state import ClusterState
from descheduler.strategies import node_maintenance
from descheduler.tally import Tally
from descheduler.telling import Recorder
from policy import keys
from policy.drain_status import Stage
from policy.settings import Mode, Settings
from telemetry.catalogue import Log
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric

LOOK_EVERY: Final = timedelta(seconds=5)
"""Between two looks at nodes that are being emptied, though nothing has changed: a deadline may have passed."""
AFTER_CONFLICT: Final = timedelta(milliseconds=100)
"""Kubelets write to nodes all the time; the watch tells of it within that time."""
AFTER_ERROR: Final = timedelta(seconds=5)
BETWEEN_WRITES: Final = timedelta(seconds=1)
"""Between two writes of the same object that succeeded: words about progress need not come faster."""

ObjectKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: the object as it is now, where it has one, or the error."""

    request: Request
    item: Any = None
    error: Exception | None = None
    sent: bool = True
    term: int = 0
    """Which of its times as the leader this process asked in."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the upkeep works with."""

    settings: Callable[[], Settings]
    stopped: Callable[[], str]
    """Why nothing new may be begun; empty if it may."""
    leading: Callable[[], bool]
    pool: Pool
    wake: Callable[[], None]
    recorder: Recorder
    meter: Meter
    log: Logger
    hurried: Pool | None = None
    """For the cordon of a node that is being lost; None: the pool of all."""


class Upkeep:
    """One per process; acts only in the turns of a leader."""

    def __init__(self, send: Callable[[Request], Any], around: Surroundings) -> None:
        self._send = send
        self._around = around
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._term = 0
        self._under_way: set[ObjectKey] = set()
        self._failed: dict[ObjectKey, datetime] = {}
        """Until when a request that failed is not repeated."""
        self._spoken: dict[ObjectKey, datetime] = {}
        """Until when there is nothing more to say about progress."""
        self._tally = Tally(around.meter, around.recorder)
        self._notices = Notices(around.log)
        self._mistakes: frozenset[Said] = frozenset()
        self._seen: tuple[int, Settings, str] | None = None
        self._plan: Plan | None = None
        self._next_look: datetime | None = None

    def turn(self, state: ClusterState, plan: Plan | None, now: datetime) -> datetime | None:
        """Take in what came back, send what is due; when to come again if nothing happens."""
        settings, stopped = self._around.settings(), self._around.stopped()
        while not self._answers.empty():
            self._take(self._answers.get(), state, now)
        if self._is_as_seen(state, plan) and (self._next_look is None or now < self._next_look):
            return self._next_look
        self._failed = {key: until for key, until in self._failed.items() if until > now}
        self._spoken = {key: until for key, until in self._spoken.items() if until > now}
        context = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns={})
        decided = _decide(context, plan, may_begin=_may_begin(settings, stopped))
        self._measure(decided.drains)
        self._tally.look(decided.departures, context)
        self._notices.look(context)
        self._complain(context)
        later = self._start(decided.requests, now)
        self._seen, self._plan = (state.changes, settings, stopped), plan
        due = [*later, *_looks(decided, context)]
        self._next_look = min(due, default=None)
        return self._next_look

    def resign(self) -> None:
        """No longer the leader. What is answered to requests made until now may have been undone by others before it
        is taken in, and must not be believed then. How far drains are is for the next one to say: our last numbers
        would stand beside theirs for as long as this process lives.
        """
        self._term += 1
        self._measure(())

    def _is_as_seen(self, state: ClusterState, plan: Plan | None) -> bool:
        """Whether the last look saw the same; answers that came meanwhile ask for another by themselves."""
        return plan is self._plan and self._seen == (state.changes, self._around.settings(), self._around.stopped())

    def _start(self, wanted: Iterable[Request], now: datetime) -> list[datetime]:
        """Send what may be sent; when the rest is due."""
        later = []
        for request in wanted:
            if request.key in self._under_way:
                continue
            rests = [self._failed.get(request.key, now), self._spoken.get(request.key, now)]
            until = rests[0] if _is_urgent(request) else max(rests)
            if until > now:
                later.append(until)
                continue
            self._failed.pop(request.key, None)
            self._spoken.pop(request.key, None)
            self._under_way.add(request.key)
            hurries = self._around.hurried is not None and "spec" in request.body and request.resource is NODES
            pool = (self._around.hurried if hurries else None) or self._around.pool
            pool.submit(self._run, request, self._term)
        return later

    def _run(self, request: Request, term: int) -> None:
        answer = Answer(request, sent=False)
        try:
            if self._may_send(request):  # it may have waited in line for longer than the lease
                answer = Answer(request, self._send(request), term=term)
        except Exception as error:  # noqa: BLE001 - outermost place of the thread: the object must not be lost
            answer = Answer(request, error=error)
        self._answers.put(answer)
        self._around.wake()

    def _may_send(self, request: Request) -> bool:
        around = self._around
        return around.leading() and (_may_begin(around.settings(), around.stopped()) or not _begins(request))

    def _take(self, answer: Answer, state: ClusterState, now: datetime) -> None:
        request = answer.request
        self._under_way.discard(request.key)
        self._next_look = now
        match answer.error:
            case None if answer.sent:
                self._spoken[request.key] = now + BETWEEN_WRITES
                if answer.item is not None and answer.term == self._term:
                    writes.adopt(answer.item, state)
                self._tell(request)
            case None:
                pass
            case errors.Conflict() | errors.NotFound() as changed:
                self._failed[request.key] = now + AFTER_CONFLICT
                if isinstance(changed, errors.NotFound):
                    writes.forget(request, state)
            case error:
                self._failed[request.key] = now + AFTER_ERROR
                self._around.log.emit(Log.REQUEST_FAILED, name=request.name, error=error)

    def _tell(self, request: Request) -> None:
        for said in request.events:
            self._around.recorder.record(said.subject, said.topic, said.note)
        for line in request.lines:
            self._around.log.emit(line.entry, **line.fields)
        for metric in request.counts:
            self._around.meter.inc(metric)

    def _complain(self, context: Context) -> None:
        """Once for each mistake, and for each node whose silence is not believed, as long as it stands."""
        found = frozenset((*maintenance.mistakes(context), *leaving.partitions(context)))
        for said in found - self._mistakes:
            self._around.recorder.record(said.subject, said.topic, said.note)
        self._mistakes = found

    def _measure(self, seen: Sequence[Progress]) -> None:
        stages = Counter(it.stage for it in seen)
        for stage in Stage:
            self._around.meter.set(Metric.NODES_DRAINING, stages[stage], stage=stage.value)
        self._around.meter.set(Metric.DRAIN_PODS, sum(it.to_go for it in seen))


@dataclass(frozen=True, slots=True)
class Decided:
    """What one look came to."""

    drains: tuple[Progress, ...]
    departures: tuple[Departure, ...]
    requests: tuple[Request, ...]


def _decide(context: Context, plan: Plan | None, *, may_begin: bool) -> Decided:
    settings = context.settings
    enabled = node_maintenance.NAME in settings.enabled_strategies
    drains, departures = maintenance.look(context) if enabled else (), leaving.look(context)
    drained, lost = {it.drain.name for it in drains}, {it.loss.name for it in departures}
    found = (
        # First: of one node the first request goes, and a drain is patient.
        *leaving.requests(departures, context, plan, may_begin=may_begin),
        *marks.requests(context, drained=drained, lost=lost),
        *maintenance.requests(drains, context, plan, may_begin=may_begin),
        *temporary_budget.requests(context.state, settings, lost),
    )
    return Decided(drains, departures, tuple(it for it in found if may_begin or not _begins(it)))


def _may_begin(settings: Settings, stopped: str) -> bool:
    return not stopped and settings.mode is not Mode.OBSERVE


def _begins(request: Request) -> bool:
    """A cordon, a budget or the end of a pod. What takes something back, or tells of progress, is none of these."""
    if request.resource is NODES:
        return bool(request.body.get("spec", {}).get("unschedulable"))
    made = request.verb is Verb.CREATE
    return made or (request.verb is Verb.DELETE and request.resource is PODS)


def _looks(decided: Decided, context: Context) -> Iterator[datetime]:
    """When to look again though nothing happens."""
    if decided.drains or decided.departures:
        yield context.now + LOOK_EVERY
    for at in (interruption.next_change(context), leaving.next_deadline(decided.departures, context)):
        if at is not None:
            yield at


def _is_urgent(request: Request) -> bool:
    """A cordon, its end and budgets do not wait for the pause between two words about progress. A budget that is
    corrected does: somebody else may set it back each time.
    """
    corrects = request.resource is PDBS and request.verb is Verb.PATCH
    return not (corrects and "spec" in request.body) and (request.resource is not NODES or "spec" in request.body)

"""Tells users what happened to their objects, as Kubernetes Events (events.k8s.io/v1).

`record` only puts a value into a bounded queue and never waits: an Event is advice, and no decision may
depend on its delivery. One thread sends; what to send is decided in `cluster.eventlog`. Everything that
is not sent is counted.
"""

import threading
from collections import deque
from typing import Final, Protocol

from cluster import errors, eventlog
from cluster.client import Client
from cluster.eventlog import Drop, EventLog, Limits, Said, Send, Subject, Topic
from cluster.pace import Pace
from cluster.resources import EVENTS
from cluster.runtime import Runtime
from telemetry.catalogue import Log
from telemetry.metrics import Metric

QUEUE: Final = 1000
"""Events waiting to be sent; at the default rate a minute and a half of them."""
TRIES: Final = 4
"""For one event, as long as the server may recover."""
RETRY: Final = Pace(base=0.5, top=10.0)
REQUEST_SECONDS: Final = 5.0


class EventApi(Protocol):
    """The two calls that are needed. Each raises ApiError."""

    def create(self, body: dict[str, object], namespace: str) -> None: ...
    def patch(self, name: str, body: dict[str, object], namespace: str) -> None: ...


class ClusterEvents:
    """EventApi on the real thing."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, body: dict[str, object], namespace: str) -> None:
        """A new event."""
        self._client.create(EVENTS, body, namespace=namespace, timeout=REQUEST_SECONDS)

    def patch(self, name: str, body: dict[str, object], namespace: str) -> None:
        """A series grew."""
        self._client.merge_patch(EVENTS, name, body, namespace=namespace, timeout=REQUEST_SECONDS)


class Recorder:
    """One per process."""

    def __init__(
        self,
        api: EventApi,
        *,
        controller: str,
        instance: str,
        runtime: Runtime,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        queue: int = QUEUE,
    ) -> None:
        """`controller` is a qualified name such as spotshift.dev/descheduler, `instance` names this process."""
        self._api = api
        self._controller = controller
        self._instance = instance
        self._clock = runtime.clock
        self._wall = runtime.wall
        self._rng = runtime.rng
        self._log = runtime.log
        self._meter = runtime.meter
        self._events = EventLog(limits, prefix=f"{runtime.rng.getrandbits(40):010x}")
        self._queue: deque[Said] = deque()
        self._size = queue
        self._changed = threading.Condition()
        self._drops: dict[Drop, int] = dict.fromkeys(Drop, 0)
        self._end: float | None = None
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def record(self, subject: Subject, topic: Topic, note: str, *, related: Subject | None = None) -> bool:
        """Say something about an object. Returns at once; False if the queue is full or the recorder stopped."""
        said = Said(subject, topic, eventlog.cut(note), self._wall(), related)
        with self._changed:
            stopped = self._end is not None
            if not stopped and len(self._queue) < self._size:
                self._queue.append(said)
                self._changed.notify()
                return True
        self._drop(Drop.STOPPED if stopped else Drop.QUEUE_FULL)
        return False

    def stop(self, timeout: float) -> bool:
        """Send what is waiting, for at most `timeout` seconds; False if something was left."""
        with self._changed:
            self._end = self._clock() + timeout
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        with self._changed:
            left = len(self._queue)
            self._queue.clear()
        self._drop(Drop.STOPPED, left)
        return left == 0 and not self._thread.is_alive()

    def dropped(self) -> dict[Drop, int]:
        """How many were not sent, by cause."""
        with self._changed:
            return dict(self._drops)

    def _run(self) -> None:
        while (said := self._next()) is not None or self._end is None:
            try:
                self._handle(said)
            except Exception as error:  # noqa: BLE001 - outermost place: one bad event must not silence all others
                self._log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
                self._meter.inc(Metric.INTERNAL_ERRORS)
        for send in self._events.due(self._clock(), final=True):
            self._deliver(send)

    def _handle(self, said: Said | None) -> None:
        if said is not None:
            decision = self._events.offer(said, self._clock())
            if isinstance(decision, Drop):
                self._drop(decision)
            elif decision is not None:
                self._deliver(decision)
        for send in self._events.due(self._clock()):
            self._deliver(send)

    def _next(self) -> Said | None:
        """The next event, or None when a series is due or the end has come."""
        with self._changed:
            while not self._queue and self._end is None:
                due = self._events.next_due()
                wait = None if due is None else due - self._clock()
                if wait is not None and wait <= 0:
                    return None
                self._changed.wait(wait)
            if self._end is not None and self._clock() >= self._end:
                return None
            return self._queue.popleft() if self._queue else None

    def _deliver(self, send: Send) -> None:
        for attempt in range(TRIES):
            if self._expired():
                self._drop(Drop.STOPPED)
                return
            try:
                self._request(send)
            except errors.ApiError as error:
                if not error.retryable or attempt == TRIES - 1:
                    self._events.forget(send.said)
                    self._drop(Drop.UNDELIVERED if error.retryable else Drop.REFUSED)
                    return
                self._pause(max(RETRY.delay(attempt, self._rng), min(error.retry_after or 0.0, RETRY.top)))
            else:
                self._meter.inc(Metric.EVENTS_SENT)
                return

    def _request(self, send: Send) -> None:
        namespace = eventlog.namespace_of(send.said.subject)
        body = eventlog.render(send, controller=self._controller, instance=self._instance)
        try:
            if send.count > 1:
                self._api.patch(send.name, eventlog.series(send), namespace)
            else:
                self._api.create(body, namespace)
        except errors.AlreadyExists:
            return  # an answer to an earlier try was lost
        except errors.NotFound:
            if send.count == 1:
                raise
            self._api.create(body, namespace)  # it outlived its time to live of one hour

    def _expired(self) -> bool:
        return self._end is not None and self._clock() >= self._end

    def _pause(self, seconds: float) -> None:
        """Back off, but not beyond the end."""
        until = self._clock() + seconds
        with self._changed:
            while (now := self._clock()) < (until if self._end is None else min(until, self._end)):
                self._changed.wait((until if self._end is None else min(until, self._end)) - now)

    def _drop(self, cause: Drop, count: int = 1) -> None:
        if count == 0:
            return
        with self._changed:
            first = self._drops[cause] == 0
            self._drops[cause] += count
        self._meter.inc(Metric.EVENTS_DROPPED, count, cause=cause)
        if first:  # once per cause: the counter tells the rest
            self._log.emit(Log.EVENTS_DROPPED, dropped=count, cause=cause)

"""Keeps a store equal to a collection of the apiserver: list once, watch for ever, list again when that
is the way.

One thread asks, decodes, updates the store and hands every real change to the handler, in order; the
handler should only put it into a queue. What to do when a request ends is decided in `cluster.recovery`;
which changes are real is decided in `cluster.store`. A list and the watch after it are separate requests:
the watch goes on from the version of the list, so nothing falls between them.

An object that cannot be decoded is left out, counted, and told once with its name: it is not in the store, as if
it had been deleted, and everything else goes on. Only an event that does not even tell its version costs a new list.
"""

import gc
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from cluster import calls, errors, recovery
from cluster.recovery import Cause, Course, Outcome, Phase, Tuning
from cluster.runtime import Runtime
from cluster.source import Source, Stream
from cluster.store import Delta, Kind, Object, Store, key_of, number
from telemetry.catalogue import Log
from telemetry.metrics import Metric

T = TypeVar("T", bound=Object)
Handler = Callable[[Delta[T]], None]

INITIAL_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends a streaming list."""
STOP_SECONDS: Final = 2.0
"""How long `stop` waits for the thread; a request that has not been answered yet cannot be interrupted."""


class Reflector(Generic[T]):
    """One collection. `store` may be read by anybody; what the handler gets is exactly what changes in it."""

    def __init__(
        self,
        source: Source[T],
        handler: Handler[T],
        *,
        runtime: Runtime,
        tuning: Tuning = Tuning(),  # noqa: B008 - a frozen value
        streaming: bool = True,
        freeze: bool = False,
        on_sync: Callable[[], None] = lambda: None,
    ) -> None:
        """`freeze` takes the objects of each list out of the garbage collector's sight.

        A full collection over ten thousand pods stops the process for about 0.1 s, and after a freeze for
        nothing. `on_sync` is called once, as soon as `synced` is true: an empty first list has no change to tell.
        """
        self.store: Store[T] = Store()
        self._source = source
        self._handler = handler
        self._clock = runtime.clock
        self._rng = runtime.rng
        self._log = runtime.log.bind(resource=source.name)
        self._meter = runtime.meter
        self._tuning = tuning
        self._freeze = freeze
        self._on_sync = on_sync
        self._course = Course(streaming=streaming)
        self._version = ""
        self._progressed = False
        self._opened = False
        self._current_at = runtime.clock()
        self._denied: str | None = None
        self._left_out: set[tuple[str, str, str]] = set()
        """Namespace, name and UID of what is left out now, so that it is told once."""
        self._synced = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._run, name=f"reflector-{source.name}", daemon=True)

    # ---- for everybody

    def start(self) -> None:
        """Begin to reflect."""
        self._thread.start()

    def stop(self, timeout: float = STOP_SECONDS) -> bool:
        """End the watch now; False if the thread did not end in time, which leaves it to end by itself."""
        self._stop.set()
        with self._lock:
            if self._stream is not None:
                self._stream.close()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def wait_synced(self, timeout: float) -> bool:
        """Wait until the first complete list is in the store and was handed on."""
        return self._synced.wait(timeout)

    @property
    def synced(self) -> bool:
        """Whether the store has ever been complete."""
        return self._synced.is_set()

    def age(self) -> float:
        """Seconds since the server last proved the store to be current; a bookmark comes about every minute."""
        return self._clock() - self._current_at

    def denied(self) -> str | None:
        """What the server does not let us see. A short denial does not count, once the store was complete."""
        return self._denied if self._course.denied or not self.synced else None

    def problem(self) -> str | None:
        """For readiness: what keeps this from being usable."""
        if self._thread.ident is not None and not self._thread.is_alive() and not self._stop.is_set():
            return f"{self._source.name}: the watch has ended"
        return self.denied() or (None if self.synced else f"{self._source.name} not synced yet")

    # ---- the thread

    def _run(self) -> None:
        while not self._stop.is_set():
            phase = self._course.phase
            outcome = self._attempt(phase)
            if self._stop.is_set():
                return
            step = recovery.after(self._course, outcome, tuning=self._tuning, rng=self._rng)
            self._tell(outcome, step)
            self._course = step.course
            self._stop.wait(step.delay)

    def _attempt(self, phase: Phase) -> Outcome:
        began = self._clock()
        self._progressed = False
        self._opened = False
        error: errors.ApiError | None = None
        try:
            self._perform(phase)
        except errors.ApiError as problem:
            error = problem
        except Exception as problem:  # noqa: BLE001 - a defect in decoding must not end the watch for good
            self._log.emit(Log.INTERNAL_ERROR, error=problem, traceback=problem)
            self._meter.inc(Metric.INTERNAL_ERRORS)
            error = errors.Malformed(f"{type(problem).__name__}: {problem}")
        answer = "ok" if error is None else calls.answer_of(error)
        self._meter.inc(Metric.REQUESTS, resource=self._source.name, verb=phase, answer=answer)
        return Outcome(phase, self._clock() - began, self._progressed, error, self._opened)

    def _perform(self, phase: Phase) -> None:
        if phase is Phase.WATCH:
            self._watch()
            return
        began = self._clock()
        items, version = self._pages() if phase is Phase.PAGES else self._streamed()
        if not self._stop.is_set():
            self._listed(items, version, began)

    # ---- listing

    def _pages(self) -> tuple[list[T], str]:
        items: list[T] = []
        left_out: list[errors.Unreadable] = []
        version = ""
        for page in self._source.pages():
            if page.first:
                items.clear()
                left_out.clear()
                version = page.resource_version
            items.extend(page.items)
            left_out.extend(page.left_out)
            self._progressed = True
            if self._stop.is_set():
                break
        self._leave_out_only(left_out)
        return items, version

    def _streamed(self) -> tuple[list[T], str]:
        """The whole collection as events; the marked bookmark says where it is complete."""
        found: dict[tuple[str, str], T] = {}
        left_out: dict[tuple[str, str, str], errors.Unreadable] = {}
        end = self._clock() + self._tuning.list_seconds
        silence = self._tuning.list_silence_seconds
        with self._open("", initial=True, seconds=self._tuning.list_seconds, silence=silence) as stream:
            for kind, item in self._events(stream):
                if isinstance(item, errors.Unreadable):
                    found.pop((item.namespace, item.name), None)
                    left_out[_identity(item)] = item
                elif kind == "BOOKMARK" and item.metadata.annotations.get(INITIAL_END) == "true":
                    self._leave_out_only(left_out.values())
                    return list(found.values()), item.metadata.resource_version
                elif kind == "DELETED":
                    found.pop(key_of(item), None)
                elif kind != "BOOKMARK":
                    found[key_of(item)] = item
                if self._clock() >= end:
                    break
        raise errors.Unreachable("the streaming list did not come to its end", timed_out=True)

    def _listed(self, items: list[T], version: str, began: float) -> None:
        deltas = self.store.replace(items)
        self._version = version
        self._current_at = began
        self._denied = None
        self._hand_on(deltas)
        if self._freeze:
            gc.freeze()
        cause = self._course.listing or Cause.STUCK
        seconds = round(self._clock() - began, 3)
        self._meter.inc(Metric.REFLECTOR_RELISTS, resource=self._source.name, cause=cause)
        if self._synced.is_set():
            self._log.emit(
                Log.REFLECTOR_RELISTED,
                cause=cause,
                objects=len(items),
                count=len(deltas),
                seconds=seconds,
                version=version,
            )
            return
        self._log.emit(Log.REFLECTOR_SYNCED, objects=len(items), seconds=seconds, version=version)
        self._meter.set(Metric.REFLECTOR_SYNCED, 1, resource=self._source.name)
        self._synced.set()
        self._on_sync()

    # ---- watching

    def _watch(self) -> None:
        spread = self._rng.uniform(1 - self._tuning.jitter, 1 + self._tuning.jitter)
        seconds = max(1, round(self._tuning.watch_seconds * spread))
        silence = min(self._tuning.silence_seconds, seconds + 15.0)
        with self._open(self._version, initial=False, seconds=seconds, silence=silence) as stream:
            for kind, item in self._events(stream):
                self._current_at = self._clock()
                if isinstance(item, errors.Unreadable):
                    self._pass_over(item)
                else:
                    self._apply(kind, item)

    def _pass_over(self, item: errors.Unreadable) -> None:
        """Go on after an object that cannot be read; without its version only a new list leads past it."""
        if not item.version:
            raise item
        here, known = number(item.version), number(self._version)
        if here is not None and known is not None and here < known:
            self._meter.inc(Metric.REFLECTOR_STALE, resource=self._source.name)
            return
        if item.event == "DELETED":
            self._left_out.discard(_identity(item))
        else:
            self._leave_out(item)
        self._hand_on(self.store.discard((item.namespace, item.name)))
        self._version = item.version

    def _leave_out_only(self, items: Collection[errors.Unreadable]) -> None:
        """A complete list was read: these are left out, and nothing else is any more."""
        for item in items:
            self._leave_out(item)
        self._left_out = {_identity(item) for item in items}

    def _leave_out(self, item: errors.Unreadable) -> None:
        self._meter.inc(Metric.OBJECTS_UNREADABLE, resource=self._source.name)
        if _identity(item) not in self._left_out:
            self._left_out.add(_identity(item))
            self._log.emit(Log.OBJECT_UNREADABLE, namespace=item.namespace, name=item.name, uid=item.uid)

    def _apply(self, kind: str, item: T) -> None:
        version = item.metadata.resource_version
        here, known = number(version), number(self._version)
        if here is not None and known is not None and here < known:
            # A stream is in order, so this was sent before. Equal is not: one expiry deletes many at one
            # version.
            self._meter.inc(Metric.REFLECTOR_STALE, resource=self._source.name)
            return
        if kind != "BOOKMARK":
            deltas = self.store.remove(item) if kind == "DELETED" else self.store.upsert(item)
            if not deltas:
                self._meter.inc(Metric.REFLECTOR_STALE, resource=self._source.name)
            self._hand_on(deltas)
        self._version = version

    def _events(self, stream: Stream) -> Iterator[tuple[str, T | errors.Unreadable]]:
        for line in stream:
            kind, item = self._source.decode(line)
            if isinstance(item, errors.ApiError) and not isinstance(item, errors.Unreadable):
                raise item
            self._progressed = True
            yield kind, item

    def _hand_on(self, deltas: tuple[Delta[T], ...]) -> None:
        for delta in deltas:
            try:
                self._handler(delta)
            except Exception as error:  # noqa: BLE001 - whatever the receiver does, the watch goes on
                self._log.emit(Log.HANDLER_FAILED, error=error, traceback=error)
                self._meter.inc(Metric.HANDLER_ERRORS, resource=self._source.name)
        for kind in Kind:
            count = sum(delta.kind is kind for delta in deltas)
            if count:
                self._meter.inc(Metric.REFLECTOR_DELTAS, count, resource=self._source.name, delta=kind)
        if deltas:
            self._meter.set(Metric.REFLECTOR_OBJECTS, len(self.store), resource=self._source.name)

    @contextmanager
    def _open(self, version: str, *, initial: bool, seconds: int, silence: float) -> Iterator[Stream]:
        """A stream that `stop` can close from outside."""
        opening = self._source.watch(version, initial=initial, timeout_seconds=seconds, read_timeout=silence)
        with opening as stream:
            with self._lock:
                self._stream = stream
            self._opened = True
            self._denied = None
            if self._stop.is_set():  # it came while we were connecting and found nothing to close
                stream.close()
            try:
                yield stream
            finally:
                with self._lock:
                    self._stream = None

    def _tell(self, outcome: Outcome, step: recovery.Next) -> None:
        if self._course.phase is Phase.STREAM and step.course.phase is Phase.PAGES:
            self._log.emit(Log.REFLECTOR_PAGED, cause=calls.answer_of(outcome.error) if outcome.error else None)
        error = outcome.error
        if error is None or isinstance(error, errors.Gone):
            return
        delay = round(step.delay, 3)
        if isinstance(error, errors.Unauthorized | errors.Forbidden):
            self._log.emit(Log.REFLECTOR_DENIED, error=error, code=error.status, delaySeconds=delay)
            self._denied = f"{self._source.name}: {error}"  # after the line: whoever reads it finds that in the log
            return
        self._log.emit(Log.REFLECTOR_RETRYING, error=error, attempt=step.course.failures, delaySeconds=delay)


def _identity(item: errors.Unreadable) -> tuple[str, str, str]:
    return item.namespace, item.name, item.uid

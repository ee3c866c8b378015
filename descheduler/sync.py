"""Keeps a `ClusterState` up to date from watches: reflectors, one queue, and one thread that owns the state.

Whoever wants to plan does so in a turn, on that thread: the state stands still meanwhile, without a lock, and what
happens in the cluster waits in the queue. Nothing here decides about pods.
"""

import gc
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cluster import objects
from cluster.absent import MayBeAbsent, is_absent
from cluster.client import Client
from cluster.recovery import Tuning
from cluster.reflector import Reflector
from cluster.runtime import Runtime
from cluster.source import ClusterSource, Source
from cluster.store import Delta, Kind
from descheduler import differing, kinds
from descheduler.pace import COALESCE_SECONDS, Pace
from descheduler.state import ClusterState
from policy.settings import Settings
from telemetry.catalogue import Log
from telemetry.metrics import Metric

AFTER_ERROR_SECONDS: Final = 5.0
"""Until a turn that failed is tried again although nothing has changed."""
URGENT: Final = (objects.Node, objects.PodMigration)
"""Interruptions and maintenance are said on nodes; what we were asked to do ourselves must not wait either."""

PAGE_SIZE: Final = 10_000
"""Objects in one answer to the first list, which is read as it arrives. Two or three times as fast as a list that is
streamed as events, which the server writes one by one; and far from the minute after which it ends a request.
"""

Sources = Sequence[tuple[kinds.Watched, Source[Any]]]
Turn = Callable[[ClusterState], float | None]
"""Looks at the state, and says after how many seconds it wants to look again if nothing changes; None: not."""


@dataclass(frozen=True, slots=True)
class Woken:
    """Somebody asks for a turn, or for the thread to look whether it should end."""

    turn: bool


Change = Delta[Any] | Settings | Woken


def sources(client: Client) -> Sources:
    """Everything the state is made of."""
    return tuple((kind, _source(client, kind)) for kind in kinds.ALL)


def _source(client: Client, kind: kinds.Watched) -> Source[Any]:
    source: ClusterSource[Any] = ClusterSource(client, kind.resource, kind.type, page_size=PAGE_SIZE)
    return source if kind.installed else MayBeAbsent(source)


class Live:
    """`state` belongs to the thread; others get at it only in a turn."""

    def __init__(
        self,
        sources: Sources,
        settings: Settings,
        turn: Turn,
        *,
        runtime: Runtime,
        tuning: Tuning = Tuning(),  # noqa: B008 - a frozen value
    ) -> None:
        self._turn = turn
        self._runtime = runtime
        self._settings = settings
        self._state = ClusterState(settings)
        self._changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._sources = sources
        self._reflectors: dict[str, Reflector[Any]] = {
            kind.name: Reflector(
                source,
                self._changes.put,
                runtime=runtime,
                tuning=tuning,
                streaming=False,
                freeze=kind is kinds.PODS,
            )
            for kind, source in sources
        }
        self._pace = Pace()
        self._stop = threading.Event()
        self._synced = threading.Event()
        self._thread = threading.Thread(target=self._run, name="state", daemon=True)

    # ---- for everybody

    def start(self) -> None:
        """Begin to watch."""
        for reflector in self._reflectors.values():
            reflector.start()
        self._thread.start()

    def stop(self) -> None:
        """End the watches and the thread; a turn that has begun is finished."""
        self._stop.set()
        self._changes.put(Woken(turn=False))
        for reflector in self._reflectors.values():
            reflector.stop(0)
        if self._thread.ident is not None:
            self._thread.join()

    def wake(self) -> None:
        """Ask for a turn though nothing may have changed."""
        self._changes.put(Woken(turn=True))

    def configure(self, settings: Settings) -> None:
        """Other settings from now on."""
        self._changes.put(settings)

    @property
    def synced(self) -> bool:
        """Whether the state has ever been complete."""
        return self._synced.is_set()

    def wait_synced(self, timeout: float) -> bool:
        """Wait until the state is complete."""
        return self._synced.wait(timeout)

    def absent(self) -> tuple[str, ...]:
        """Kinds that the server does not have; planning goes on without them."""
        return tuple(kind.name for kind, source in self._sources if is_absent(source))

    def problem(self) -> str | None:
        """For readiness: what keeps the state from being usable."""
        if self._thread.ident is not None and not self._thread.is_alive() and not self._stop.is_set():
            return "the state is not kept any more"
        waited = (self._problem(kind, source) for kind, source in self._sources)
        return next(filter(None, waited), None if self.synced else "the state is not complete yet")

    def _problem(self, kind: kinds.Watched, source: Source[Any]) -> str | None:
        return None if is_absent(source) else self._reflectors[kind.name].problem()

    # ---- the thread

    def _run(self) -> None:
        while not self._stop.is_set():
            first = self._next()
            # Asked before the rest is taken: what a first list brought is then among it.
            complete = self.synced or all(self._problem(*source) is None for source in self._sources)
            self._drain(first)
            if complete and not self.synced:
                gc.freeze()  # what is known by now stays; a full collection would hold up turns for it
                self._pace.want(urgent=True)
                self._synced.set()
            if self.synced and not self._stop.is_set() and self._pace.due(self._runtime.clock()):
                self._take_turn()

    def _next(self) -> Change | None:
        timeout = self._pace.wait(self._runtime.clock()) if self.synced else COALESCE_SECONDS
        try:
            return self._changes.get(timeout=timeout)
        except queue.Empty:
            return None

    def _drain(self, first: Change | None) -> None:
        """Also if there was nothing to wait for: a list may have come since then that makes the state complete."""
        if first is not None:
            self._take(first)
        for _ in range(self._changes.qsize()):
            self._take(self._changes.get())

    def _take(self, change: Change) -> None:
        match change:
            case Delta():
                self._apply(change)
            case Woken(turn=asked):
                if asked:
                    self._pace.want(urgent=True)
            case Settings():
                self._configure(change)

    def _apply(self, delta: Delta[Any]) -> None:
        try:
            self._state.apply(delta.old, delta.new, delta.key)
        except Exception as error:  # noqa: BLE001 - one object that cannot be counted must not stop the rest
            self._tell(error)
        if matters(delta):
            self._pace.want(urgent=isinstance(delta.object, URGENT))

    def _configure(self, settings: Settings) -> None:
        """The indexes of the state depend on some settings; with others of those they are made anew."""
        same = _shape(settings) == _shape(self._settings)
        self._settings = settings
        self._pace.want(urgent=True)
        if same:
            return
        self._state = ClusterState(settings)
        for reflector in self._reflectors.values():
            for key, item in reflector.store.snapshot().items():
                self._apply(Delta(Kind.ADDED, key, None, item))

    def _take_turn(self) -> None:
        began = self._runtime.clock()
        try:
            again = self._turn(self._state)
        except Exception as error:  # noqa: BLE001 - outermost place of the thread
            self._tell(error)
            took = round(self._runtime.clock() - began, 4)
            self._runtime.log.emit(Log.PASS_FAILED, seconds=took, error=error)
            self._runtime.meter.inc(Metric.PASSES_FAILED)
            again = AFTER_ERROR_SECONDS
        self._pace.took(began, self._runtime.clock(), again)

    def _tell(self, error: Exception) -> None:
        self._runtime.log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
        self._runtime.meter.inc(Metric.INTERNAL_ERRORS)


def _shape(settings: Settings) -> tuple[object, ...]:
    """What the state reads objects by: which nodes are spot, which carry a signal, and which keys are ours."""
    return settings.capacity, settings.signals, settings.label_prefix


def matters(delta: Delta[Any]) -> bool:
    """Whether a plan may come out otherwise."""
    return delta.old is None or delta.new is None or differing.differ(delta.old, delta.new)

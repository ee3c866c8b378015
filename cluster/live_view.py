"""Keeps a view of the cluster up to date from watches: reflectors, and one thread that makes the next view.

Whoever answers requests reads `view`, one attribute that always holds a whole, immutable value. What is in it, the
`Parts` that are handed in decide; nothing here decides about pods.
"""

import gc
import queue
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from cluster.absent import MayBeAbsent, is_absent
from cluster.recovery import Tuning
from cluster.reflector import Reflector
from cluster.resources import Resource
from cluster.runtime import Runtime
from cluster.source import Source
from cluster.store import Delta, Kind
from policy.settings import Settings
from telemetry.catalogue import Log
from telemetry.metrics import Metric

COALESCE_SECONDS: Final = 0.05
"""Between two views. The first change after a rest is in the next view at once; a roll-out brings hundreds."""
HURRY_SECONDS: Final = 0.005
"""The same after an object that is waited for: the first pods of a workload come within some 20 ms of it."""
NOTHING_ASIDE: Final[Mapping[Resource, Callable[[Delta[Any]], None]]] = {}

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
Sources = Sequence[tuple[Resource, Source[Any]]]


class Parts(Protocol[V_co]):
    """What the next view is made of. Owned by one thread."""

    def apply(self, resource: Resource, delta: Delta[Any]) -> None:
        """One change of one object."""

    def put(self, resource: Resource, seen: Any) -> None:
        """An object as it is now."""

    def forget(self, resource: Resource) -> None:
        """The resource itself is gone, and with it all its objects."""

    def view(self) -> V_co:
        """The view of now; the very same as before if nothing in it changed."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The resource itself does not exist in this cluster."""

    resource: Resource


@dataclass(frozen=True, slots=True)
class Back:
    """The resource exists again, perhaps with all that it had: absence may have been an error of a moment."""

    resource: Resource


Change = tuple[Resource, Delta[Any]] | Gone | Back | Settings | None


class LiveView(Generic[V]):
    """`view` is the cluster as of now; before everything is synced it is the view of nothing.

    A part of the cluster is worse than nothing: with a namespace but without its workloads, a pod would get what its
    workload opted out of.
    """

    def __init__(
        self,
        sources: Sources,
        settings: Settings,
        parts: Callable[[Settings], Parts[V]],
        *,
        runtime: Runtime,
        tuning: Tuning = Tuning(),  # noqa: B008 - a frozen value
        refresh_seconds: float | None = None,
        hurry: Collection[Resource] = (),
        aside: Mapping[Resource, Callable[[Delta[Any]], None]] = NOTHING_ASIDE,
    ) -> None:
        """`refresh_seconds` is for views in which something depends on the time: one is made at least that often.

        A new object of a resource in `hurry` is in the view almost at once. What changes of a resource in `aside` is
        no part of the view and goes where it says, on the thread of its watch.
        """
        self._runtime = runtime
        self._settings = settings
        self._make = parts
        self._parts = parts(settings)
        self._refresh_seconds = refresh_seconds
        self._changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._reflectors: dict[Resource, Reflector[Any]] = {}
        self._sources = sources
        for resource, source in sources:
            if isinstance(source, MayBeAbsent):
                source.on_absent = partial(self._changes.put, Gone(resource))
                source.on_present = partial(self._changes.put, Back(resource))
            handler = aside.get(resource) or partial(self._changed, resource)
            self._reflectors[resource] = Reflector(source, handler, runtime=runtime, tuning=tuning)
        self._waited_for = frozenset(hurry)
        self._aside = frozenset(aside)
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._complete = False
        self._thread = threading.Thread(target=self._run, name="view", daemon=True)
        self.view: V = self._parts.view()

    def start(self) -> None:
        """Begin to watch."""
        for reflector in self._reflectors.values():
            reflector.start()
        self._thread.start()

    def stop(self) -> None:
        """End the watches; the view stays as it is. What is still waiting for an answer ends by itself."""
        self._stop.set()
        self._hurry.set()
        self._changes.put(None)
        for reflector in self._reflectors.values():
            reflector.stop(0)
        if self._thread.ident is not None:
            self._thread.join()

    def configure(self, settings: Settings) -> None:
        """Other settings from now on; safe from any thread."""
        self._changes.put(settings)

    def problem(self) -> str | None:
        """For readiness: what the view still lacks."""
        waited = (self._problem(resource, source) for resource, source in self._sources)
        return next(filter(None, waited), None if self._complete else "the view is not built yet")

    def _problem(self, resource: Resource, source: Source[Any]) -> str | None:
        return None if is_absent(source) else self._reflectors[resource].problem()

    def _changed(self, resource: Resource, delta: Delta[Any]) -> None:
        self._changes.put((resource, delta))
        if delta.kind is Kind.ADDED and resource in self._waited_for:
            self._hurry.set()

    # ---- the thread

    def _run(self) -> None:
        built = self._runtime.clock() - COALESCE_SECONDS
        while not self._stop.is_set():
            first = self._next()
            self._rest(built)
            built = self._runtime.clock()
            # Asked before the rest is taken: what a first list brought is then among it.
            synced = all(self._problem(resource, source) is None for resource, source in self._sources)
            try:
                self._build(first, publish=synced or self._complete)
                if synced and not self._complete:
                    gc.freeze()  # what is known by now stays; a full collection would hold up requests for it
                    self._complete = True
            except Exception as error:  # noqa: BLE001 - outermost place of the thread; stale is better than none
                self._runtime.log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
                self._runtime.meter.inc(Metric.INTERNAL_ERRORS)
                self._changes.put(self._settings)  # which makes everything anew from the stores

    def _rest(self, built: float) -> None:
        """Let changes come together, unless one of them has to be seen at once."""
        self._stop.wait(max(0.0, built + HURRY_SECONDS - self._runtime.clock()))
        self._hurry.wait(max(0.0, built + COALESCE_SECONDS - self._runtime.clock()))
        self._hurry.clear()

    def _next(self) -> Change:
        try:
            return self._changes.get(timeout=self._refresh_seconds if self._complete else COALESCE_SECONDS)
        except queue.Empty:
            return None

    def _build(self, first: Change, *, publish: bool) -> None:
        self._take(first)
        for _ in range(self._changes.qsize()):
            self._take(self._changes.get())
        if publish:
            self.view = self._parts.view()

    def _take(self, change: Change) -> None:
        match change:
            case None:
                return
            case Settings():
                self._settings = change
                self._parts = self._make(change)
                for resource, source in self._sources:
                    # The store of a resource that is gone still holds what was there before.
                    if not is_absent(source):
                        self._put_all(resource)
            case Gone(resource):
                self._parts.forget(resource)
            case Back(resource):
                self._put_all(resource)
            case (resource, delta):
                self._parts.apply(resource, delta)

    def _put_all(self, resource: Resource) -> None:
        """What the store holds by now; what changed in it since then is waiting to be taken."""
        if resource not in self._aside:
            for seen in self._reflectors[resource].store.snapshot().values():
                self._parts.put(resource, seen)

"""Follows the cluster by watches: one collection for who waits for an end, the whole state for who shows it live.

A watch that breaks is opened again by itself. One that is not permitted would be asked for again and again without a
word: whoever waits is told instead.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from cluster import errors
from cluster.client import Client
from cluster.reflector import Reflector
from cluster.resources import Resource
from cluster.runtime import Runtime
from cluster.source import ClusterSource
from cluster.store import Delta, Kind, Object, key_of
from console.door import Unusable
from descheduler import listing, sync
from descheduler.gathered import Gap
from descheduler.kinds import Watched
from descheduler.sync import Live, Turn
from policy.settings import Settings

T = TypeVar("T", bound=Object)
POLL_SECONDS: Final = 0.25
"""Between two looks at the clock while nothing happens."""


class Changes(Generic[T]):
    """What has happened to a collection and was not taken yet."""

    def __init__(self, source: ClusterSource[T], runtime: Runtime, expected: Sequence[T]) -> None:
        self._waiting: queue.SimpleQueue[Delta[T]] = queue.SimpleQueue()
        self._expected = expected
        self.reflector = Reflector(source, self._waiting.put, runtime=runtime, on_sync=self._listed)

    def take(self, seconds: float) -> Delta[T] | None:
        """The next one; None if there is none within this time. Raises Unusable if there will be none."""
        try:
            return self._waiting.get(timeout=seconds)
        except queue.Empty:
            denied = self.reflector.denied()
            if denied is not None:
                raise Unusable(f"this cannot be followed: {denied}") from None
            return None

    def _listed(self) -> None:
        for item in self._expected:
            found = self.reflector.store.get(key_of(item))
            if found is None or found.metadata.uid != item.metadata.uid:
                self._waiting.put(Delta(Kind.DELETED, key_of(item), item, None))


@contextmanager
def followed(
    client: Client,
    resource: Resource,
    type_: type[T],
    runtime: Runtime,
    *,
    namespace: str | None = None,
    name: str = "",
    expected: Sequence[T] = (),
) -> Iterator[Changes[T]]:
    """Changes of a collection, or of one object of it, what is there first included.

    `expected` was there a moment ago. No watch tells of what was deleted before it began, so what the first list no
    longer has is told as deleted then: whoever waits for it would wait for ever.
    """
    selector = f"metadata.name={name}" if name else None
    source: ClusterSource[T] = ClusterSource(client, resource, type_, namespace=namespace, field_selector=selector)
    changes = Changes(source, runtime, expected)
    changes.reflector.start()
    try:
        yield changes
    finally:
        changes.reflector.stop(0)


def each(changes: Changes[T], runtime: Runtime, seconds: float | None) -> Iterator[Delta[T] | None]:
    """Every change as it comes, and None now and then in between; ends when the time is up."""
    deadline = None if seconds is None else runtime.clock() + seconds
    while deadline is None or runtime.clock() < deadline:
        yield changes.take(POLL_SECONDS)


def permitted(client: Client) -> tuple[sync.Sources, tuple[Gap, ...]]:
    """Everything a state is made of, less what may not be seen. Raises Forbidden without nodes and pods."""
    gaps: list[Gap] = []
    for kind, _ in (every := sync.sources(client)):
        denied = _denied(client, kind)
        if denied is not None:
            if kind in listing.NEEDED:
                raise denied
            gaps.append(Gap(kind, f"not allowed to list them ({denied.message})"))
    hidden = {gap.kind for gap in gaps}
    return tuple(it for it in every if it[0] not in hidden), tuple(gaps)


def _denied(client: Client, kind: Watched) -> errors.Forbidden | None:
    try:
        next(client.pages(kind.resource, page_size=1), None)
    except errors.Forbidden as denied:
        return denied
    except errors.NotFound:
        if kind.installed:
            raise
    return None


@contextmanager
def state(sources: sync.Sources, settings: Settings, turn: Turn, runtime: Runtime) -> Iterator[Live]:
    """The whole state, kept by watches. `turn` gets it whenever something has changed, and must not keep it."""
    live = Live(sources, settings, turn, runtime=runtime)
    live.start()
    try:
        yield live
    finally:
        live.stop()

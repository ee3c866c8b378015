"""The objects of one resource as last seen, and the changes between two looks at them.

Every way of changing the store returns the deltas it really made, so that applying the deltas in order to
an empty mapping always gives the store. Knows nothing about requests. One writer (a reflector); any
number of readers.

On versions. A resourceVersion is a number that grows with every write to the same resource (Kubernetes
declares them comparable since 1.35, and they always were for resources kept in etcd). They are compared
only within one object, or within one stream, and only if both are numbers; where they are not, as some
aggregated servers do, every event counts as new. A fresh list is believed without comparison: after a
restore of etcd versions do go back.
"""

import enum
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Key = tuple[str, str]
"""Namespace and name; the namespace is empty for cluster-wide objects."""


class Meta(Protocol):
    """The part of metadata that the store needs."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...


class Object(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> Meta: ...


T = TypeVar("T", bound=Object)


class Kind(enum.StrEnum):
    """What happened to an object."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Delta(Generic[T]):
    """One change. Added has no `old`, deleted has no `new`; `old` is always what the store held.

    A name that was deleted and taken again (another UID) is two deltas: deleted, then added.
    """

    kind: Kind
    key: Key
    old: T | None
    new: T | None

    @property
    def object(self) -> T:
        """The new object, or the last known one of a deletion."""
        chosen = self.new if self.new is not None else self.old
        if chosen is None:
            raise ValueError("a delta without an object")
        return chosen


def number(version: str) -> int | None:
    """A resourceVersion as a number, or None if it cannot be ordered."""
    return int(version) if version.isdecimal() else None


def is_newer(version: str, than: str) -> bool:
    """Whether an event with this version comes after what is known of the same object."""
    mine, known = number(version), number(than)
    return version != than if mine is None or known is None else mine > known


def key_of(item: Object) -> Key:
    """Where an object belongs in the store."""
    return item.metadata.namespace, item.metadata.name


class Store(Generic[T]):
    """Readers get whole, immutable objects; a reader that needs several at one moment takes a snapshot."""

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> T | None:
        """One object, or None."""
        return self._objects.get(key)

    def snapshot(self) -> Mapping[Key, T]:
        """All objects as of one moment."""
        with self._lock:
            return dict(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    # ---- for the one writer

    def upsert(self, item: T) -> tuple[Delta[T], ...]:
        """An object was added or modified. Nothing if that is not newer than what is known."""
        key = key_of(item)
        with self._lock:
            old = self._objects.get(key)
            if old is not None and not is_newer(item.metadata.resource_version, old.metadata.resource_version):
                return ()
            self._objects[key] = item
        return tuple(_replaced(key, old, item))

    def remove(self, item: T) -> tuple[Delta[T], ...]:
        """An object was deleted. Nothing if it is not known, or if its name has a newer bearer."""
        key = key_of(item)
        with self._lock:
            old = self._objects.get(key)
            if old is None or not _ends(item, old):
                return ()
            del self._objects[key]
        return (Delta(Kind.DELETED, key, old, None),)

    def discard(self, key: Key) -> tuple[Delta[T], ...]:
        """An object can no longer be known. Nothing if it was not."""
        with self._lock:
            old = self._objects.pop(key, None)
        return () if old is None else (Delta(Kind.DELETED, key, old, None),)

    def replace(self, items: Iterable[T]) -> tuple[Delta[T], ...]:
        """A complete list is here: only what really differs becomes a delta, deletions first.

        Objects that did not change stay the very same, so `old` of a later delta is what readers were given.
        """
        stale = self._objects
        fresh = {key: _kept(stale.get(key), item) for key, item in ((key_of(item), item) for item in items)}
        with self._lock:
            self._objects = fresh
        return tuple(_differences(stale, fresh))


def _kept(known: T | None, item: T) -> T:
    if known is None or known.metadata.uid != item.metadata.uid:
        return item
    return known if known.metadata.resource_version == item.metadata.resource_version else item


def _ends(final: Object, known: Object) -> bool:
    """A deletion carries its own version. An older one is a replay, or meant an earlier bearer of the name."""
    final_version, known_version = final.metadata.resource_version, known.metadata.resource_version
    same = final.metadata.uid == known.metadata.uid and final_version == known_version
    return same or is_newer(final_version, known_version)


def _replaced(key: Key, old: T | None, new: T) -> Iterator[Delta[T]]:
    if old is not None and old.metadata.uid == new.metadata.uid:
        yield Delta(Kind.MODIFIED, key, old, new)
        return
    if old is not None:
        yield Delta(Kind.DELETED, key, old, None)
    yield Delta(Kind.ADDED, key, None, new)


def _differences(stale: Mapping[Key, T], fresh: Mapping[Key, T]) -> Iterator[Delta[T]]:
    for key, old in stale.items():
        if key not in fresh:
            yield Delta(Kind.DELETED, key, old, None)
    for key, new in fresh.items():
        known = stale.get(key)
        if known is not new:
            yield from _replaced(key, known, new)

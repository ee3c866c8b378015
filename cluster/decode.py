"""Bytes of the API into typed objects: single objects, list pages and watch events.

A decoder is made for one type and used for all three. Pods go through interning, everything else is decoded as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import msgspec

from cluster import errors
from cluster.cutting import Cutter
from cluster.intern import Interner
from cluster.meta import Part
from cluster.pod import Pod
from cluster.tolerant import Tolerant
from cluster.wire import PodWire

T = TypeVar("T")
W = TypeVar("W")

ERROR = "ERROR"
"""The type of an event that ends a watch; its object is a Status."""
_OF_OBJECTS = frozenset({"ADDED", "MODIFIED", "DELETED"})
"""Types of events that are about an object."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a collection."""

    items: tuple[T, ...]
    continue_token: str
    resource_version: str
    first: bool = False
    """The collection begins here; whatever was read before does not belong to it."""
    left_out: tuple[errors.Unreadable, ...] = ()
    """Items that could not be decoded: one bad object must not hide all others."""


class _ListMeta(Part, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True, gc=False):
    """The items stay bytes and are decoded one after the other: an item with an unexpected null then costs its
    neighbours nothing.
    """

    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] = ()


class _Event(msgspec.Struct, Generic[W], frozen=True, gc=False):
    type: str
    object: W


class _Named(msgspec.Struct, frozen=True):
    """As little as tells which object it is; whatever else is wrong with it does not matter here."""

    metadata: dict[str, Any] = {}


class _RawEvent(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw()


class _Failure(msgspec.Struct, frozen=True):
    type: str
    object: errors.Status


_LIST: Tolerant[_List] = Tolerant(_List)
_FAILURE: Tolerant[_Failure] = Tolerant(_Failure)
_NAMED: Tolerant[_Named] = Tolerant(_Named)
_RAW_EVENT: Tolerant[_RawEvent] = Tolerant(_RawEvent)


class Decoder(Generic[T]):
    """Decodes one type. Safe to use from many threads."""

    def __init__(self, wire: Any, finish: Callable[[Any], T] | None = None) -> None:
        """`wire` is what the bytes are decoded to, `finish` makes the object of it; without, they are the same."""
        self._finish = finish
        self._object: Tolerant[Any] = Tolerant(wire)
        self._event: Tolerant[_Event[Any]] = Tolerant(_Event[wire])

    def decode(self, body: bytes | msgspec.Raw) -> T:
        """One object."""
        found = self._object.decode(body)
        return self._finish(found) if self._finish else cast("T", found)

    def decode_list_page(self, body: bytes) -> Page[T]:
        """The items of a list answer and where to go on."""
        return self.decode_arriving_page((body,))

    def decode_arriving_page(self, pieces: Iterable[bytes]) -> Page[T]:
        """The same of an answer that comes in pieces; an item is decoded as soon as all of it is there."""
        items: list[T] = []
        left_out: list[errors.Unreadable] = []

        def take(item: bytes | msgspec.Raw) -> bool:
            try:
                items.append(self.decode(item))
            except errors.Malformed:
                if not _is_whole(item):
                    return False
                left_out.append(_unreadable(item))
            return True

        cutter = Cutter(take)
        for piece in pieces:
            cutter.feed(piece)
        found = _LIST.decode(cutter.rest)
        for item in found.items:
            take(item)
        return Page(tuple(items), found.metadata.continue_, found.metadata.resource_version, left_out=tuple(left_out))

    def decode_event(self, line: bytes) -> tuple[str, T | errors.ApiError]:
        """Type and object of one line of a watch; the object of an ERROR event is the error it stands for.

        The object of a BOOKMARK has a resourceVersion and annotations, and defaults for the rest. A line that
        cannot be read is an ERROR with a Malformed, and with an Unreadable if only its object cannot.
        """
        try:
            found = self._event.decode(line)
            if found.type != ERROR:
                return found.type, self._finish(found.object) if self._finish else found.object
        except errors.Malformed as malformed:  # a Status has a text where most objects have a status object
            return ERROR, _failure(line) or _unreadable_event(line) or malformed
        return ERROR, _failure(line) or errors.ServerError("the watch failed without a Status")


def _is_whole(item: bytes | msgspec.Raw) -> bool:
    """Whether these bytes are one JSON value, whatever it says."""
    try:
        msgspec.json.decode(item, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _failure(line: bytes) -> errors.ApiError | None:
    try:
        found = _FAILURE.decode(line)
    except errors.Malformed:
        return None
    return errors.from_status(found.object) if found.type == ERROR else None


def _unreadable(item: bytes | msgspec.Raw, event: str = "") -> errors.Unreadable:
    try:
        meta = _NAMED.decode(item).metadata
    except errors.Malformed:
        meta = {}
    namespace, name, uid, version = (
        value if isinstance(value := meta.get(key), str) else ""
        for key in ("namespace", "name", "uid", "resourceVersion")
    )
    return errors.Unreadable(namespace=namespace, name=name, uid=uid, version=version, event=event)


def _unreadable_event(line: bytes) -> errors.Unreadable | None:
    """What is known of the object of a whole event; None if the line itself is broken."""
    try:
        found = _RAW_EVENT.decode(line)
    except errors.Malformed:
        return None
    return _unreadable(found.object, found.type) if found.type in _OF_OBJECTS else None


_BUILDING = threading.Lock()
"""Of the whole process: while msgspec builds a decoder, half-made descriptions of the types in it are visible to
other builders, and a decoder made of those crashes the process (0.22.0, reproduced with eight threads)."""


class Decoders:
    """One decoder per type, made when first asked for; pods of all of them share their templates."""

    def __init__(self) -> None:
        with _BUILDING:
            self.interner = Interner()
            self._known: dict[Any, Decoder[Any]] = {Pod: Decoder(PodWire, self.interner.pod)}

    def of(self, type: type[T] | None) -> Decoder[T]:  # noqa: A002 - the word of the client's verbs
        """The decoder of a type; None stands for plain dicts."""
        wire = dict[str, Any] if type is None else type
        with _BUILDING:
            found = self._known.get(wire)
            if found is None:
                found = self._known[wire] = Decoder(wire)
        return found

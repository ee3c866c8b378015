"""A state from what `kubectl get ... -o json` printed: lists and single objects, one or several in a file.   Pure.

The text of a file is taken apart without decoding what nobody reads, which is what makes planning from a large dump
about as quick as reading it. Whatever is in it, the answer is a state or a `Refused` that names the place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cluster import errors
from cluster.decode import Decoders
from cluster.meta import Part
from descheduler import gathered, kinds
from descheduler.gathered import Gathered
from descheduler.kinds import Watched
from descheduler.state import ClusterState
from policy.quantities import InvalidQuantity
from policy.settings import Settings

BLANK: Final = b" \t\r\n"
BOM: Final = b"\xef\xbb\xbf"
_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_TRAILING: Final = "trailing characters"


class Refused(Exception):
    """A file that cannot be used; the text names the file, the place in it and what is wrong there."""


@dataclass(frozen=True, slots=True)
class File:
    """The bytes of a file and what to call it."""

    name: str
    data: bytes


class _Envelope(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An object or a list, not yet looked into."""

    kind: str = ""
    items: tuple[msgspec.Raw, ...] | None = None


class _Kind(Part, frozen=True):
    kind: str = ""


class _Name(Part, frozen=True):
    name: str = ""
    namespace: str = ""


class _Titled(Part, frozen=True):
    metadata: _Name = _Name()


_ENVELOPES: Final = msgspec.json.Decoder(_Envelope)
_KINDS: Final = msgspec.json.Decoder(_Kind)
_TITLES: Final = msgspec.json.Decoder(_Titled)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class _Item:
    """One object and where it stands."""

    place: str
    kind: str
    raw: msgspec.Raw


def read(files: Iterable[File], settings: Settings, *, none: Collection[str] = ()) -> Gathered:
    """The state that the files describe. An object that comes twice counts once, as it was last."""
    decoders = Decoders()
    by_kind = {kind.resource.kind: (kind, decoders.of(kind.type)) for kind in kinds.ALL}
    found: dict[Watched, dict[tuple[str, str], tuple[str, Any]]] = {kind: {} for kind in kinds.ALL}
    for file in files:
        for item in _items(file):
            watched = by_kind.get(item.kind)
            if watched is None:
                continue
            kind, decoder = watched
            try:
                made = decoder.decode(item.raw)
            except errors.Malformed as malformed:
                raise Refused(f"{item.place} ({_title(item)}): {_plain(str(malformed))}") from malformed
            found[kind][_key(made, item)] = item.place, made
    state = _state(found, settings)
    counts = {kind: len(objects) for kind, objects in found.items()}
    return Gathered(state, sum(counts.values()), tuple(gathered.gaps(state, counts, none)))


def _state(found: dict[Watched, dict[tuple[str, str], tuple[str, Any]]], settings: Settings) -> ClusterState:
    state = ClusterState(settings)
    for kind, objects in found.items():
        for key, (place, made) in objects.items():
            try:
                state.apply(None, made, key)
            except InvalidQuantity as invalid:
                raise Refused(f"{place} ({kind.resource.kind} {'/'.join(filter(None, key))}): {invalid}") from invalid
    return state


def _key(made: Any, item: _Item) -> tuple[str, str]:
    key: tuple[str, str] = made.metadata.key
    if not key[1]:
        raise Refused(f"{item.place} ({item.kind}): metadata.name: nothing is not accepted, use the object's name")
    return key


# ---- taking a file apart


def _items(file: File) -> Iterator[_Item]:
    for number, (envelope, document, several) in enumerate(_documents(file), 1):
        prefix = f"{file.name}: document {number}, " if several else f"{file.name}: "
        if envelope.items is None:
            yield _Item(f"{prefix}the object", envelope.kind, msgspec.Raw(document))
            continue
        implied = envelope.kind.removesuffix("List")
        for index, raw in enumerate(envelope.items):
            place = f"{prefix}items[{index}]"
            yield _Item(place, implied or _kind(raw, place), raw)


def _documents(file: File) -> Iterator[tuple[_Envelope, memoryview, bool]]:
    """The JSON documents that stand one after the other in a file, and whether there are several."""
    data = memoryview(file.data)
    start = first = len(BOM) if file.data.startswith(BOM) else 0
    if not file.data[start:].strip(BLANK):
        raise Refused(f"{file.name}: the file is empty, use the output of: {kinds.COMMAND}")
    while start < len(data):
        envelope, end = _next(file, data, start)
        yield envelope, data[start:end], start > first or end < len(data)
        start = end


def _next(file: File, data: memoryview, start: int) -> tuple[_Envelope, int]:
    """The document that begins here and where it ends, which the decoder finds where the next one begins."""
    end = len(data)
    try:
        try:
            return _ENVELOPES.decode(data[start:]), end
        except msgspec.DecodeError as unreadable:
            at = _BYTE.search(str(unreadable))
            if at is None or _TRAILING not in str(unreadable):
                raise
            end = start + int(at[1]) - 1  # it tells the character after the first that is too many
        return _ENVELOPES.decode(data[start:end]), end
    except msgspec.ValidationError as wrong:
        raise Refused(f"{_line(file, start)}: {_plain(str(wrong))}, use the output of: {kinds.COMMAND}") from wrong
    except _UNREADABLE as unreadable:
        raise Refused(_where(file, start, unreadable)) from unreadable


def _kind(raw: msgspec.Raw, place: str) -> str:
    try:
        return _KINDS.decode(raw).kind
    except _UNREADABLE as wrong:
        raise Refused(f"{place}: {_plain(str(wrong))}") from wrong


def _title(item: _Item) -> str:
    try:
        meta = _TITLES.decode(item.raw).metadata
    except _UNREADABLE:
        return item.kind
    return f"{item.kind} {'/'.join(filter(None, (meta.namespace, meta.name)))}".strip()


# ---- telling the place


def _where(file: File, start: int, problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return f"{_line(file, start)}: nested too deeply"
    if "truncated" in str(problem):
        return f"{_line(file, len(file.data))}: the file ends in the middle of an object"
    at = _BYTE.search(str(problem))
    text = _BYTE.sub("", str(problem)).removeprefix("JSON is malformed:").strip()
    return f"{_line(file, start + int(at[1]) if at else start)}: not JSON: {text}"


def _line(file: File, offset: int) -> str:
    before = file.data[:offset]
    column = offset - (before.rfind(b"\n") + 1) + 1
    return f"{file.name}: line {before.count(bytes([10])) + 1}, column {column}"


def _plain(text: str) -> str:
    """The decoder's sentence, its JSON path first: `metadata.name: Expected `str`, got `int``."""
    text = text.removeprefix("not the expected object: ").removeprefix("not JSON: ")
    said, at, path = text.partition(" - at `")
    return f"{path.rstrip('`').removeprefix('$.')}: {said}" if at else text

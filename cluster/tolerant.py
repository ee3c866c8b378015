"""Decode JSON into a type, with `null` meaning absent.

Go writes a nil list or map as null wherever a field is not marked omitempty (`drivers` of a CSINode, `currentMetrics`
of an autoscaler, `items` of a list), and null means the same as leaving it out. Types stay free of None for that:
the plain decode is tried first, and only if it fails are the nulls taken out and the decode tried again.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from cluster import errors

T = TypeVar("T")

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Tolerant(Generic[T]):
    """A decoder for one type. Raises Malformed and nothing else."""

    def __init__(self, type: type[T]) -> None:  # noqa: A002 - the word of the client's verbs
        self._decoder = msgspec.json.Decoder(type)

    def decode(self, body: bytes | msgspec.Raw) -> T:
        """The value these bytes stand for."""
        try:
            return self._decoder.decode(body)
        except msgspec.ValidationError:
            return self._without_nulls(body)
        except _UNREADABLE as exc:
            raise errors.Malformed(f"not JSON: {exc}") from exc

    def _without_nulls(self, body: bytes | msgspec.Raw) -> T:
        try:
            return self._decoder.decode(msgspec.json.encode(without_nulls(msgspec.json.decode(body))))
        except _UNREADABLE as exc:
            raise errors.Malformed(f"not the expected object: {exc}") from exc


def without_nulls(value: Any) -> Any:
    """The same JSON value with every null member of an object or list left out, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value if inner is not None]
    return value

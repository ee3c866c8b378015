"""A shorter way for requests whose head is already known.

An API server begins every review with the same bytes, a scheduler every question; only the number in
`Content-Length` differs. The first such head goes through the whole parser, and if it is accepted there it is
remembered. After that a request with the very same bytes around that number needs no parser: its length and its body
are all there is to read. Whatever is not byte for byte like that, in one piece or in several, is left to the parser.
Nothing here reads a body.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

END: Final = b"\r\n\r\n"
LENGTH: Final = b"\r\nContent-Length: "
"""As a line of its own: no value can hold a line break, so this is never a part of one."""
HEAD_LIMIT_BYTES: Final = 4096
BODY_LIMIT_BYTES: Final = 256 * 1024
"""What is larger takes the long way, where pieces are not kept once there are too many of them."""
REMEMBERED: Final = 64
"""Heads: one for each API server and its version, and some for whoever tries."""
_DIGITS: Final = 6


class Cut(msgspec.Struct, frozen=True, gc=False):
    """A request whose head is known, cut out of what was received."""

    first: int
    """Where its body begins."""
    last: int
    """Where it ends; beyond what is there while pieces are missing."""
    path: str
    """What it asks for, as the parser read it when the head was learnt."""


class Head(NamedTuple):
    """A head that the parser has accepted: the bytes around its length, and what it asks for."""

    before: bytes
    after: bytes
    path: str

    def cut(self, data: bytes) -> Cut | None:
        """Where the request in these bytes begins and ends; None if it does not begin with this head."""
        before, after, path = self
        if not data.startswith(before):
            return None
        start = len(before)
        end = data.find(b"\r", start, start + _DIGITS + 1)
        length = _number(data[start:end]) if end > 0 and data.startswith(after, end) else None
        if length is None:
            return None
        first = end + len(after)
        return Cut(first, first + length, path)


class Heads:
    """The heads that the parser has accepted. One per worker; owned by its event loop."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def learn(self, head: bytes, path: str) -> None:
        """Remember a head that was accepted; one without a plain length cannot be."""
        shape = _shape(head, len(head) - len(END))
        if shape is None:
            return
        if len(self._known) >= REMEMBERED:  # somebody tries many; those that are in use come back at once
            self._known.clear()
        before, after = shape
        self._known[before + after] = Head(before, after, path)

    def find(self, data: bytes) -> Head | None:
        """The head that these bytes begin with; None if the parser must look at it."""
        end = data.find(END, 0, HEAD_LIMIT_BYTES)
        shape = _shape(data, end) if end > 0 else None
        return None if shape is None else self._known.get(shape[0] + shape[1])


def head(data: bytes) -> bytes | None:
    """The head of a request that begins with these bytes, if all of it is there."""
    end = data.find(END, 0, HEAD_LIMIT_BYTES)
    return data[: end + len(END)] if end > 0 else None


def plain(method: str, version: tuple[int, int], headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request that was parsed is of the kind that may take the short way: a body of a stated length, and
    nothing that asks for more than an answer to it.
    """
    special = {b"transfer-encoding", b"expect", b"upgrade", b"connection"}
    names = [name for name, _ in headers]
    return (
        method == "POST" and version == (1, 1) and names.count(b"content-length") == 1 and special.isdisjoint(names)
    )


def _shape(data: bytes, end: int) -> tuple[bytes, bytes] | None:
    """The bytes before and after the length of a head that ends here."""
    at = data.find(LENGTH, 0, end)
    if at < 0:
        return None
    at += len(LENGTH)
    after = data.find(b"\r\n", at, end + 2)
    return None if _number(data[at:after]) is None else (data[:at], data[after : end + len(END)])


def _number(digits: bytes) -> int | None:
    """The length that a request states, if it may take the short way."""
    if not digits.isdigit() or len(digits) > _DIGITS:
        return None
    length = int(digits)
    return length if length <= BODY_LIMIT_BYTES else None

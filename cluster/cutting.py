"""Cuts whole items off a list answer as it arrives, so that a page of any size is never in memory at once.

An API server writes the items of a list one after the other, and all of them begin with the same key. Where one
seems to end and the next to begin is where a piece is cut; the same bytes may stand inside of an item too, so whoever
reads a piece says whether it is whole. If it is not, the cut is made at the next such place. What is never cut off,
the last item at least, stays with what stands around the items and is a list answer by itself.
"""

from collections.abc import Callable
from typing import Final

ITEMS: Final = b'"items":['
MISSES: Final = 16
"""Cuts in a row that were wrong, before no more are tried: a single object with that many of them is made on purpose,
and every further one would be read again from its beginning."""

Take = Callable[[bytes], bool]
"""Reads a piece; False if it is not whole."""


class Cutter:
    """One answer. `feed` it with what arrives; `rest` is what is left."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._head = b""
        self._rest = b""
        self._mark = b""
        """The end of an item and the beginning of the next one; empty until the first item was seen."""
        self._looked = 0
        """How far into the rest there is no mark that was not tried."""
        self._misses = 0
        self._uncut: list[bytes] = []
        """What came after cutting was given up."""

    def feed(self, data: bytes) -> None:
        """The next bytes of the answer."""
        if self._misses > MISSES:
            self._uncut.append(data)
            return
        self._rest += data
        if self._mark or self._open():
            self._cut()

    @property
    def rest(self) -> bytes:
        """A list answer of the items that were not cut off."""
        return b"".join((self._head, self._rest, *self._uncut))

    def _open(self) -> bool:
        """Whether the beginning of the first item is there."""
        if not self._head:
            at = self._rest.find(ITEMS, self._looked)
            if at < 0:
                self._looked = max(0, len(self._rest) - len(ITEMS))
                return False
            at += len(ITEMS)
            self._head, self._rest, self._looked = self._rest[:at], self._rest[at:], 0
        key = self._rest.find(b":")
        if key < 0 or not self._rest.startswith(b"{"):
            return False
        self._mark = b"}," + self._rest[: key + 1]
        return True

    def _cut(self) -> None:
        rest, first = self._rest, 0
        while (at := rest.find(self._mark, self._looked)) >= 0:
            self._looked = at + 2
            if self._take(rest[first : at + 1]):
                first, self._misses = self._looked, 0
                continue
            self._misses += 1
            if self._misses > MISSES:
                break
        else:
            self._looked = max(self._looked, len(rest) - len(self._mark) + 1)
        self._rest = rest[first:]
        self._looked -= first

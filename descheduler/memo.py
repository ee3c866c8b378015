"""Values that are computed once per shared object and go with it."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """By identity, not by value: pods of one template point to one spec, and comparing specs costs more than
    computing from them. An entry is dropped before the identity of its object can be used again.
    """

    def __init__(self, compute: Callable[[K], V]) -> None:
        self._compute = compute
        self._known: dict[int, tuple[weakref.ref[K], V]] = {}

    def of(self, item: K) -> V:
        """The value for this very object."""
        found = self._known.get(id(item))
        if found is not None:
            return found[1]
        made = self._compute(item)
        self._known[id(item)] = weakref.ref(item, self._forget(id(item))), made
        return made

    def __len__(self) -> int:
        return len(self._known)

    def _forget(self, identity: int) -> Callable[[weakref.ref[K]], None]:
        known = self._known  # not self: the memo must not live as long as what it remembers

        def forget(_: weakref.ref[K]) -> None:
            known.pop(identity, None)

        return forget

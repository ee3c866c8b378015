"""The way from a certificate to one that is trusted, through those that a server shows with it, as apiservers go it.

Pure. Who signed whom, and whether it may, is asked of the caller, who knows certificates.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

LONGEST: Final = 10
"""So many of the certificates shown are looked at. A server shows one or two; a Secret has room for a thousand."""

T = TypeVar("T")
Signs = Callable[[T, T, int], bool]
"""Whether the first signed the second and may do so, with so many others between itself and the leaf."""


def anchor(leaf: T, *, shown: Sequence[T], trusted: Sequence[T], signs: Signs[T]) -> T | None:
    """The trusted certificate that the leaf leads to; None if there is no way.

    Goes up from the leaf one level at a time, so whoever is reached has as few below itself as can be.
    """
    if leaf in trusted:
        return leaf
    reached, left, below = [leaf], list(shown[:LONGEST]), 0
    while reached:
        for cert in reached:
            for authority in trusted:
                if signs(authority, cert, below):
                    return authority
        above = [authority for authority in left if any(signs(authority, cert, below) for cert in reached)]
        left = [authority for authority in left if authority not in above]
        reached, below = above, below + 1
    return None

"""Two moves of one workload that trade targets, because a replacement landed on the other's.   Pure.

Pods of one owner are alike, so a plan is as good with its targets permuted. The move whose replacement took the
target of another one that is still to come leaves its own to that one. Who tells replacements where to go and who
judges where they landed must agree on that, so the rule stands here, once.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Exchange(NamedTuple):
    """What one move wrote down, once, when it saw where its replacement was."""

    partner: str
    """The move whose target was taken; both are in one namespace."""
    taken: str
    left: str
    """The target that the partner has instead."""


def target(name: str, planned: str, exchanges: Iterable[Exchange]) -> str:
    """Where a move goes by now: from the planned node along what others took and left.

    A record counts only while its `taken` is where the move was going, so one that is no longer true has no effect,
    and each counts once, so that the walk ends.
    """
    left = [it for it in exchanges if it.partner == name]
    found = planned
    while (step := next((it for it in left if it.taken == found), None)) is not None:
        left.remove(step)
        found = step.left
    return found

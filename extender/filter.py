"""Which of the nodes that can take a pod may have it.   Pure.

What goes away soon may not: a pod that lands there is evicted again, and a drain that refills does not end.
Everything else is an order, not a ban: where no node serves a wish, the wish is dropped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.view import NodeFacts
from extender.wish import Wish
from policy.capacity import CapacityType
from policy.settings_extender import By
from policy.signal_table import Kind

REASONS: Final[Mapping[Kind | None, str]] = {
    Kind.INTERRUPTION: "node is about to be taken away",
    Kind.MAINTENANCE: "node is to be drained for maintenance",
}
"""What the scheduler's Event on the pod says, by the sign that keeps a node out."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The nodes that may have the pod, in the order in which they came, and why others may not."""

    names: tuple[str, ...]
    out: Mapping[str, str] = field(default_factory=dict)


def nodes(candidates: Mapping[str, NodeFacts], wish: Wish, *, target: str | None = None) -> Passed:
    """`target` is where the pod is to be alone, if that node is among the candidates and stays."""
    if not wish.free:
        return Passed(tuple(candidates))
    out = {name: REASONS[it.sign] for name, it in candidates.items() if it.sign in REASONS}
    if target is not None and target in candidates and target not in out:
        return Passed((target,), out)
    left = tuple(name for name in candidates if name not in out)
    sound = tuple(name for name in left if candidates[name].sign is None) or left
    if wish.capacity is None or wish.by is By.SCORE:
        return Passed(sound, out)
    served = tuple(name for name in sound if serves(candidates[name], wish.capacity))
    return Passed(served or sound, out)


def serves(node: NodeFacts, capacity: CapacityType) -> bool:
    """Whether a node is of that capacity. What does not say it is spot is on-demand: not every platform labels it."""
    return (node.capacity is CapacityType.SPOT) == (capacity is CapacityType.SPOT)

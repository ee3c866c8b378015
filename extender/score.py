"""How good each node is for a pod, from 0 to 10.   Pure.

A weighted mean of what the node is, how much room it has, and the number that its annotation holds. kube-scheduler
multiplies it by ten and by the weight in its configuration, and adds it to the scores of its own plugins.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from extender import filter as filters
from extender.view import NodeFacts
from extender.wish import Wish
from policy.settings_extender import Extender

MAX: Final = 10
"""MaxExtenderPriority of kube-scheduler."""


def nodes(
    candidates: Mapping[str, NodeFacts],
    wish: Wish,
    *,
    loads: Mapping[str, float],
    settings: Extender,
    target: str | None = None,
) -> Iterator[tuple[str, int]]:
    """A score for each node, in the order in which they came."""
    if not wish.free:
        yield from ((name, 0) for name in candidates)
    elif target in candidates:
        yield from ((name, MAX if name == target else 0) for name in candidates)
    else:
        yield from ((name, _score(it, wish, loads.get(name, 0.0), settings)) for name, it in candidates.items())


def _score(node: NodeFacts, wish: Wish, load: float, settings: Extender) -> int:
    if node.sign is not None:
        return 0
    weight, total = settings.load_weight, settings.load_weight * (1.0 - load)
    if wish.capacity is not None:
        weight += settings.capacity_weight
        total += settings.capacity_weight * filters.serves(node, wish.capacity)
    if settings.metric.annotation:
        weight += settings.metric_weight
        total += settings.metric_weight * node.metric
    return round(MAX * total / weight) if weight else 0

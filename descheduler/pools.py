"""Nodes that keep the same pods away by their taints: control plane, dedicated pools, everything else.   Pure.

Load is compared within a pool. Taints of spot nodes do not count, since pods are made to tolerate them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cluster.objects import Node
from descheduler.node_state import NodeState
from descheduler.roster import Group, Roster
from policy import capacity
from policy.capacity import SpotTaint

HARD: Final = frozenset({"NoSchedule", "NoExecute"})
Pool = frozenset[tuple[str, str, str]]
"""The taints that nodes have in common."""


def of(roster: Roster, spot_taints: Sequence[SpotTaint]) -> dict[Pool, Group]:
    """Open nodes by what they keep away. Others have no say in the mean: nothing can go there."""
    found: dict[Pool, list[NodeState]] = {}
    for node in roster.nodes.values():
        if node.open and node.node is not None:
            found.setdefault(key(node.node, spot_taints), []).append(node)
    return {pool: roster.group(members) for pool, members in found.items()}


def key(node: Node, spot_taints: Sequence[SpotTaint]) -> Pool:
    """The pool of a node."""
    if not node.spec.taints:
        return frozenset()
    return frozenset(
        (taint.key, taint.value, taint.effect)
        for taint in node.spec.taints
        if taint.effect in HARD and not capacity.is_spot_taint(taint.key, taint.value, taint.effect, spot_taints)
    )

"""What nodes hold only because pods are on their way from one to another.   Pure.

A pod that is being moved counts twice while it ends and its replacement is there already, and not at all while
neither of them is on a node. Who asks what nodes hold altogether, asks without that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from descheduler import demand
from descheduler.state import ClusterState


class Surplus(NamedTuple):
    """Too much, or below zero too little, as `Demand` counts it."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0


def by_node(state: ClusterState) -> dict[str, Surplus]:
    """Pods that are being deleted, on their node; and for each that was moved and is not back, one less on the node
    that it left: the replacement will be on a node like it.
    """
    found: dict[str, Surplus] = {}
    for node, held, count in (*_going(state), *_missing(state)):
        before = found.get(node, Surplus())
        found[node] = Surplus(
            before.cpu + count * held.nominal_cpu,
            before.memory + count * held.nominal_memory,
            before.pods + count,
        )
    return found


def _going(state: ClusterState) -> Iterator[tuple[str, demand.Demand, int]]:
    for pod in state.going.values():
        yield pod.node_name, demand.held(pod), 1


def _missing(state: ClusterState) -> Iterator[tuple[str, demand.Demand, int]]:
    """An owner may lack pods for other reasons too, so no more than are being moved."""
    for key, moves in state.moving.by_owner.items():
        owner, pods = state.controller(*key), state.by_owner.get(key)
        resolved = moves[0].status.resolved
        if owner is None or owner.replicas is None or not pods or resolved is None:
            continue
        placed = sum(bool(pod.node_name) and name not in state.going for name, pod in pods.items())
        count = min(owner.replicas - placed, len(moves))
        if count > 0:
            yield resolved.source_node, demand.of(next(iter(pods.values())).spec), -count

"""Nodes other than spot, and which of their pods would rather be on spot.   Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from cluster.objects import Pod
from descheduler.guards.case import Case, Context
from descheduler.node_state import NodeState
from descheduler.reasons import Reason
from descheduler.roster import Roster
from policy import keys
from policy.capacity import CapacityType
from policy.values import Spot

WILLING: Final = frozenset({Spot.PREFER, Spot.REQUIRE})


@dataclass(frozen=True, slots=True)
class OffSpot:
    """A node that is not spot, with at least one pod that would rather be there."""

    node: NodeState
    pods: tuple[Pod, ...]
    """May go now."""
    held: tuple[tuple[Pod, Reason], ...]
    """May not go yet."""
    alone: bool
    """Whether there is no other pod that would keep the node."""


def find(context: Context, hold: Callable[[Case], Reason | None]) -> Iterator[OffSpot]:
    """All such nodes; `hold` says why a pod may not go yet. A node that carries a sign is left to who acts on it."""
    wishes: dict[tuple[int, int, str, str], bool] = {}

    def is_willing(pod: Pod) -> bool:
        """The same for pods that share labels, annotations, owner and namespace."""
        meta, owner = pod.metadata, pod.metadata.controller
        shared = (id(meta.labels), id(meta.annotations), "" if owner is None else owner.uid, meta.namespace)
        known = wishes.get(shared)
        if known is None:
            case = Case(pod, context)
            known = wishes[shared] = case.mix is None and case.spot in WILLING and not _is_of_node(pod)
        return known

    roster = context.state.roster
    sift = roster.sift(find, context.settings)
    for node in roster.once(_other_than_spot):
        asked = sift.of(node, is_willing)
        willing = {key for key in asked if not _is_going(node.pods[key], context)} if asked else None
        if willing:
            yield _sorted(node, willing, context, hold)


def _other_than_spot(roster: Roster) -> tuple[NodeState, ...]:
    known = (it for it in roster.nodes.values() if it.node is not None and not it.signed)
    return tuple(it for it in known if it.capacity is not CapacityType.SPOT)


def _sorted(
    node: NodeState, willing: set[tuple[str, str]], context: Context, hold: Callable[[Case], Reason | None]
) -> OffSpot:
    reasons = [(node.pods[key], hold(Case(node.pods[key], context))) for key in sorted(willing)]
    others = (pod for key, pod in node.pods.items() if key not in willing)
    return OffSpot(
        node,
        tuple(pod for pod, reason in reasons if reason is None),
        tuple((pod, reason) for pod, reason in reasons if reason is not None),
        alone=all(_is_of_node(pod) or _is_going(pod, context) for pod in others),
    )


def _is_of_node(pod: Pod) -> bool:
    """It goes with its node."""
    owner = pod.metadata.controller
    return keys.MIRROR_POD in pod.metadata.annotations or (owner is not None and owner.kind == "DaemonSet")


def _is_going(pod: Pod, context: Context) -> bool:
    """It leaves without anybody deciding more."""
    return pod.metadata.deletion_timestamp is not None or pod.metadata.key in context.moving

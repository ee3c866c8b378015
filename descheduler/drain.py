"""Which nodes are to be emptied, in which order, and what is left on them.   Pure.

The order is the same for every process and after every restart: by deadline, then by the time that was written on the
node when its turn in the queue began, then by name. A node keeps its place until nothing on it can move any more; one
that only waits, for a Job or for whoever asked to leave a pod alone, does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from cluster.objects import Node, Pod
from descheduler import guards
from descheduler.guards import Context
from descheduler.node_state import NodeState
from descheduler.proposal import Urgency
from descheduler.reasons import Code, Reason
from policy import signals
from policy.signal_table import Kind
from policy.signals import Signal

_NEVER: Final = datetime.max.replace(tzinfo=UTC)

EXEMPT: Final = frozenset({Code.DAEMONSET, Code.MIRROR})
"""Belong to the node; a drain leaves them without a word, as kubectl does with --ignore-daemonsets."""
UNDER_WAY: Final = frozenset({Code.ALREADY_MIGRATING, Code.TERMINATING})
LISTED: Final = frozenset(
    {Code.OPTED_OUT, Code.INVALID_VALUE, Code.NO_CONTROLLER, Code.SAFE_TO_EVICT_FALSE, Code.DO_NOT_DISRUPT}
)
"""Their owners have said that they stay: they are named on the node, and the node counts as drained with them."""


class Standing(StrEnum):
    """How a pod stands to the drain of its node."""

    EXEMPT = "exempt"
    LISTED = "listed"
    WAITING = "waiting"
    """It may go later: a Job that may end by itself, a member of a StatefulSet that waits for another."""
    MOVING = "moving"
    FREE = "free"
    """Nothing but budgets and room can hold it back."""


@dataclass(frozen=True, slots=True)
class Drain:
    """A node that is to be emptied."""

    node: Node
    signal: Signal
    """The sign that asks for it, with the nearest deadline."""
    since: datetime | None
    """When it took its place in the queue; None until that is written on it."""

    @property
    def name(self) -> str:
        """Of the node."""
        return self.node.metadata.name


@dataclass(frozen=True, slots=True)
class Left:
    """A pod that is still on such a node."""

    pod: Pod
    standing: Standing
    reasons: tuple[Reason, ...]


def asked(context: Context) -> tuple[Drain, ...]:
    """Every node that asks to be emptied, in the order in which that happens."""
    found = [
        Drain(node.node, signal, _since(node.node, context))
        for node in context.state.roster.signed()
        if node.node is not None and (signal := _signal(node, context)) is not None
    ]
    return tuple(sorted(found, key=_place))


def chosen(drains: Sequence[Drain], context: Context) -> tuple[Drain, ...]:
    """Those that are emptied now: at most so many at once, and those that nothing can leave for the time being."""
    room = context.settings.strategies.node_maintenance.max_nodes
    leaving = _sources(context)
    found: list[Drain] = []
    for drain in drains:
        if drain.name in leaving or _is_busy(drain.name, context):
            room -= 1
            if room < 0:
                continue
        found.append(drain)
    return tuple(found)


def left(name: str, context: Context, urgency: Urgency = Urgency.MAINTENANCE) -> tuple[Left, ...]:
    """The pods of a node, by name."""
    pods = context.state.nodes[name].pods
    return tuple(_left(pods[key], context, urgency) for key in sorted(pods))


def _left(pod: Pod, context: Context, urgency: Urgency) -> Left:
    reasons = guards.reasons(pod, context, urgency)
    return Left(pod, _standing({reason.code for reason in reasons}), reasons)


def _standing(codes: set[Code]) -> Standing:
    if codes & EXEMPT:
        return Standing.EXEMPT
    if codes & UNDER_WAY:
        return Standing.MOVING
    if codes & LISTED:
        return Standing.LISTED
    return Standing.WAITING if codes else Standing.FREE


def _is_busy(name: str, context: Context) -> bool:
    return any(it.standing in {Standing.FREE, Standing.MOVING} for it in left(name, context))


def _sources(context: Context) -> frozenset[str]:
    """Nodes that pods are being moved off: the last one has left when its replacement is Ready."""
    found = (it.status.resolved for it in context.state.open_migrations())
    return frozenset(resolved.source_node for resolved in found if resolved is not None)


def _signal(node: NodeState, context: Context) -> Signal | None:
    """The maintenance signal with the nearest deadline."""
    asking = [signal for signal in node.signals_at(context.now) if signal.kind is Kind.MAINTENANCE]
    return min(asking, key=lambda it: it.deadline or _NEVER, default=None)


def _since(node: Node, context: Context) -> datetime | None:
    return signals.instant(node.metadata.annotations.get(context.keys.maintenance_since, ""))


def _place(drain: Drain) -> tuple[datetime, datetime, str]:
    return drain.signal.deadline or _NEVER, drain.since or _NEVER, drain.name


def overdue(drains: Sequence[Drain], now: datetime) -> Iterator[Drain]:
    """Those whose deadline has passed."""
    return (it for it in drains if it.signal.deadline is not None and it.signal.deadline <= now)

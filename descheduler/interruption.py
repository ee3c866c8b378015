"""Which nodes are about to be lost, why, and by when.   Pure.

Two things say so: a signal of the platform, on any node, and a kubelet that has been silent for a while, on a spot
node. A signal without a time counts from when it was first seen, which is written on the node, so that a restart does
not grant it another two minutes. A notice with a deadline stands until then even if its signal goes: whoever wrote it
may have restarted, and the instance is stopped all the same. Only what the platform may take back is taken back.

Silence is not believed where most of a zone, or most spot nodes, are silent: then it is the network that failed, and
evicting would move every pod that still runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cluster.objects import Node
from descheduler.node_state import NodeState
from descheduler.roster import Roster
from policy import keys, signals, values
from policy.capacity import CapacityType
from policy.signal_table import Kind
from policy.signals import Signal

if TYPE_CHECKING:
    from descheduler.guards import Context  # whose guards ask which nodes are being lost

STRATEGY: Final = "SpotInterruption"
SILENT: Final = "NotReady"
"""The cause of a loss that no signal announced."""
KINDS: Final = frozenset({Kind.INTERRUPTION, Kind.REBALANCE})
NEVER: Final = datetime.max.replace(tzinfo=UTC)
HUNDRED: Final = 100


class Sort(StrEnum):
    """What says that a node will be lost, for metrics."""

    NOTICE = "notice"
    REBALANCE = "rebalance"
    NOT_READY = "notReady"


class Scope(StrEnum):
    """What a partition is said of."""

    ZONE = "zone"
    SPOT = "spot"


@dataclass(frozen=True, slots=True)
class Loss:
    """A node that every pod should leave."""

    node: Node
    cause: str
    """Where the signal stands, for people: `taint aws-node-termination-handler/spot-itn`; or `NotReady`."""
    since: datetime
    """When it began, or was first seen."""
    deadline: datetime | None = None
    withdrawable: bool = False
    """It is over as soon as its signal is."""

    @property
    def name(self) -> str:
        """Of the node."""
        return self.node.metadata.name

    @property
    def silent(self) -> bool:
        """Nobody there answers: what is evicted cannot say that it has stopped."""
        return self.cause == SILENT

    @property
    def sort(self) -> Sort:
        """For metrics."""
        if self.silent:
            return Sort.NOT_READY
        return Sort.REBALANCE if self.withdrawable else Sort.NOTICE


@dataclass(frozen=True, slots=True)
class Partition:
    """So many nodes are silent at once that silence says nothing about any of them."""

    scope: Scope
    name: str
    """Of the zone; empty for all spot nodes."""
    silent: int
    total: int

    def __str__(self) -> str:
        """For an Event."""
        zone = f"nodes of zone {self.name or 'without a name'}"
        return f"{self.silent} of {self.total} {zone if self.scope is Scope.ZONE else 'spot nodes'} are NotReady"


def find(context: Context) -> dict[str, Loss]:
    """Every node that is being lost, by name; none if the strategy is off."""
    if STRATEGY not in context.settings.enabled_strategies:
        return {}
    found = ((it, _loss(it, context)) for it in _suspects(context))
    return {it.name: loss for it, loss in found if loss is not None}


def held(context: Context) -> Iterator[tuple[Node, Partition]]:
    """Spot nodes that have been silent for long enough and are left alone all the same, each with the reason."""
    if STRATEGY not in context.settings.enabled_strategies:
        return
    for it in _suspects(context):
        if it.node is not None and _silent_since(it, context) is not None and _loss(it, context) is None:
            partition = _partition(it, context)
            if partition is not None:
                yield it.node, partition


def partitions(context: Context) -> tuple[Partition, ...]:
    """Zones of which most are silent, and all spot nodes if most of them are."""
    percent = context.settings.strategies.spot_interruption.unhealthy_zone_percent
    return context.state.roster.once(_partitions, percent)


def notice(node: Node, context: Context) -> Loss | None:
    """What was written down on a node and has not run out, whether or not its sign is still there; nothing if the
    strategy is off.
    """
    return next(_standing(node, context), None) if STRATEGY in context.settings.enabled_strategies else None


def next_change(context: Context) -> datetime | None:
    """When the answer changes though nothing happens: silence has lasted long enough, or a notice has run out."""
    after = context.settings.strategies.spot_interruption.not_ready_after
    times: list[datetime | None] = []
    for it in _suspects(context):
        since = _not_ready_since(it)
        times.append(None if since is None else since + after)
        if it.node is not None:
            times.append(signals.instant(it.node.metadata.annotations.get(context.keys.interruption_deadline, "")))
    return min((it for it in times if it is not None and it > context.now), default=None)


# ---- one node


def _suspects(context: Context) -> tuple[NodeState, ...]:
    """Hardly any of thousands of nodes is one."""
    return context.state.roster.once(_suspected, context.keys.interruption_cause)


def _suspected(roster: Roster, cause: str) -> tuple[NodeState, ...]:
    return tuple(
        it
        for it in roster.nodes.values()
        if it.node is not None and (it.signed or not it.ready or cause in it.node.metadata.annotations)
    )


def _loss(found: NodeState, context: Context) -> Loss | None:
    if found.node is None:
        return None
    said = [*_announced(found, found.node, context), *_standing(found.node, context)]
    if said:
        return min(said, key=lambda it: (it.withdrawable, it.deadline or NEVER, it.cause))
    since = _silent_since(found, context)
    if since is None or _partition(found, context) is not None:
        return None
    return Loss(found.node, SILENT, since, withdrawable=True)


def _announced(found: NodeState, node: Node, context: Context) -> Iterator[Loss]:
    for signal in found.signals_at(context.now):
        if signal.kind in KINDS:
            # In whole seconds, as it will be written down: a deadline must not move by that.
            since = signal.started or _noted(node, signal.source, context) or context.now.replace(microsecond=0)
            yield Loss(node, signal.source, since, _deadline(signal, since), signal.withdrawable)


def _deadline(signal: Signal, since: datetime) -> datetime | None:
    if signal.deadline is not None or signal.notice is None:
        return signal.deadline
    return since + signal.notice


def _noted(node: Node, cause: str, context: Context) -> datetime | None:
    """When this cause was first seen, if that is written down."""
    notes = node.metadata.annotations
    if notes.get(context.keys.interruption_cause) != cause:
        return None
    return signals.instant(notes.get(context.keys.interruption_since, ""))


def _standing(node: Node, context: Context) -> Iterator[Loss]:
    """A notice that was written down and has not run out."""
    notes = node.metadata.annotations
    cause = notes.get(context.keys.interruption_cause, "")
    deadline = signals.instant(notes.get(context.keys.interruption_deadline, ""))
    if cause and deadline is not None and deadline > context.now:
        yield Loss(node, cause, _noted(node, cause, context) or context.now, deadline)


def _silent_since(found: NodeState, context: Context) -> datetime | None:
    """Since when a spot node has said nothing, if that is long enough. One that holds nothing but what belongs to it
    is most likely still starting, and there is nothing to be saved.
    """
    since = _not_ready_since(found)
    if since is None or since + context.settings.strategies.spot_interruption.not_ready_after > context.now:
        return None
    noted = found.node is not None and context.keys.interruption_cause in found.node.metadata.annotations
    return since if noted or _holds_pods(found) else None


def _not_ready_since(found: NodeState) -> datetime | None:
    if found.node is None or found.ready or found.capacity is not CapacityType.SPOT:
        return None
    ready = next((it for it in found.node.status.conditions if it.type == "Ready"), None)
    return values.plausible(ready.last_transition_time) if ready is not None else None


def _holds_pods(found: NodeState) -> bool:
    for pod in found.pods.values():
        owner = pod.metadata.controller
        if (
            owner is None or owner.kind not in {"DaemonSet", "Node"}
        ) and keys.MIRROR_POD not in pod.metadata.annotations:
            return True
    return False


def _groups(found: NodeState) -> Iterator[tuple[Scope, str]]:
    zone = found.node.metadata.labels.get(keys.ZONE, "") if found.node is not None else ""
    yield Scope.ZONE, zone
    if found.capacity is CapacityType.SPOT:
        yield Scope.SPOT, ""


def _partition(found: NodeState, context: Context) -> Partition | None:
    """Why the silence of this node is not believed."""
    mine = set(_groups(found))
    return next((it for it in partitions(context) if (it.scope, it.name) in mine), None)


def _partitions(roster: Roster, percent: int) -> tuple[Partition, ...]:
    counts: dict[tuple[Scope, str], list[int]] = {}
    for found in roster.nodes.values():
        if found.node is None:
            continue
        for group in _groups(found):
            count = counts.setdefault(group, [0, 0])
            count[0] += not found.ready
            count[1] += 1
    return tuple(
        Partition(scope, name, silent, total)
        for (scope, name), (silent, total) in sorted(counts.items())
        if silent and HUNDRED * silent >= percent * total
    )

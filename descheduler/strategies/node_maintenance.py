"""NodeMaintenance: empty every node that carries a maintenance signal.   Decides only; never evicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from descheduler import signs
from descheduler.node_state import NodeState
from descheduler.proposal import Proposal, Urgency
from descheduler.state import ClusterState
from descheduler.usage import Usage
from policy import keys, signal_table, signals
from policy.settings import Settings
from policy.signal_table import Kind, SignalRow
from policy.signals import Signal

NAME: Final = "NodeMaintenance"
WEIGHT: Final = 120

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as a sign of maintenance."""

    label_prefix: str = keys.DEFAULT_PREFIX
    """Prefix of our own maintenance label."""
    signals: tuple[SignalRow, ...] = signal_table.ROWS
    """Signs of others."""

    @classmethod
    def of(cls, settings: Settings, usage: Usage | None) -> Args:  # noqa: ARG003 - the same for every strategy
        """From the settings."""
        return cls(label_prefix=settings.label_prefix, signals=settings.signals.all_rows())


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:
    """Every pod on such a node, those of the node with the nearest deadline first."""
    ours = keys.under(args.label_prefix)
    found = [
        (signal.deadline or _NEVER, node.name, signal)
        for node in state.nodes.values()
        if node.signed and (signal := _maintenance(node, args.signals, ours, now)) is not None
    ]
    for _, name, signal in sorted(found, key=lambda it: it[:2]):
        why = f"node {name} is to be emptied: {signal.source}"
        for key in sorted(state.nodes[name].pods):
            pod = state.nodes[name].pods[key]
            yield Proposal(pod, Urgency.MAINTENANCE, why, deadline=signal.deadline)


def _maintenance(node: NodeState, table: Sequence[SignalRow], ours: keys.Keys, now: datetime) -> Signal | None:
    """The maintenance signal with the nearest deadline."""
    if node.node is None:
        return None
    read = signals.read(signs.of(node.node), keys=ours, now=now, table=table)
    asking = [signal for signal in read if signal.kind is Kind.MAINTENANCE]
    return min(asking, key=lambda it: it.deadline or _NEVER, default=None)

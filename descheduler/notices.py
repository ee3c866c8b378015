"""Which nodes have asked for something since the last look, and which no longer do: told in the log, once for each.

Kept by who leads. A process that takes over finds on the node that its signal was taken up, and tells it no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cluster.objects import Node
from descheduler.guards import Context
from policy import values
from policy.signal_table import Kind
from policy.signals import Signal
from telemetry.catalogue import Log
from telemetry.logs import Logger

ASKING: Final = frozenset({Kind.MAINTENANCE, Kind.INTERRUPTION, Kind.REBALANCE})
"""Kinds for which pods leave. A node that is only avoided is not worth a line: every cordon would be one."""
Notice = tuple[str, str]
"""Name of the node, and where its signal stands."""


class Notices:
    """One per process."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._known: frozenset[Notice] | None = None

    def look(self, context: Context) -> None:
        """Take in how things stand."""
        standing = {(node.metadata.name, it.source): (node, it) for node, it in _signals(context)}
        for (name, source), (node, signal) in standing.items():
            told = _was_taken_up(node, context) if self._known is None else (name, source) in self._known
            if not told:
                self._log.emit(
                    Log.NODE_SIGNAL,
                    node=name,
                    signal=source,
                    expiresAt=values.format_time(signal.deadline) if signal.deadline is not None else None,
                )
        for name, source in sorted((self._known or frozenset()) - standing.keys()):
            found = context.state.nodes.get(name)
            if found is not None and found.node is not None:  # what goes with its node was not taken back
                self._log.emit(Log.NODE_SIGNAL_GONE, node=name, signal=source)
        self._known = frozenset(standing)


def _signals(context: Context) -> Iterator[tuple[Node, Signal]]:
    for found in context.state.roster.signed():
        if found.node is None:
            continue
        for signal in found.signals_at(context.now):
            if signal.kind in ASKING:
                yield found.node, signal


def _was_taken_up(node: Node, context: Context) -> bool:
    ours, notes = context.keys, node.metadata.annotations
    return ours.maintenance_since in notes or ours.interruption_cause in notes

"""Where a move goes by now: its planned target, or the one it got in exchange.   Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.objects import PodMigration
from descheduler.state import ClusterState
from policy import exchange
from policy.exchange import Exchange


def of(migration: PodMigration, state: ClusterState) -> str:
    """Empty where the choice is the scheduler's."""
    status = migration.status
    if status.exchange is not None and status.replacement is not None:
        return status.replacement.node
    planned = (status.resolved.target_node if status.resolved is not None else "") or migration.spec.target_node
    return exchange.target(migration.metadata.name, planned, _exchanges(migration.metadata.namespace, state))


def _exchanges(namespace: str, state: ClusterState) -> Iterator[Exchange]:
    """Ended moves count too: the one they traded with may still be under way."""
    for other in state.moving.exchanged.get(namespace, ()):
        traded, landed = other.status.exchange, other.status.replacement
        if traded is not None and landed is not None:
            yield Exchange(traded.migration, landed.node, traded.target_node)

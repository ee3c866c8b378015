"""Whose turn it is at a disruption budget, of those whose node is being lost.   Pure.

They all stand at the eviction. If each tried whenever a budget allows one, all but one would be refused every time.
So as many try as it allows, in the order in which they were planned, and the rest wait for its next word.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from cluster.objects import Pod, PodMigration
from descheduler.budgets import Budgets
from descheduler.migration import eviction, surge_turn, world
from descheduler.node_state import Key
from descheduler.state import ClusterState


def find(state: ClusterState, now: datetime) -> frozenset[Key]:
    """Migrations that may try to evict, those of other causes included: they take a turn as well."""
    budgets = Budgets(state)
    found = []
    for migration, pod in _standing(state, now):
        if not budgets.reasons(pod):
            budgets.book(pod)
            found.append(migration.metadata.key)
    return frozenset(found)


def _standing(state: ClusterState, now: datetime) -> Iterator[tuple[PodMigration, Pod]]:
    """Those before their eviction, but for those that rest after another kind of failure."""
    for migration in state.open_migrations():
        if not _evicts(migration):
            continue
        pod = world.source_of(migration, state)
        if pod is not None and pod.metadata.deletion_timestamp is None and not _rests(migration, now):
            yield migration, pod


def _evicts(migration: PodMigration) -> bool:
    doubling = migration.status.step in {surge_turn.AVAILABLE, surge_turn.DOWN}
    return migration.status.step == "Evict" or (doubling and eviction.is_announced(migration))


def _rests(migration: PodMigration, now: datetime) -> bool:
    intent = migration.status.intent or {}
    until = intent.get("retryAt")
    return not intent.get("blocked") and isinstance(until, str) and datetime.fromisoformat(until) > now

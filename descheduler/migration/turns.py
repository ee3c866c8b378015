"""Voluntary moves of one owner take turns: one is evicted when the last one's replacement has a node.   Pure.

Replacements of one owner are told the same targets, so two that come at the same moment may choose the same one.
Between two evictions lies then what the controller and the scheduler need, well below a second. Nobody waits for
ever: a turn that leads to nothing is passed over.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cluster.objects import PodMigration
from descheduler.state import ClusterState

TURN: Final = timedelta(seconds=10)
"""How long a turn lasts at most. A replacement that has no node by then is waiting for room, not for us."""
BEFORE: Final = frozenset({"Guard", "Mark"})
UNDER_WAY: Final = frozenset({"Evict", "AwaitReplacement"})


def ahead(migration: PodMigration, state: ClusterState, propagation: timedelta, now: datetime) -> str:
    """The move that has its turn, if it is not this one."""
    owner = _owner(migration)
    if not owner:
        return ""
    for other in state.moving.by_owner.get((migration.metadata.namespace, owner), ()):
        if other is not migration and other.status.replacement is None:
            since = _since(other, migration, propagation)
            if since is not None and now - since < TURN:
                return other.metadata.name
    return ""


def _since(other: PodMigration, mine: PodMigration, propagation: timedelta) -> datetime | None:
    """When the other one got its turn; None if it comes after this one."""
    status = other.status
    if status.step in UNDER_WAY:
        at = (status.intent or {}).get("at")
        return datetime.fromisoformat(at) if isinstance(at, str) else None
    if status.step in BEFORE and status.started_at is not None and _order(other) < _order(mine):
        return status.started_at + propagation
    return None


def _order(migration: PodMigration) -> tuple[str, str]:
    started = migration.status.started_at
    return started.isoformat() if started is not None else "~", migration.metadata.name


def _owner(migration: PodMigration) -> str:
    resolved = migration.status.resolved
    return resolved.owner.uid if resolved is not None and resolved.owner is not None else ""

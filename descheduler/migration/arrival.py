"""The second half of a move: the pod is gone or going, and another one comes in its place.   Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import marking
from descheduler.migration.actions import Action, Wait, Write
from descheduler.migration.endings import end, time_of
from descheduler.migration.world import World
from policy.values import MigrationStatus

SETTLE_GRACE: Final = timedelta(seconds=10)
"""How long a replacement may be missing before the workload is asked whether it still wants one: the controller
needs a moment to see that a pod went away."""


def await_replacement(migration: PodMigration, world: World, now: datetime) -> Action:
    """Another pod is to come and be Ready."""
    found, claimed = world.replacement, migration.status.replacement
    if found is not None and (
        claimed is None or claimed.uid != found.metadata.uid or claimed.node != found.node_name
    ):
        return Write(_claim(migration, world, found))
    if found is not None and found.ready:
        landed = {"onTarget": found.node_name == world.goal} if world.goal else {}
        told = (migration.status.intent or {}).get("served") == found.metadata.uid
        return Write({"step": "Settle", "holder": world.holder, **landed}, ready=not told)
    if world.namespace_terminating or (found is None and world.workload is None and _waited(migration, now)):
        return end("Cancelled", "the workload was deleted; nothing replaces the pod", now)
    if found is None and not world.pending and _satisfied(world) and _waited(migration, now):
        return end("Completed", "the workload was scaled down meanwhile and needs no replacement", now)
    late = (_evicted_at(migration) or now) + world.settings.migrations.ready_timeout
    if late > now:
        return Wait(late, "the replacement is not Ready yet" if found is not None else "no replacement yet")
    what = f"replacement {found.metadata.name} is not Ready" if found is not None else "no replacement is on a node"
    return replace(end("Failed", f"{what} after {world.settings.migrations.ready_timeout}", now), late=True)


def settle(migration: PodMigration, world: World, now: datetime) -> Action:
    """It is; have it say where it came from."""
    found = world.replacement
    if found is not None:
        missing = marking.missing(found, marking.of_replacement(migration, world, MigrationStatus.COMPLETED))
        if missing is not None:
            return missing
    return end("Completed", _where(migration), now)


def _claim(migration: PodMigration, world: World, found: Pod) -> dict[str, Any]:
    """The pod is the replacement; and if it took the target of a sibling, that one gets ours."""
    claim: dict[str, Any] = {
        "replacement": {"name": found.metadata.name, "uid": found.metadata.uid, "node": found.node_name}
    }
    if world.partner:
        claim["exchange"] = {"migration": world.partner, "targetNode": world.goal}
    elif migration.status.exchange is not None:
        claim["exchange"] = None
    return claim


def _where(migration: PodMigration) -> str:
    landed = migration.status.replacement
    if landed is None:
        return "moved"
    on = "as planned" if migration.status.on_target else "the scheduler's own choice"
    return f"{landed.name} is Ready on {landed.node}, {on}"


def _satisfied(world: World) -> bool:
    return world.wanted is not None and world.ready >= world.wanted


def _waited(migration: PodMigration, now: datetime) -> bool:
    evicted = _evicted_at(migration)
    return evicted is not None and now - evicted > SETTLE_GRACE


def _evicted_at(migration: PodMigration) -> datetime | None:
    return time_of((migration.status.intent or {}).get("evictedAt"))

"""The second half of a move: the pod is gone or going, and another one comes in its place.   Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import marking, recreate
from descheduler.migration.actions import Action, Wait, Write
from descheduler.migration.endings import end, text_of, time_of
from descheduler.migration.world import World
from policy.values import MigrationStatus

SETTLE_GRACE: Final = timedelta(seconds=10)
"""How long a replacement may be missing before the workload is asked whether it still wants one: the controller
needs a moment to see that a pod went away."""


def await_replacement(migration: PodMigration, world: World, now: datetime) -> Action:
    """Another pod is to come and be Ready. Afterwards nobody could tell since when the name was free for it."""
    if _keeps_its_name(migration) and world.stopping is None and _noted(migration, "goneAt") is None:
        return Write({"intent": {**(migration.status.intent or {}), "goneAt": text_of(now)}})
    found, claimed = world.replacement, migration.status.replacement
    if found is not None and (
        claimed is None or claimed.uid != found.metadata.uid or claimed.node != found.node_name
    ):
        return Write(_claim(migration, world, found))
    if found is not None and (found.ready or found.terminal):
        return _ran_out(found, now) if found.terminal else _serves(migration, world, found)
    return _await(migration, world, now)


def _await(migration: PodMigration, world: World, now: datetime) -> Action:
    """There is none that is Ready, and perhaps there will never be."""
    found = world.replacement
    if world.namespace_terminating or (found is None and world.orphaned and _waited(migration, now)):
        return end("Cancelled", _nothing_left(migration), now)
    if found is None and not world.pending and _satisfied(world) and _waited(migration, now):
        return end("Completed", "the workload was scaled down meanwhile and needs no replacement", now)
    late = _since(migration, world, now) + world.settings.migrations.ready_timeout
    if late > now:
        return Wait(late, "the replacement is not Ready yet" if found is not None else "no replacement yet")
    return replace(end("Failed", _overdue(migration, world), now), late=True)


def _serves(migration: PodMigration, world: World, found: Pod) -> Write:
    landed = {"onTarget": found.node_name == world.goal} if world.goal else {}
    told = (migration.status.intent or {}).get("served") == found.metadata.uid
    return Write({"step": "Settle", "holder": world.holder, **landed}, ready=not told)


def _ran_out(copy: Pod, now: datetime) -> Write:
    """The copy has ended, and nothing will come after it."""
    return end("Completed" if copy.status.phase == "Succeeded" else "Failed", recreate.ended(copy), now)


def settle(migration: PodMigration, world: World, now: datetime) -> Action:
    """It is; have it say where it came from, if nobody refuses that for good: the move has succeeded."""
    found = world.replacement
    if found is not None and not _is_refused(migration, world, now):
        missing = marking.missing(found, marking.of_replacement(migration, world, MigrationStatus.COMPLETED))
        if missing is not None:
            return missing
    return end("Completed", _where(migration), now)


def _is_refused(migration: PodMigration, world: World, now: datetime) -> bool:
    """Whether enough was tried: so many answers that count, or so long without any."""
    settings, tries = world.settings.migrations, int((migration.status.intent or {}).get("tries", 0))
    late = _since(migration, world, now) + settings.ready_timeout <= now
    return tries > 0 and (migration.status.attempts > settings.max_retries or (late and tries > settings.max_retries))


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


def _since(migration: PodMigration, world: World, now: datetime) -> datetime:
    """From when on a replacement can be expected. A StatefulSet makes none while the pod of that name exists, and it
    may take all of its grace period, which the time of its deletion includes.
    """
    evicted = _noted(migration, "evictedAt") or now
    if not _keeps_its_name(migration):
        return evicted
    stopping = world.stopping
    free = _noted(migration, "goneAt") if stopping is None else stopping.metadata.deletion_timestamp
    return max(evicted, free or evicted)


def _overdue(migration: PodMigration, world: World) -> str:
    found, timeout = world.replacement, world.settings.migrations.ready_timeout
    if found is not None:
        return f"replacement {found.metadata.name} is not Ready after {timeout}"
    if world.stopping is not None and _keeps_its_name(migration):
        stands = f"{world.stopping.metadata.name} is still Terminating {timeout} after its grace period"
        return f"{stands}, and nothing replaces it before it is gone"
    return f"no replacement is on a node after {timeout}"


def _keeps_its_name(migration: PodMigration) -> bool:
    resolved = migration.status.resolved
    return resolved is not None and resolved.owner is not None and resolved.owner.kind == "StatefulSet"


def _where(migration: PodMigration) -> str:
    landed = migration.status.replacement
    if landed is None:
        return "moved"
    return f"{landed.name} is Ready on {landed.node}, {_by_whom(migration, landed.node)}"


def _by_whom(migration: PodMigration, node: str) -> str:
    if not migration.status.on_target:
        return "the scheduler's own choice"
    resolved = migration.status.resolved
    target = resolved.target_node if resolved is not None else ""
    return "as planned" if target in {"", node} else f"as planned for a sibling, which gets {target}"


def _nothing_left(migration: PodMigration) -> str:
    if recreate.is_mode(migration):
        return "the pod went away with its node before it was copied, or its copy was deleted"
    return "the workload was deleted; nothing replaces the pod"


def _satisfied(world: World) -> bool:
    return world.wanted is not None and world.ready >= world.wanted


def _waited(migration: PodMigration, now: datetime) -> bool:
    evicted = _noted(migration, "evictedAt")
    return evicted is not None and now - evicted > SETTLE_GRACE


def _noted(migration: PodMigration, what: str) -> datetime | None:
    return time_of((migration.status.intent or {}).get(what))

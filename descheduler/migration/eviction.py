"""One eviction: whether it has its turn, and when it comes before the other pod serves.   Pure.

A pod that is being doubled stays until the other one serves. Where its node is being lost, only as long as it can
still stop in order: then it is evicted, as its budget allows, and serves nobody for a while, but loses nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import marking
from descheduler.migration.actions import Action, Evict, Wait, Write
from descheduler.migration.endings import text_of, time_of
from descheduler.migration.outcomes import Failure
from descheduler.migration.world import World
from policy.values import MigrationStatus

TURN_PAUSE: Final = timedelta(seconds=1)
"""Between two looks at a move that comes first, if nothing is heard of it."""
SEVERAL: Final = Failure(
    "PDB_MULTIPLE: several PodDisruptionBudgets select it, and the API refuses every eviction", final=True
)
"""No turn ever comes at several budgets; whoever plans may double the pod, or say why it stays."""
HELD: Final = Failure("PDB_NO_BUDGET: its disruption budget allows no eviction now", blocked=True)
ANNOUNCED: Final = "evictAt"
"""Since when, in the intent of a move that doubles its pod, the pod is to be evicted."""


def attempt(
    migration: PodMigration, source: Pod, world: World, now: datetime, *, copy: tuple[str, str] | None = None
) -> Action:
    """Ask for it, or wait for the turn at the budget. A copy that is relied on is looked at once more."""
    if not world.permitted:
        return _await_turn(migration, refusal(world), now)
    meta = source.metadata
    return Evict(meta.name, meta.uid, meta.resource_version, world.settings.migrations.grace_period_seconds, copy)


def refusal(world: World) -> Failure:
    """What the API would say to a pod that has no turn."""
    return SEVERAL if world.crowded else HELD


def is_announced(migration: PodMigration) -> bool:
    """Whether a move that doubles its pod may have tried to evict it."""
    return ANNOUNCED in (migration.status.intent or {})


def when_time_is_up(migration: PodMigration, world: World, now: datetime) -> Action | None:
    """For a pod that is being doubled; None while there is time. It must carry the marks of the move: whoever calls
    the move off takes them away, and with them the version that the eviction is tied to.
    """
    source, by = world.source, world.leave_by
    if source is None or by is None or now < by:
        return None
    intent = migration.status.intent or {}
    if not is_announced(migration):
        return Write({"holder": world.holder, "intent": {**intent, ANNOUNCED: text_of(now)}})
    missing = marking.missing(source, marking.of_source(migration, world, MigrationStatus.IN_PROGRESS))
    if missing is not None:
        return missing
    retry = time_of(intent.get("retryAt"))
    if retry is not None and retry > now and not (intent.get("blocked") and world.budget_free):
        return Wait(retry, migration.status.message)
    return attempt(migration, source, world, now)


def _await_turn(migration: PodMigration, refusal: Failure, now: datetime) -> Action:
    """Said once in the status, where people look; the budget itself tells when to look again."""
    intent, told = migration.status.intent or {}, migration.status.message
    if intent.get("blocked") and told.partition(":")[0] == refusal.why.partition(":")[0]:
        return Wait(now + TURN_PAUSE, told)
    return Write({"message": refusal.why, "intent": {**intent, "blocked": True}})

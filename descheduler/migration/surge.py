"""A move that starts the replacement first: one replica more, and when it serves, the original goes.   Pure.

    Mark -> SurgeUp -> AwaitAvailable -> SurgeDown -> AwaitReplacement, or from any of them SurgeBack

Until the number is lowered the original serves, and the way back takes the new pod instead of it. The number is
lowered only while it is the one that we wrote. The deletion cost is set last of all: a controller that somebody else
makes scale down before the new pod is Available takes the new pod then, not the one that serves. Only where its node
would be gone before the new pod is Available, the original is evicted first and the number is lowered after that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import surge_back, surge_forth
from descheduler.migration.actions import Action, Wait, Write
from descheduler.migration.endings import Ending, text_of, time_of
from descheduler.migration.surge_turn import AVAILABLE, BACK, DOWN, STEPS, UP, Turn
from descheduler.migration.world import World
from descheduler.scaling import mode_of
from policy import keys

_STEPS: Final[dict[str, Callable[[Turn], Action | Ending]]] = {
    UP: surge_forth.up,
    AVAILABLE: surge_forth.available,
    DOWN: surge_forth.down,
    BACK: surge_back.back,
}


def is_mode(migration: PodMigration) -> bool:
    """Whether the move is carried out in this way."""
    return mode_of(migration) == "Surge"


def under_way(migration: PodMigration) -> bool:
    """Whether the replicas may have been touched."""
    return migration.status.step in STEPS


def is_going_back(migration: PodMigration) -> bool:
    """Whether what was done is being undone, which has no end but success."""
    return migration.status.step == BACK


def begin(source: Pod, world: World, now: datetime) -> Write | Ending:
    """Announce it, with all that is needed to take it back."""
    target = world.scale
    if target is None:
        return Ending("Cancelled", "the workload was deleted")
    intent = {
        "action": UP,
        "at": text_of(now),
        "uid": source.metadata.uid,
        "known": sorted(pod.metadata.uid for pod in target.pods),
        "from": target.replicas,
        "to": target.replicas + 1,
        "generation": target.generation,
        "cost": source.metadata.annotations.get(keys.POD_DELETION_COST),
    }
    kept = {key: value for key, value in intent.items() if value is not None}
    return Write({"step": UP, "holder": world.holder, "intent": kept})


def step(migration: PodMigration, world: World, called_off: str, now: datetime) -> Action | Ending:
    """What to do next."""
    if world.namespace_terminating:
        return Ending("Cancelled", "the namespace is being deleted")
    if world.scale is None:
        return Ending("Cancelled", "the workload was deleted")
    turn = Turn(migration, world, world.scale, called_off, now)
    retry = time_of(turn.intent.get("retryAt"))
    # An eviction that was refused keeps nothing else from going on.
    if retry is not None and retry > now and not (turn.intent.get("blocked") or turn.intent.get("eviction")):
        return Wait(retry, migration.status.message)
    return _STEPS[migration.status.step](turn)

"""The life of one migration: from what is written in its status and what is there, the next small step.   Pure.

    Pending -> Guard -> Mark -> Evict -> AwaitReplacement -> Settle -> Completed

Every step is decided anew from what is there, so it does not matter who decided the last one or whether it was
carried out: a process that takes over reads the status and goes on. The status says what is about to be done before
it is done. Until the eviction a move can be called off and leaves nothing behind; after it, it runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from descheduler import moving
from descheduler.migration import arrival, eviction, failing, marking, recreate, recreate_turn, surge, surge_back
from descheduler.migration.actions import (
    Action,
    Adopt,
    Done,
    MarkWorkload,
    Release,
    Wait,
    Write,
    owner_json,
)
from descheduler.migration.endings import Ending, end, text_of, time_of, unanswered
from descheduler.migration.outcomes import Failure
from descheduler.migration.world import World
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Reason
from policy import keys
from policy.values import MigrationStatus

FINALIZER: Final = keys.FINALIZER
ENDED: Final = frozenset({"Completed", "Failed", "Cancelled"})
OTHER_VERSION_PAUSE: Final = timedelta(minutes=1)
"""Between two looks at a move that a newer version has begun: it alone knows what it has changed."""


def step(migration: PodMigration, world: World, now: datetime) -> Action:
    """What to do next."""
    status, meta = migration.status, migration.metadata
    if status.phase in ENDED:
        return _clear(migration, world, now)
    if FINALIZER not in meta.finalizers:
        return Done() if moving.is_let_go(migration) else Adopt()
    if status.phase in {"", "Pending"}:
        return _take_up(migration, world, now)
    in_mode = surge.under_way(migration) or recreate.under_way(migration)
    return _advance_in_mode(migration, world, now) if in_mode else _advance(migration, world, now)


def _advance(migration: PodMigration, world: World, now: datetime) -> Action:
    ending = None if _is_past_eviction(migration, world) else _ending(migration, world, now)
    if ending is not None:
        return ending
    retry = _retry_at(migration)
    if retry is not None and retry > now and not (_blocked(migration) and world.budget_free):
        return Wait(retry, migration.status.message)
    follow = _STEPS.get(migration.status.step)
    if follow is None:
        return Wait(now + OTHER_VERSION_PAUSE, f"step {migration.status.step} is one of another version")
    return follow(migration, world, now)


def _advance_in_mode(migration: PodMigration, world: World, now: datetime) -> Action:
    """Steps that only one mode has. What it changed is taken back by the mode itself before the move ends."""
    called_off = _called_off(migration, world) or _texts(world.objections)
    if migration.status.step == recreate_turn.REMOVE:
        unmark = marking.unmark(migration, world)
        if unmark is not None:
            return unmark
    mode = surge if surge.under_way(migration) else recreate
    return _ended(mode.step(migration, world, called_off, now), now)


def _ended(found: Action | Ending, now: datetime) -> Action:
    return end(found.phase, found.why, now) if isinstance(found, Ending) else found


def is_over(migration: PodMigration) -> bool:
    """Ended and let go of: history. Or deleted, and ours no more."""
    ended = migration.status.phase in ENDED and FINALIZER not in migration.metadata.finalizers
    return ended or moving.is_let_go(migration)


# ---- before the eviction


def against(migration: PodMigration, world: World) -> str:
    """Why a move that has not begun would be cancelled as things are; empty if nothing is against it."""
    called_off = _called_off(migration, world) or _nothing_to_move(migration, world)
    return called_off or _texts(world.objections)


def _nothing_to_move(migration: PodMigration, world: World) -> str:
    source = world.source
    if source is None:
        return f"there is no pod {migration.spec.pod_ref.name} with that UID"
    return "" if source.node_name else f"pod {source.metadata.name} is not on a node"


def _called_off(migration: PodMigration, world: World) -> str:
    if migration.metadata.deletion_timestamp is not None:
        return "the PodMigration was deleted"
    if world.namespace_terminating:
        return "the namespace is being deleted"
    return world.withdrawn


def _ending(migration: PodMigration, world: World, now: datetime) -> Action | None:
    """The way back, if the move was given up or is called off. The marks go first: an eviction is tied to the version
    of the pod that carries them, so that a process which still believes in the move cannot evict the pod any more
    when the end is written down.
    """
    intent = migration.status.intent or {}
    phase, why = intent.get("ending"), intent.get("why") or migration.status.message
    if phase not in ENDED:
        phase, why = "Cancelled", _called_off(migration, world) or _texts(world.objections)
    if why and recreate.has_copy(migration):
        return recreate_turn.back(migration, world, Ending(phase, why), now)
    return (marking.unmark(migration, world) or end(phase, why, now)) if why else None


def _is_past_eviction(migration: PodMigration, world: World) -> bool:
    """The pod is on its way out, or gone, once its eviction was announced: calling the move off would not bring it
    back, and its replacement is on its way.
    """
    if migration.status.step != "Evict":
        return migration.status.step in failing.PAST_EVICTION
    return world.source is None or world.source.metadata.deletion_timestamp is not None


def _take_up(migration: PodMigration, world: World, now: datetime) -> Action:
    source, called_off = world.source, _called_off(migration, world) or _nothing_to_move(migration, world)
    if called_off or source is None:
        return end("Cancelled", called_off, now)
    target = migration.spec.target_node or world.target
    found = world.workload
    resolved = {
        "owner": owner_json(source.metadata.controller),
        "workload": {"apiVersion": found.api_version, "kind": found.kind, "name": found.name, "uid": found.uid}
        if found is not None
        else None,
        "podUid": source.metadata.uid,
        "sourceNode": source.node_name,
        "targetNode": target,
        "mode": world.mode.value,
    }
    return Write(
        {
            "phase": "InProgress",
            **_first(source, world, now),
            "startedAt": text_of(now),
            "holder": world.holder,
            "resolved": {key: value for key, value in resolved.items() if value is not None},
        },
        event=f"MoveStarted moving pod {source.metadata.name} from {source.node_name}"
        + (f" to {target}" if target else ""),
    )


def _first(source: Pod, world: World, now: datetime) -> dict[str, Any]:
    """Where the node goes, every request before the eviction is a pod fewer that gets away: what guards it is looked
    at now, and the marks are made under the intent to evict.
    """
    if not _hurries(world):
        return {"step": "Guard"}
    if world.mode is Mode.EVICT:
        return {"step": "Evict", "intent": _to_evict(source, world, now)}
    return {"step": "Mark", "intent": {"action": "Mark", "at": text_of(now)}}


def _guard(_: PodMigration, world: World, now: datetime) -> Action:
    if world.source is None:
        return end("Cancelled", "the pod went away before it was evicted", now)
    return Write({"step": "Mark", "holder": world.holder, "intent": {"action": "Mark", "at": text_of(now)}})


def _mark(migration: PodMigration, world: World, now: datetime) -> Action:
    source = world.source
    if source is None:
        return end("Cancelled", "the pod went away before it was evicted", now)
    missing = marking.missing(source, marking.of_source(migration, world, MigrationStatus.IN_PROGRESS))
    if missing is not None:
        return missing
    marked = marking.workload(migration, world)
    if marked is not None:
        return marked
    seen = (migration.status.started_at or now) + world.settings.migrations.hint_propagation
    if not _hurries(world) and seen > now:
        return Wait(seen, "the webhook is being told where the replacement should go")
    if world.ahead and world.urgency is Urgency.VOLUNTARY:
        return Wait(now + eviction.TURN_PAUSE, f"{world.ahead} of the same owner comes first")
    return _begin(migration, source, world, now)


def _begin(migration: PodMigration, source: Pod, world: World, now: datetime) -> Action:
    """Announce the first thing that the mode does to the workload."""
    if surge.is_mode(migration):
        return _ended(surge.begin(source, world, now), now)
    if recreate.is_mode(migration):
        return recreate.begin(migration, source, world, now)
    return Write({"step": "Evict", "holder": world.holder, "intent": _to_evict(source, world, now)})


def _to_evict(source: Pod, world: World, now: datetime) -> dict[str, Any]:
    return {"action": "Evict", "at": text_of(now), "uid": source.metadata.uid, "known": list(world.young)}


def _evict(migration: PodMigration, world: World, now: datetime) -> Action:
    source = world.source
    if source is None or source.metadata.deletion_timestamp is not None:
        intent = {**unanswered(migration.status.intent), "action": "AwaitReplacement", "evictedAt": text_of(now)}
        return Write({"step": "AwaitReplacement", "holder": world.holder, "intent": intent})
    missing = marking.missing(source, marking.of_source(migration, world, MigrationStatus.IN_PROGRESS))
    if missing is not None:
        return missing if _hurries(world) else Write({"step": "Mark", "holder": world.holder})
    held = _held_back(migration, world, now)
    return held or eviction.attempt(migration, source, world, now, copy=_relied_on(migration, world))


def _held_back(migration: PodMigration, world: World, now: datetime) -> Action | None:
    """What comes before the eviction."""
    unserved = recreate.not_serving(migration, world, now) if recreate.has_copy(migration) else None
    if unserved is not None:
        return unserved
    return _await_budget(migration, world, now) if world.hold else failing.in_vain(migration, world, now)


def _relied_on(migration: PodMigration, world: World) -> tuple[str, str] | None:
    """Name and UID of the copy that has to be there when the original goes."""
    copy = world.replacement if recreate.has_copy(migration) else None
    return None if copy is None else (copy.metadata.name, copy.metadata.uid)


def _await_budget(migration: PodMigration, world: World, now: datetime) -> Action:
    """The temporary budget comes before the eviction, or the workload would go unprotected meanwhile."""
    late = (migration.status.started_at or now) + world.settings.migrations.ready_timeout
    if late > now:
        return Wait(late, world.hold)
    return replace(failing.give_up(migration, world, Failure(world.hold, blocked=True), now), late=True)


_STEPS: Final[dict[str, Callable[[PodMigration, World, datetime], Action]]] = {
    "Guard": _guard,
    "Mark": _mark,
    "Evict": _evict,
    "AwaitReplacement": arrival.await_replacement,
    "Settle": arrival.settle,
}


# ---- the end


def _clear(migration: PodMigration, world: World, now: datetime) -> Action:
    """Take back every mark of ours that this migration made, then let go of the object."""
    if FINALIZER not in migration.metadata.finalizers:
        return Done()
    # Costs first, and again after the marks: what the answer to those shows, came before them and is the last.
    taken_back = surge_back.remaining(migration, world) or marking.unmark(migration, world)
    if taken_back is not None:
        return taken_back
    return _told(migration, world, now) or _release(world)


def _told(migration: PodMigration, world: World, now: datetime) -> Action | None:
    """What came of a move that failed says so; if nobody lets it for long, the move is over all the same."""
    found, ended = world.replacement, migration.status.finished_at or now
    if found is None or migration.status.phase != "Failed":
        return None
    in_time = now < ended + world.settings.migrations.ready_timeout and not migration.metadata.deletion_timestamp
    marks = marking.of_replacement(migration, world, MigrationStatus.FAILED)
    return marking.missing(found, marks) if in_time else None


def _release(world: World) -> Action:
    workload = world.workload
    marked = workload is not None and workload.kind in marking.MARKED and world.keys.moving in workload.labels
    if workload is not None and marked and not world.others_moving:
        return MarkWorkload(workload.kind, workload.name, workload.uid, None)
    return Release()


# ---- small readings


def _hurries(world: World) -> bool:
    return world.urgency is Urgency.INTERRUPTION


def _retry_at(migration: PodMigration) -> datetime | None:
    return time_of((migration.status.intent or {}).get("retryAt"))


def _blocked(migration: PodMigration) -> bool:
    return bool((migration.status.intent or {}).get("blocked"))


def _texts(reasons: tuple[Reason, ...]) -> str:
    return "; ".join(str(reason) for reason in reasons)

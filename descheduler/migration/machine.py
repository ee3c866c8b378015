"""The life of one migration: from what is written in its status and what is there, the next small step.   Pure.

    Pending -> Guard -> Mark -> Evict -> AwaitReplacement -> Settle -> Completed

Every step is decided anew from what is there, so it does not matter who decided the last one or whether it was
carried out: a process that takes over reads the status and goes on. The status says what is about to be done before
it is done. Until the eviction a move can be called off and leaves nothing behind; after it, it runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import recreate, surge
from descheduler.migration.actions import (
    Action,
    Adopt,
    Done,
    Evict,
    MarkPod,
    MarkWorkload,
    Release,
    Wait,
    Write,
    owner_json,
)
from descheduler.migration.endings import Ending
from descheduler.migration.world import World
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Reason
from policy import keys, values
from policy.values import MigrationStatus

FINALIZER: Final = keys.FINALIZER
ENDED: Final = frozenset({"Completed", "Failed", "Cancelled"})
PAST_EVICTION: Final = frozenset({"AwaitReplacement", "Settle"})
TURN_PAUSE: Final = timedelta(seconds=1)
"""Between two looks at a move that comes first, if nothing is heard of it."""
SETTLE_GRACE: Final = timedelta(seconds=10)
"""How long a replacement may be missing before the workload is asked whether it still wants one: the controller
needs a moment to see that a pod went away."""


def step(migration: PodMigration, world: World, now: datetime) -> Action:
    """What to do next."""
    status, meta = migration.status, migration.metadata
    if status.phase in ENDED:
        return _clear(migration, world)
    if FINALIZER not in meta.finalizers:
        return Done() if meta.deletion_timestamp is not None else Adopt()
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
    return _STEPS[migration.status.step](migration, world, now)


def _advance_in_mode(migration: PodMigration, world: World, now: datetime) -> Action:
    """Steps that only one mode has. What it changed is taken back by the mode itself before the move ends."""
    called_off = _called_off(migration, world) or _texts(world.objections)
    if migration.status.step == recreate.REMOVE:
        unmark = _unmark(migration, world)
        if unmark is not None:
            return unmark
    mode = surge if surge.under_way(migration) else recreate
    return _ended(mode.step(migration, world, called_off, now), now)


def _ended(found: Action | Ending, now: datetime) -> Action:
    return _end(found.phase, found.why, now) if isinstance(found, Ending) else found


def is_over(migration: PodMigration) -> bool:
    """Ended and let go of: history."""
    return migration.status.phase in ENDED and FINALIZER not in migration.metadata.finalizers


def failed(migration: PodMigration, world: World, failure: Failure, now: datetime) -> Action:
    """An action did not succeed: try again a little later, or give up.

    A budget that allows nothing right now is no fault of the move: where somebody is waiting for the node it is
    asked again and again, and otherwise the move ends without counting against the workload.
    """
    settings = world.settings.migrations
    if failure.several and not world.crowded:
        # A user's own budget came beside ours, which goes at once or is gone by now: not two budgets for good.
        failure = replace(failure, final=False, counts=False)
    attempts = migration.status.attempts + (1 if failure.counts else 0)
    over = failure.final or attempts > settings.max_retries
    if surge.under_way(migration):
        if failure.final or (over and not surge.is_going_back(migration)):
            return surge.given_up(migration, world, Ending("Failed", failure.why), now)
    elif over and migration.status.step != recreate.REMOVE:
        patient = failure.blocked and world.urgency is not Urgency.VOLUNTARY and not failure.final
        if not patient and migration.status.step not in PAST_EVICTION:
            return _give_up(migration, world, failure, now)
    pause = max(settings.retry_backoff * 2 ** min(attempts, LONGEST_PAUSE), failure.retry_after)
    intent = {**(migration.status.intent or {}), "retryAt": _text(now + pause), "blocked": failure.blocked}
    return Write({"attempts": attempts, "message": failure.why[:MESSAGE], "intent": intent})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an action had no effect."""

    why: str
    counts: bool = True
    """Whether it uses up one of the attempts."""
    blocked: bool = False
    """A disruption budget said no."""
    final: bool = False
    """Trying again cannot help."""
    several: bool = False
    """More than one disruption budget selected the pod."""
    retry_after: timedelta = timedelta()


MARKED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Workloads that say themselves what is being moved."""
MESSAGE: Final = 1024
"""Characters of a message; the rest would only be cut off by whoever shows it."""
LONGEST_PAUSE: Final = 5
"""Doublings of the pause between two attempts: half a minute with the default settings."""


# ---- before the eviction


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
    phase, why = (migration.status.intent or {}).get("ending"), migration.status.message
    if phase not in ENDED:
        phase, why = "Cancelled", _called_off(migration, world) or _texts(world.objections)
    if why and recreate.has_copy(migration):
        return recreate.back(migration, world, Ending(phase, why))
    return (_unmark(migration, world) or _end(phase, why, now)) if why else None


def _is_past_eviction(migration: PodMigration, world: World) -> bool:
    """The pod is on its way out, or gone, once its eviction was announced: calling the move off would not bring it
    back, and its replacement is on its way.
    """
    if migration.status.step != "Evict":
        return migration.status.step in PAST_EVICTION
    return world.source is None or world.source.metadata.deletion_timestamp is not None


def _give_up(migration: PodMigration, world: World, failure: Failure, now: datetime) -> Action:
    """Marks go first here too, and until they are gone the status must say that it is over: whoever looks at it in
    between would mark the pod again and go on.
    """
    phase = "Cancelled" if failure.blocked else "Failed"
    if recreate.has_copy(migration):
        return recreate.back(migration, world, Ending(phase, failure.why))
    if _unmark(migration, world) is None:
        return _end(phase, failure.why, now)
    intent = {"action": "GiveUp", "at": _text(now), "ending": phase}
    return Write({"holder": world.holder, "message": failure.why[:MESSAGE], "intent": intent})


def _take_up(migration: PodMigration, world: World, now: datetime) -> Action:
    called_off = _called_off(migration, world)
    if called_off:
        return _end("Cancelled", called_off, now)
    source = world.source
    if source is None:
        return _end("Cancelled", f"there is no pod {migration.spec.pod_ref.name} with that UID", now)
    if not source.node_name:
        return _end("Cancelled", f"pod {source.metadata.name} is not on a node", now)
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
            "startedAt": _text(now),
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
    return {"step": "Mark", "intent": {"action": "Mark", "at": _text(now)}}


def _guard(_: PodMigration, world: World, now: datetime) -> Action:
    if world.source is None:
        return _end("Cancelled", "the pod went away before it was evicted", now)
    return Write({"step": "Mark", "holder": world.holder, "intent": {"action": "Mark", "at": _text(now)}})


def _mark(migration: PodMigration, world: World, now: datetime) -> Action:
    source = world.source
    if source is None:
        return _end("Cancelled", "the pod went away before it was evicted", now)
    missing = _missing(source, _source_marks(migration, world, MigrationStatus.IN_PROGRESS))
    if missing is not None:
        return missing
    marked = _mark_workload(migration, world)
    if marked is not None:
        return marked
    seen = (migration.status.started_at or now) + world.settings.migrations.hint_propagation
    if not _hurries(world) and seen > now:
        return Wait(seen, "the webhook is being told where the replacement should go")
    if world.ahead and world.urgency is Urgency.VOLUNTARY:
        return Wait(now + TURN_PAUSE, f"{world.ahead} of the same owner comes first")
    return _begin(migration, source, world, now)


def _begin(migration: PodMigration, source: Pod, world: World, now: datetime) -> Action:
    """Announce the first thing that the mode does to the workload."""
    if surge.is_mode(migration):
        return _ended(surge.begin(source, world, now), now)
    if recreate.is_mode(migration):
        return recreate.begin(migration, source, world, now)
    return Write({"step": "Evict", "holder": world.holder, "intent": _to_evict(source, world, now)})


def _to_evict(source: Pod, world: World, now: datetime) -> dict[str, Any]:
    return {"action": "Evict", "at": _text(now), "uid": source.metadata.uid, "known": list(world.young)}


def _evict(migration: PodMigration, world: World, now: datetime) -> Action:
    source = world.source
    if source is None or source.metadata.deletion_timestamp is not None:
        intent = {**(migration.status.intent or {}), "action": "AwaitReplacement", "evictedAt": _text(now)}
        intent.pop("retryAt", None)
        return Write({"step": "AwaitReplacement", "holder": world.holder, "intent": intent})
    missing = _missing(source, _source_marks(migration, world, MigrationStatus.IN_PROGRESS))
    if missing is not None:
        return missing if _hurries(world) else Write({"step": "Mark", "holder": world.holder})
    if world.hold:
        return _await_budget(migration, world, now)
    if not world.permitted:
        return _await_turn(migration, now)
    grace = world.settings.migrations.grace_period_seconds
    return Evict(source.metadata.name, source.metadata.uid, source.metadata.resource_version, grace)


def _await_turn(migration: PodMigration, now: datetime) -> Action:
    """Said once in the status, where people look; the budget itself tells when to look again."""
    if _blocked(migration):
        return Wait(now + TURN_PAUSE, migration.status.message)
    intent = {**(migration.status.intent or {}), "blocked": True}
    return Write({"message": "PDB_NO_BUDGET: its disruption budget allows no eviction now", "intent": intent})


def _await_budget(migration: PodMigration, world: World, now: datetime) -> Action:
    """The temporary budget comes before the eviction, or the workload would go unprotected meanwhile."""
    late = (migration.status.started_at or now) + world.settings.migrations.ready_timeout
    if late > now:
        return Wait(late, world.hold)
    return _give_up(migration, world, Failure(world.hold, blocked=True), now)


# ---- after it


def _await_replacement(migration: PodMigration, world: World, now: datetime) -> Action:
    found, claimed = world.replacement, migration.status.replacement
    if found is not None and (
        claimed is None or claimed.uid != found.metadata.uid or claimed.node != found.node_name
    ):
        return Write(_claim(migration, world, found))
    if found is not None and found.ready:
        landed = {"onTarget": found.node_name == world.goal} if world.goal else {}
        return Write({"step": "Settle", "holder": world.holder, **landed})
    if world.namespace_terminating or (found is None and world.workload is None and _waited(migration, now)):
        return _end("Cancelled", "the workload was deleted; nothing replaces the pod", now)
    if found is None and not world.pending and _satisfied(world) and _waited(migration, now):
        return _end("Completed", "the workload was scaled down meanwhile and needs no replacement", now)
    late = (_evicted_at(migration) or now) + world.settings.migrations.ready_timeout
    if late > now:
        return Wait(late, "the replacement is not Ready yet" if found is not None else "no replacement yet")
    what = f"replacement {found.metadata.name} is not Ready" if found is not None else "no replacement is on a node"
    return replace(_end("Failed", f"{what} after {world.settings.migrations.ready_timeout}", now), late=True)


def _settle(migration: PodMigration, world: World, now: datetime) -> Action:
    found = world.replacement
    if found is not None:
        missing = _missing(found, _replacement_marks(migration, world, MigrationStatus.COMPLETED))
        if missing is not None:
            return missing
    return _end("Completed", _where(migration), now)


_STEPS: Final[dict[str, Callable[[PodMigration, World, datetime], Action]]] = {
    "Guard": _guard,
    "Mark": _mark,
    "Evict": _evict,
    "AwaitReplacement": _await_replacement,
    "Settle": _settle,
}


# ---- the end


def _end(phase: str, message: str, now: datetime, **more: Any) -> Write:
    """Write down how it ended; what it left in the cluster is cleared away after that."""
    event = {"Completed": "MoveCompleted", "Failed": "MoveFailed", "Cancelled": "MoveCancelled"}[phase]
    return Write(
        {"phase": phase, "message": message[:MESSAGE], "finishedAt": _text(now), **more}, event=f"{event} {message}"
    )


def _clear(migration: PodMigration, world: World) -> Action:
    """Take back every mark of ours that this migration made, then let go of the object."""
    if FINALIZER not in migration.metadata.finalizers:
        return Done()
    unmark = _unmark(migration, world)
    if unmark is not None:
        return unmark
    found = world.replacement
    if found is not None and migration.status.phase == "Failed":
        missing = _missing(found, _replacement_marks(migration, world, MigrationStatus.FAILED))
        if missing is not None:
            return missing
    return _release(world)


def _release(world: World) -> Action:
    workload = world.workload
    if workload is not None and world.keys.moving in workload.labels and not world.others_moving:
        return MarkWorkload(workload.kind, workload.name, workload.uid, None)
    return Release()


# ---- marks


def _source_marks(
    migration: PodMigration, world: World, status: MigrationStatus
) -> tuple[dict[str, str], dict[str, str]]:
    ours = world.keys
    labels = {ours.migration_id: _id(migration), ours.migration_status: status.value}
    if migration.spec.strategy:
        labels[ours.migration_reason] = values.label_for_node(migration.spec.strategy)
    started = migration.status.started_at
    return labels, {ours.migration_time: values.format_time(started)} if started is not None else {}


def _replacement_marks(
    migration: PodMigration, world: World, status: MigrationStatus
) -> tuple[dict[str, str], dict[str, str]]:
    """What the webhook gave it, and where it was down, all of it: the move can be read from the pod alone."""
    ours, resolved = world.keys, migration.status.resolved
    labels, annotations = _source_marks(migration, world, status)
    if resolved is not None:
        labels[ours.migrated_from] = values.label_for_node(resolved.source_node)
        annotations[ours.original_pod] = resolved.pod_uid
        if world.goal:
            annotations[ours.migration_target] = world.goal
    annotations[ours.original_pod_name] = migration.spec.pod_ref.name
    return labels, annotations


def _missing(pod: Pod, marks: tuple[dict[str, str], dict[str, str]]) -> MarkPod | None:
    meta = pod.metadata
    labels: dict[str, str | None] = {key: value for key, value in marks[0].items() if meta.labels.get(key) != value}
    annotations: dict[str, str | None] = {
        key: value for key, value in marks[1].items() if meta.annotations.get(key) != value
    }
    return MarkPod(meta.name, meta.uid, labels, annotations) if labels or annotations else None


def _unmark(migration: PodMigration, world: World) -> MarkPod | None:
    source = world.source
    if source is None or source.metadata.deletion_timestamp is not None:
        return None
    meta = source.metadata
    if meta.labels.get(world.keys.migration_id) != _id(migration):
        return None
    labels = {key: None for key in world.keys.migration_labels if key in meta.labels}
    annotations = {key: None for key in world.keys.migration_annotations if key in meta.annotations}
    return MarkPod(meta.name, meta.uid, labels, annotations)


def _mark_workload(migration: PodMigration, world: World) -> MarkWorkload | None:
    workload = world.workload
    if workload is None or workload.kind not in MARKED or workload.object is None:
        return None
    if world.keys.moving in workload.labels:
        return None
    return MarkWorkload(workload.kind, workload.name, workload.uid, _id(migration))


# ---- small readings


def _hurries(world: World) -> bool:
    return world.urgency is Urgency.INTERRUPTION


def _id(migration: PodMigration) -> str:
    return values.label_for_node(migration.metadata.name)


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


def _retry_at(migration: PodMigration) -> datetime | None:
    return _time((migration.status.intent or {}).get("retryAt"))


def _blocked(migration: PodMigration) -> bool:
    return bool((migration.status.intent or {}).get("blocked"))


def _evicted_at(migration: PodMigration) -> datetime | None:
    return _time((migration.status.intent or {}).get("evictedAt"))


def _time(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _texts(reasons: tuple[Reason, ...]) -> str:
    return "; ".join(str(reason) for reason in reasons)

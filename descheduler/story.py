"""The story of each move in the log: one line for everything that happened to it, once the API has accepted it.

Reads what the machine asked for and what came back, as the status holds it before and after; decides nothing. Waiting
is not told, nor is looking again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from cluster.objects import PodMigration
from descheduler import memory
from descheduler.migration import recreate_turn, surge_turn
from descheduler.migration.actions import (
    Action,
    Adopt,
    CreateCopy,
    Evict,
    MarkPod,
    Release,
    Scale,
    Write,
    takes_marks_off,
)
from descheduler.migration.endings import time_of
from descheduler.migration.machine import ENDED
from descheduler.migration.migrator import SLOW_DOWN
from descheduler.migration.outcomes import Done, Failure, Outcome
from descheduler.proposal import Mode
from telemetry.catalogue import Log
from telemetry.logs import Logger

MANUAL: Final = "Manual"
"""The strategy, for metrics and logs, of moves that somebody asked for by hand."""
FIRST: Final = "Guard"
"""The step of a move that was not taken up yet."""
MARKED: Final = frozenset({"Mark", "Evict"})
"""Steps in which the pod carries marks, and nothing else has been changed."""
BEGAN: Final = {
    "AwaitReplacement": "evictedAt",
    "AwaitAvailable": "scaledAt",
    "SurgeDown": "downAt",
    "AwaitReady": "at",
}
"""Where the intent says since when a step lasts; the others count from the start of the move."""


class Story:
    """One per process. `guided`: whether the webhook tells replacements where to go."""

    def __init__(self, log: Logger, guided: Callable[[], bool]) -> None:
        self._log = log
        self._guided = guided

    def performed(self, migration: PodMigration, action: Action, outcome: Outcome, now: datetime) -> None:
        """An action of a migration was tried."""
        meta = migration.metadata
        log = self._log.bind(migration=meta.name, namespace=meta.namespace, pod=migration.spec.pod_ref.name)
        if isinstance(outcome, Failure):
            _failed(migration, action, outcome, log)
        if not isinstance(outcome, Done):
            return
        match action:
            case Evict():
                log.emit(Log.EVICTED, sourceNode=_source(migration), strategy=strategy(migration))
            case Scale(before=before, after=after):
                entry = Log.SURGED if after > before else Log.SURGE_ENDED
                log.emit(entry, workload=f"{action.kind}/{action.name}", count=after)
            case CreateCopy(name=name):
                log.emit(Log.COPY_CREATED, newPod=name, preferredNode=_target(migration))
            case MarkPod() if _takes_marks_off(migration, action):
                reason = str((migration.status.intent or {}).get("ending", "Cancelled")).lower()
                log.emit(Log.ROLLED_BACK, step=migration.status.step, reason=reason)
            case Release():
                log.emit(Log.CLEANED_UP, seconds=_between(migration.status.finished_at, now))
            case Write() if outcome.migration is not None:
                self._written(migration, action, outcome.migration, log, now)

    def _written(self, before: PodMigration, action: Write, after: PodMigration, log: Logger, now: datetime) -> None:
        if action.late:
            log.emit(Log.TIMED_OUT, step=before.status.step or FIRST, seconds=_between(_since(before), now))
        if action.ready:
            landed = after.status.replacement
            log.emit(
                Log.REPLACEMENT_READY,
                newPod=landed.name if landed is not None else None,
                targetNode=_landed(after),
                onTarget=_on_target(after),
                seconds=_between(after.status.started_at, now),
            )
        _retried(before, after, log, now)
        if not action.event:
            return
        if after.status.phase in ENDED:
            _ended(before, after, log)
            return
        self._started(after, log)

    def _started(self, migration: PodMigration, log: Logger) -> None:
        log.emit(
            Log.MIGRATION_STARTED,
            strategy=strategy(migration),
            mode=mode(migration),
            sourceNode=_source(migration),
            targetNode=_target(migration),
            workload=workload(migration),
        )
        if self._guided():
            # The webhook reads the very status that was written.
            log.emit(Log.HINT_PUBLISHED, preferredNode=_target(migration), avoidNode=_source(migration))


def _failed(migration: PodMigration, action: Action, failure: Failure, log: Logger) -> None:
    """What cannot be written down is told here; of all the rest tells the write that says when it is tried again."""
    if isinstance(action, Write | Adopt | Release) or migration.status.phase in ENDED:
        log.emit(
            Log.RETRIED,
            step=migration.status.step or FIRST,
            attempt=migration.status.attempts + 1,
            delaySeconds=max(SLOW_DOWN, failure.retry_after).total_seconds(),
            error=failure.why,
        )


def _retried(before: PodMigration, after: PodMigration, log: Logger, now: datetime) -> None:
    again = time_of((after.status.intent or {}).get("retryAt"))
    if again is None or again == time_of((before.status.intent or {}).get("retryAt")):
        return
    log.emit(
        Log.RETRIED,
        step=after.status.step or FIRST,
        attempt=max(1, after.status.attempts, int((after.status.intent or {}).get("tries", 0))),
        delaySeconds=_between(now, again),
        error=after.status.message,
    )


def _ended(before: PodMigration, after: PodMigration, log: Logger) -> None:
    status, reason = after.status, outcome(after)
    if status.phase != "Completed" and _is_reversed(before, status.message):
        log.emit(Log.ROLLED_BACK, step=before.status.step, reason=reason)
    match status.phase:
        case "Completed":
            log.emit(
                Log.MIGRATION_FINISHED,
                reason=reason,
                sourceNode=_source(after),
                targetNode=_landed(after),
                onTarget=_on_target(after),
                seconds=seconds(after),
            )
        case "Failed":
            step = status.step or FIRST
            log.emit(
                Log.MIGRATION_FAILED, reason=reason, step=step, attempt=max(1, status.attempts), detail=status.message
            )
        case _:
            log.emit(Log.MIGRATION_CANCELLED, reason=reason, step=status.step or FIRST, detail=status.message)


# ---- what a move is, for everybody who tells of it


def strategy(migration: PodMigration) -> str:
    """Who wanted it."""
    return migration.spec.strategy or MANUAL


def mode(migration: PodMigration) -> str:
    """How it is carried out."""
    resolved = migration.status.resolved
    return (resolved.mode if resolved is not None else "") or Mode.EVICT.value


def workload(migration: PodMigration) -> str | None:
    """`Deployment/web`; None for a pod on its own."""
    resolved = migration.status.resolved
    found = resolved.workload if resolved is not None else None
    return f"{found.kind}/{found.name}" if found is not None else None


def seconds(migration: PodMigration) -> float:
    """How long it took."""
    began, ended = migration.status.started_at, migration.status.finished_at
    return (ended - began).total_seconds() if began is not None and ended is not None else 0.0


def outcome(migration: PodMigration) -> str:
    """How it ended, in one word."""
    match memory.outcome(migration):
        case memory.Outcome.BOUNCED:
            return "source"
        case memory.Outcome.FAILED:
            return "failed"
        case memory.Outcome.NOTHING:
            return "cancelled"
        case _:
            return "onTarget" if migration.status.on_target else "elsewhere"


# ---- small readings


def _takes_marks_off(migration: PodMigration, action: MarkPod) -> bool:
    """The way back of a move that had changed nothing but the marks on its pod."""
    return takes_marks_off(action) and migration.status.phase not in ENDED and migration.status.step in MARKED


def _is_reversed(before: PodMigration, message: str) -> bool:
    """Whether a way back was gone to its end: what was given up on it, or went with its namespace, was not."""
    status, intent = before.status, before.status.intent or {}
    return (
        status.step in {surge_turn.BACK, recreate_turn.REMOVE}
        and not intent.get("left")
        and message == intent.get("why")
    )


def _source(migration: PodMigration) -> str | None:
    resolved = migration.status.resolved
    return (resolved.source_node if resolved is not None else "") or None


def _target(migration: PodMigration) -> str | None:
    resolved = migration.status.resolved
    return (resolved.target_node if resolved is not None else "") or None


def _landed(migration: PodMigration) -> str | None:
    found = migration.status.replacement
    return (found.node if found is not None else "") or None


def _on_target(migration: PodMigration) -> bool:
    """Written down when the pod has left; a replacement that comes first is Ready before that."""
    said = migration.status.on_target
    return bool(said) if said is not None else _landed(migration) == _target(migration) is not None


def _since(migration: PodMigration) -> datetime | None:
    noted = time_of((migration.status.intent or {}).get(BEGAN.get(migration.status.step, "")))
    return noted or migration.status.started_at


def _between(since: datetime | None, until: datetime) -> float | None:
    return None if since is None else round(max(0.0, (until - since).total_seconds()), 3)

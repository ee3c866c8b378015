"""Tells people what is moved and what is not: Events, metrics and log lines.   Decides nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, Protocol

from cluster.eventlog import Severity, Subject, Topic
from cluster.objects import Pod, PodMigration
from descheduler import memory
from descheduler.gauges import Reading, Share
from descheduler.migration.actions import Action, Evict, Write
from descheduler.migration.executor import Done, Outcome
from descheduler.migration.machine import ENDED, Failure
from descheduler.node_state import Key
from descheduler.plan import Plan
from descheduler.proposal import Refusal
from descheduler.reasons import Code
from descheduler.requests import Said
from telemetry.catalogue import Log
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric

MANUAL: Final = "Manual"
"""The strategy, for metrics, of moves that somebody asked for by hand."""
REMEMBERED: Final = 10_000
"""Pods whose last refusal is kept, so that only a changed one is told."""

MISREAD_AT_ONCE: Final = 50
"""Mistakes of people told in one look, so that they leave room for what happens; the rest follows with the next."""

REFUSED: Final = Topic("MoveRefused", "Plan")
TOPICS: Final = {
    "MoveStarted": Topic("MoveStarted", "Move"),
    "MoveCompleted": Topic("MoveCompleted", "Move"),
    "MoveFailed": Topic("MoveFailed", "Move", Severity.WARNING),
    "MoveCancelled": Topic("MoveCancelled", "Move"),
}
BLOCKED: Final = Topic("EvictionBlocked", "Evict", Severity.WARNING)


class Recorder(Protocol):
    """Who sends Events: `cluster.events.Recorder`."""

    def record(self, subject: Subject, topic: Topic, note: str, *, related: Subject | None = None) -> bool: ...


class Teller:
    """One per process; called on the thread of the state."""

    def __init__(self, recorder: Recorder, meter: Meter, log: Logger) -> None:
        self._recorder = recorder
        self._meter = meter
        self._log = log
        self._refused: dict[Key, tuple[str, ...]] = {}
        self._misread: set[Said] = set()

    # ---- plans

    def planned(self, plan: Plan, seconds: float, now: datetime) -> None:
        """One pass has made a plan."""
        self._meter.observe(Metric.PASS_SECONDS, seconds)
        self._meter.set(Metric.LAST_GOOD_PASS_TIMESTAMP, now.timestamp())
        for refusal in plan.refusals:
            for code in {reason.code.value for reason in refusal.reasons}:
                self._meter.inc(Metric.REFUSALS, strategy=refusal.strategy, reason=code)
            self._tell_refusal(refusal)
        asked = Counter((*(it.strategy for it in plan.moves), *(it.strategy for it in plan.refusals)))
        for strategy, count in asked.items():
            self._meter.inc(Metric.PROPOSALS, count, strategy=strategy)
        if plan.moves or plan.refusals:
            self._log.emit(
                Log.PASS_FINISHED, seconds=round(seconds, 4), moves=len(plan.moves), refusals=len(plan.refusals)
            )

    def gauged(self, readings: Iterable[Reading]) -> None:
        """How things stand."""
        for reading in readings:
            self._meter.set(reading.metric, reading.value, **reading.labels)

    def shared(self, shares: Mapping[str, Share]) -> None:
        """How much runs on spot, in all and by namespace."""
        whole = Share()
        for share in shares.values():
            whole = whole.plus(share)
        self._meter.set(Metric.SPOT_SHARE, whole.ratio)
        self._meter.fill(Metric.NAMESPACE_SPOT_SHARE, {name: share.ratio for name, share in shares.items()})

    def misread(self, found: Iterable[Said]) -> None:
        """Values that mean nothing: each is told once, as long as it stands."""
        standing = dict.fromkeys(found)
        self._misread.intersection_update(standing)
        for said in itertools.islice((it for it in standing if it not in self._misread), MISREAD_AT_ONCE):
            if self._recorder.record(said.subject, said.topic, said.note):
                self._misread.add(said)
                self._meter.inc(Metric.VALUES_IGNORED)
                where = said.subject
                self._log.emit(
                    Log.VALUE_IGNORED, namespace=where.namespace, name=f"{where.kind}/{where.name}", detail=said.note
                )

    def _tell_refusal(self, refusal: Refusal) -> None:
        """Only what is new: the codes, not the sentences, whose numbers change from pass to pass. A pod that is
        being moved was not refused anything, whatever else is said of it meanwhile; one that waits for a move of ours
        gets its turn.
        """
        key, reasons = refusal.pod.metadata.key, [it for it in refusal.reasons if not it.routine]
        codes = tuple(sorted({reason.code.value for reason in reasons}))
        if not codes or self._refused.get(key) == codes or Code.ALREADY_MIGRATING in codes:
            return
        if len(self._refused) >= REMEMBERED:
            self._refused.clear()
        self._refused[key] = codes
        note = f"{refusal.strategy}: " + "; ".join(map(str, reasons))
        self._recorder.record(_pod(refusal.pod), REFUSED, note)

    # ---- moves

    def performed(self, migration: PodMigration, action: Action, outcome: Outcome) -> None:
        """An action of a migration was tried."""
        log = self._log.bind(migration=migration.metadata.name, namespace=migration.metadata.namespace)
        if isinstance(outcome, Failure):
            self._meter.inc(Metric.STEP_RETRIES, step=migration.status.step or "Guard")
            if outcome.blocked and not outcome.ours:
                self._meter.inc(Metric.EVICTIONS_BLOCKED)
                self._record(migration, BLOCKED, outcome.why)
            attempt = migration.status.attempts + 1
            log.emit(Log.RETRIED, step=migration.status.step, attempt=attempt, error=outcome.why)
        if not isinstance(outcome, Done):
            return
        if isinstance(action, Evict):
            source = migration.status.resolved.source_node if migration.status.resolved is not None else ""
            log.emit(Log.EVICTED, sourceNode=source, strategy=_strategy(migration))
        if isinstance(action, Write) and action.late:
            self._meter.inc(Metric.STEP_TIMEOUTS, step=migration.status.step or "Guard")
        if isinstance(action, Write) and action.event:
            word, _, note = action.event.partition(" ")
            # As it was written: the first write is the one that says which workload and node it is about.
            self._record(outcome.migration or migration, TOPICS[word], note)
            if outcome.migration is not None:
                self._written(outcome.migration, log)

    def _written(self, migration: PodMigration, log: Logger) -> None:
        status = migration.status
        if status.phase not in ENDED:
            resolved = status.resolved
            log.emit(
                Log.MIGRATION_STARTED,
                strategy=_strategy(migration),
                mode=(resolved.mode if resolved is not None else "") or "Evict",
                sourceNode=resolved.source_node if resolved is not None else "",
                targetNode=resolved.target_node if resolved is not None else "",
            )
            return
        took = _seconds(migration)
        outcome, mode = _outcome(migration), _mode(migration)
        self._meter.inc(Metric.MIGRATIONS, strategy=_strategy(migration), mode=mode, outcome=outcome)
        self._meter.observe(Metric.MIGRATION_SECONDS, took, mode=mode, outcome=outcome)
        match status.phase:
            case "Completed":
                log.emit(Log.MIGRATION_FINISHED, reason=outcome, seconds=took, onTarget=bool(status.on_target))
            case "Failed":
                self._meter.inc(Metric.ROLLBACKS, step=status.step or "Guard")
                log.emit(Log.MIGRATION_FAILED, reason=outcome, step=status.step, detail=status.message)
            case _:
                log.emit(Log.MIGRATION_CANCELLED, reason=status.message, step=status.step)

    def _record(self, migration: PodMigration, topic: Topic, note: str) -> None:
        """On the migration, the pod, the workload and the node: wherever somebody may look."""
        for subject in _subjects(migration):
            self._recorder.record(subject, topic, f"{migration.metadata.name}: {note}")


def _subjects(migration: PodMigration) -> Iterator[Subject]:
    meta, resolved = migration.metadata, migration.status.resolved
    yield Subject("spotshift.dev/v1alpha1", "PodMigration", meta.name, meta.namespace, meta.uid)
    uid = migration.spec.pod_ref.uid or (resolved.pod_uid if resolved is not None else "")
    yield Subject("v1", "Pod", migration.spec.pod_ref.name, meta.namespace, uid)
    if resolved is None:
        return
    workload = resolved.workload
    if workload is not None:
        yield Subject(workload.api_version, workload.kind, workload.name, meta.namespace, workload.uid)
    if resolved.source_node:
        yield Subject("v1", "Node", resolved.source_node)


def _pod(pod: Pod) -> Subject:
    return Subject("v1", "Pod", pod.metadata.name, pod.metadata.namespace, pod.metadata.uid)


def _strategy(migration: PodMigration) -> str:
    return migration.spec.strategy or MANUAL


def _mode(migration: PodMigration) -> str:
    resolved = migration.status.resolved
    return (resolved.mode if resolved is not None else "") or "Evict"


def _seconds(migration: PodMigration) -> float:
    began, ended = migration.status.started_at, migration.status.finished_at
    return (ended - began).total_seconds() if began is not None and ended is not None else 0.0


def _outcome(migration: PodMigration) -> str:
    match memory.outcome(migration):
        case memory.Outcome.BOUNCED:
            return "source"
        case memory.Outcome.FAILED:
            return "failed"
        case memory.Outcome.NOTHING:
            return "cancelled"
        case _:
            return "onTarget" if migration.status.on_target else "elsewhere"

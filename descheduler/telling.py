"""Tells people what is moved and what is not: Events, metrics and log lines.   Decides nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

from cluster.eventlog import Severity, Subject, Topic
from cluster.objects import PodMigration
from descheduler import gauges, story
from descheduler.gauges import Reading, Share
from descheduler.memory import Rest
from descheduler.migration.actions import Action, Write
from descheduler.migration.machine import ENDED
from descheduler.migration.outcomes import Done, Failure, Outcome
from descheduler.node_state import Key
from descheduler.plan import Plan
from descheduler.proposal import Refusal
from descheduler.reasons import Code
from descheduler.requests import Said, pod_subject
from descheduler.story import Story
from descheduler.strategies.third_party import LeftOut
from telemetry.catalogue import Log
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric

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
LEFT_OUT: Final = Topic("StrategyLeftOut", "Plan", Severity.WARNING)
BLOCKED: Final = Topic("EvictionBlocked", "Evict", Severity.WARNING)


class Recorder(Protocol):
    """Who sends Events: `cluster.events.Recorder`."""

    def record(self, subject: Subject, topic: Topic, note: str, *, related: Subject | None = None) -> bool: ...


class Teller:
    """One per process; called on the thread of the state. `guided`: whether replacements are told where to go;
    `settings`: the object in which people look for what is wrong with the settings, if there is one.
    """

    def __init__(
        self,
        recorder: Recorder,
        meter: Meter,
        log: Logger,
        *,
        guided: Callable[[], bool] = lambda: True,
        settings: Subject | None = None,
    ) -> None:
        self._recorder = recorder
        self._meter = meter
        self._log = log
        self._settings = settings
        self._story = Story(log, guided)
        self._passes = 0
        self._held = ""
        """Why nothing new is begun, as it was told last."""
        self._rests: dict[str, datetime] | None = None
        """Until when workloads rest, as it was told; None: whoever led before has told it."""
        self._refused: dict[Key, tuple[str, ...]] = {}
        self._misread: set[Said] = set()
        self._left_out: frozenset[LeftOut] = frozenset()

    # ---- plans

    def began(self, cause: str, objects: int) -> None:
        """A pass begins; what is told until the next one is told of it."""
        self._passes += 1
        self._log.emit(Log.PASS_STARTED, passId=self._passes, cause=cause, objects=objects)

    def planned(self, plan: Plan, seconds: float, now: datetime) -> None:
        """One pass has made a plan."""
        self._meter.observe(Metric.PASS_SECONDS, seconds)
        self._meter.set(Metric.LAST_GOOD_PASS_TIMESTAMP, now.timestamp())
        for refusal in plan.refusals:
            for code in {reason.code.value for reason in refusal.reasons}:
                self._meter.inc(Metric.REFUSALS, strategy=refusal.strategy, reason=code)
            self._tell_refusal(refusal)
        self._tell_left_out(plan.left_out)
        asked = Counter((*(it.strategy for it in plan.moves), *(it.strategy for it in plan.refusals)))
        for strategy, count in asked.items():
            self._meter.inc(Metric.PROPOSALS, count, strategy=strategy)
        # A cluster at rest should not fill the log; who asks to see every pass begin, sees it end as well.
        if plan.moves or plan.refusals or self._log.writes(Log.PASS_STARTED):
            self._log.emit(
                Log.PASS_FINISHED,
                passId=self._passes,
                seconds=round(seconds, 4),
                moves=len(plan.moves),
                refusals=len(plan.refusals),
            )

    def held(self, why: str) -> None:
        """Why nothing new is begun; empty if it is. Told when it begins, and when the reason is another."""
        if why and why != self._held:
            self._log.emit(Log.OBSERVE_ONLY, cause=why)
        self._held = why

    def rested(self, rests: Mapping[str, Rest], now: datetime) -> None:
        """Who is left alone for a while: told when a rest begins, and when another move makes it longer."""
        for subject, rest in rests.items() if self._rests is not None else ():
            known = (self._rests or {}).get(subject)
            if known is None or known < rest.until:
                last = rest.after
                self._log.emit(
                    Log.COOLING_DOWN,
                    namespace=last.metadata.namespace,
                    pod=last.spec.pod_ref.name,
                    workload=story.workload(last),
                    reason=story.outcome(last),
                    delaySeconds=round((rest.until - now).total_seconds(), 1),
                )
        self._rests = {subject: rest.until for subject, rest in rests.items()}

    def resigned(self) -> None:
        """Somebody else leads, and tells."""
        self._rests = None
        self.gauged(gauges.none())
        self.shared({})

    def failed(self, error: Exception) -> None:
        """A defect of ours kept a move from being written down, or from being taken a step further."""
        self._log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
        self._meter.inc(Metric.INTERNAL_ERRORS)

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

    def _tell_left_out(self, found: Sequence[LeftOut]) -> None:
        """Each is told once, as long as it stands."""
        for it in found:
            if it not in self._left_out:
                self._log.emit(Log.STRATEGY_LEFT_OUT, strategy=it.strategy, detail=it.why)
                if self._settings is not None:
                    self._recorder.record(self._settings, LEFT_OUT, str(it))
        self._left_out = frozenset(found)

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
        self._recorder.record(pod_subject(refusal.pod), REFUSED, note)
        owner = refusal.pod.metadata.controller
        self._log.emit(
            Log.PROPOSAL_REFUSED,
            passId=self._passes,
            namespace=key[0],
            pod=key[1],
            strategy=refusal.strategy,
            node=refusal.pod.node_name or None,
            reason=",".join(codes),
            detail=note,
            workload=f"{owner.kind}/{owner.name}" if owner is not None else None,
        )

    # ---- moves

    def performed(self, migration: PodMigration, action: Action, outcome: Outcome, now: datetime) -> None:
        """An action of a migration was tried."""
        self._story.performed(migration, action, outcome, now)
        step = migration.status.step or story.FIRST
        if isinstance(outcome, Failure):
            self._meter.inc(Metric.STEP_RETRIES, step=step)
            if outcome.blocked and not outcome.ours:
                self._meter.inc(Metric.EVICTIONS_BLOCKED)
                self._record(migration, BLOCKED, outcome.why)
        if not isinstance(outcome, Done) or not isinstance(action, Write):
            return
        if action.late:
            self._meter.inc(Metric.STEP_TIMEOUTS, step=step)
        if action.event:
            word, _, note = action.event.partition(" ")
            # As it was written: the first write is the one that says which workload and node it is about.
            self._record(outcome.migration or migration, TOPICS[word], note)
            if outcome.migration is not None and outcome.migration.status.phase in ENDED:
                self._count(outcome.migration)

    def _count(self, migration: PodMigration) -> None:
        ended, mode = story.outcome(migration), story.mode(migration)
        self._meter.inc(Metric.MIGRATIONS, strategy=story.strategy(migration), mode=mode, outcome=ended)
        self._meter.observe(Metric.MIGRATION_SECONDS, story.seconds(migration), mode=mode, outcome=ended)
        if migration.status.phase == "Failed":
            self._meter.inc(Metric.ROLLBACKS, step=migration.status.step or story.FIRST)

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

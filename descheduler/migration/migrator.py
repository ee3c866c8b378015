"""Drives every open migration: asks the machine for the next step, has it carried out, and asks again.

`turn` runs on the thread that owns the state; requests run on a few threads of their own and come back through a
queue. Of one migration at most one action is under way. What an answer shows is put into the state at once, because
the watch may be slower than we are, and deciding on an old status would only be refused.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Executor as Pool
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

import msgspec

from cluster.objects import Deployment, PodMigration, ReplicaSet
from cluster.store import is_newer
from descheduler import interruption
from descheduler.crew import Crew, Rank
from descheduler.migration import failing, machine, recreate_back, temporary_budget
from descheduler.migration.actions import (
    Action,
    Adopt,
    Done,
    Evict,
    Release,
    Scale,
    Wait,
    Write,
    begins,
    takes_marks_off,
)
from descheduler.migration.outcomes import Done as Accepted
from descheduler.migration.outcomes import Failure, Outcome, Overtaken, Shown
from descheduler.migration.world import World
from descheduler.node_state import Key
from descheduler.state import ClusterState

LOOK_AGAIN: Final = timedelta(milliseconds=500)
"""After an answer that says the world has changed: the watch will usually have told us before."""
RANKS: Final = {"": Rank.TAKE_UP, "Mark": Rank.MARK, "Evict": Rank.MARK, "AwaitAvailable": Rank.MARK}
"""By step: the nearer to the eviction, the sooner."""
SLOW_DOWN: Final = timedelta(seconds=5)
"""After a request that failed for reasons of the connection, if even writing that down fails, and after a defect."""


class Judge(Protocol):
    """Sees the world for one migration: guards, cause and target are its business."""

    def __call__(self, migration: PodMigration, state: ClusterState, now: datetime) -> World: ...


class Listener(Protocol):
    """Who tells people and counts."""

    def performed(self, migration: PodMigration, action: Action, outcome: Outcome, now: datetime) -> None: ...
    def failed(self, error: Exception) -> None: ...


@dataclass(frozen=True, slots=True)
class Report:
    """What came of an action."""

    key: Key
    migration: PodMigration
    action: Action
    outcome: Outcome


class Migrator:
    """One per process; acts only in the turns of a leader."""

    def __init__(
        self,
        perform: Callable[[PodMigration, Action], Outcome],
        judge: Judge,
        listener: Listener,
        *,
        pool: Pool,
        wake: Callable[[], None],
        leading: Callable[[], bool] = lambda: True,
        stopped: Callable[[], str] = lambda: "",
        crew: Crew | None = None,
    ) -> None:
        self._perform = perform
        self._judge = judge
        self._listener = listener
        self._pool = pool
        self._crew = crew
        self._wake = wake
        self._leading = leading
        self._stopped = stopped
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._under_way: set[Key] = set()
        self._rest: dict[Key, datetime] = {}
        """Until when nothing is done for a migration, though it may be over or gone by then."""

    @property
    def idle(self) -> bool:
        """Whether no request is under way."""
        return not self._under_way

    @property
    def resting(self) -> set[Key]:
        """Migrations that wait before anything more is done for them."""
        return set(self._rest)

    def turn(self, state: ClusterState, now: datetime) -> datetime | None:
        """Take in what came back, start what is due; when to come again if nothing happens."""
        while not self._reports.empty():
            report = self._reports.get()
            try:
                self._take(report, state, now)
            except Exception as error:  # noqa: BLE001 - see _set_apart
                self._set_apart(report.key, error, now)
        self._rest = {key: until for key, until in self._rest.items() if until > now}
        due = (self._next_look(key, migration, state, now) for key, migration in list(state.migrations.items()))
        return min((at for at in due if at is not None), default=None)

    def _next_look(self, key: Key, migration: PodMigration, state: ClusterState, now: datetime) -> datetime | None:
        try:
            return self._advance(key, migration, state, now)
        except Exception as error:  # noqa: BLE001 - see _set_apart
            return self._set_apart(key, error, now)

    def _set_apart(self, key: Key, error: Exception, now: datetime) -> datetime:
        """A defect that shows with one migration, which anybody may have written, must not hold up all others."""
        self._listener.failed(error)
        self._rest[key] = now + SLOW_DOWN
        return self._rest[key]

    def _advance(self, key: Key, migration: PodMigration, state: ClusterState, now: datetime) -> datetime | None:
        if key in self._under_way or machine.is_over(migration):
            return None
        rest = self._rest.get(key)
        if rest is not None:
            return rest
        action = machine.step(migration, self._judge(migration, state, now), now)
        if isinstance(action, Wait):
            return action.until
        if not isinstance(action, Done):
            self._start(key, migration, action, state)
        return None

    def _start(self, key: Key, migration: PodMigration, action: Action, state: ClusterState) -> None:
        self._under_way.add(key)
        self._lane(migration, action, state).submit(self._run, key, migration, action)

    def _lane(self, migration: PodMigration, action: Action, state: ClusterState) -> Pool:
        """Moves off a node that is being lost do not stand in line with the others."""
        if self._crew is None or migration.spec.strategy != interruption.STRATEGY:
            return self._pool
        if isinstance(action, Evict):
            return self._crew.at(Rank.EVICT, alone=_budgets(migration.metadata.namespace, action.name, state))
        urgent = isinstance(action, Scale)
        return self._crew.at(Rank.EVICT if urgent else RANKS.get(migration.status.step, Rank.FOLLOW))

    def _run(self, key: Key, migration: PodMigration, action: Action) -> None:
        try:
            overtaken = self._overtaken(action)
            outcome = self._perform(migration, action) if overtaken is None else overtaken
        except Exception as error:  # noqa: BLE001 - outermost place of the thread: the migration must not be lost
            outcome = Failure(f"{type(error).__name__}: {error}")
        self._reports.put(Report(key, migration, action, outcome))
        self._wake()

    def _overtaken(self, action: Action) -> Overtaken | None:
        """It may have waited for a thread, or the whole process may have stood still."""
        if not self._leading():
            return Overtaken("no longer the leader")
        why = self._stopped() if begins(action) else ""
        return Overtaken(f"stopped: {why}") if why else None

    def _take(self, report: Report, state: ClusterState, now: datetime) -> None:
        self._under_way.discard(report.key)
        outcome = recognised(report.outcome, report.migration.metadata.namespace, state)
        self._listener.performed(report.migration, report.action, outcome, now)
        match outcome:
            case Accepted():
                adopt(outcome, state)
                if isinstance(report.action, Evict):
                    told_to_stop(report.migration.metadata.namespace, report.action, state, now)
                if outcome.absent:
                    self._sought(report, state, now)
            case Overtaken(gone=gone):
                self._rest[report.key] = now + LOOK_AGAIN
                if gone and isinstance(report.action, Write | Adopt | Release):
                    forget(report.migration, state)
            case Failure():
                self._failed(report, outcome, state, now)

    def _sought(self, report: Report, state: ClusterState, now: datetime) -> None:
        """Write it down, so that it is not sought again."""
        latest = state.migrations.get(report.key)
        if latest is not None:
            told = recreate_back.sought(latest, self._judge(latest, state, now), now)
            self._start(report.key, latest, told, state)

    def _failed(self, report: Report, failure: Failure, state: ClusterState, now: datetime) -> None:
        """Write it down; if writing was what failed, or there is nothing left but to clear away, come back later. So
        too where marks stay on: a move that is called off waits for no retry of what it was about, and somebody who
        refuses to have the marks taken off would be asked again as fast as the status is written.
        """
        latest = state.migrations.get(report.key)
        if latest is None:
            return
        if isinstance(report.action, Write | Adopt | Release) or latest.status.phase in machine.ENDED:
            self._rest[report.key] = now + max(SLOW_DOWN, failure.retry_after)
            return
        if takes_marks_off(report.action):
            self._rest[report.key] = now + max(SLOW_DOWN, failure.retry_after)
        failure = replace(failure, eviction=isinstance(report.action, Evict))
        told = failing.failed(latest, self._judge(latest, state, now), failure, now)
        self._start(report.key, latest, told, state)


def _budgets(namespace: str, name: str, state: ClusterState) -> tuple[Key, ...] | None:
    """What the eviction of this pod writes to."""
    pod = state.pods.get((namespace, name))
    found = state.budgets_of(pod) if pod is not None else ()
    return tuple(sorted(it.metadata.key for it in found)) or None


def recognised(outcome: Outcome, namespace: str, state: ClusterState) -> Outcome:
    """A refusal by a budget of our own is marked as such. One that is gone by now was ours if it was called so: those
    come and go with the moves.
    """
    if not isinstance(outcome, Failure) or not outcome.budget:
        return outcome
    found = state.budgets.get(namespace, {}).get((namespace, outcome.budget))
    called = outcome.budget.endswith(temporary_budget.SUFFIX)
    ours = called if found is None else temporary_budget.is_ours(found)
    return replace(outcome, ours=ours)


def adopt(accepted: Accepted, state: ClusterState) -> None:
    """Put what the API answered into the state, unless the watch was faster."""
    if accepted.migration is not None:
        key = accepted.migration.metadata.key
        known = state.migrations.get(key)
        if known is not None and _newer(accepted.migration, known):
            state.apply(known, accepted.migration)
    if accepted.pod is not None:
        running = state.pods.get(accepted.pod.metadata.key)
        if running is not None and _newer(accepted.pod, running):
            state.apply(running, accepted.pod)
    if accepted.workload is not None:
        _shown(accepted.workload, state)


def told_to_stop(namespace: str, action: Evict, state: ClusterState, now: datetime) -> None:
    """The watch will tell the same soon; until then it must not be asked for once more."""
    pod = state.pods.get((namespace, action.name))
    if pod is not None and pod.metadata.uid == action.uid and pod.metadata.deletion_timestamp is None:
        meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=now)
        state.apply(pod, msgspec.structs.replace(pod, metadata=meta))


def _shown(seen: Shown, state: ClusterState) -> None:
    """The watch will tell the same soon; until then no decision must rest on what was. But an answer may be taken in
    long after it came, by a process that did not lead in between, and must not hide what has happened since.
    """
    found = state.controllers.get(seen.uid)
    item = found.object if found is not None else None
    if item is None or not is_newer(seen.version, item.metadata.resource_version):
        return
    labels = item.metadata.labels if seen.labels is None else seen.labels
    meta = msgspec.structs.replace(item.metadata, labels=labels, resource_version=seen.version)
    changed = msgspec.structs.replace(item, metadata=meta)
    if isinstance(changed, Deployment | ReplicaSet) and seen.replicas is not None:
        changed = msgspec.structs.replace(changed, spec=msgspec.structs.replace(changed.spec, replicas=seen.replicas))
    state.apply(item, changed)


def forget(migration: PodMigration, state: ClusterState) -> None:
    """The API says it is gone. The watch does not if it went before we put it into the state ourselves."""
    known = state.migrations.get(migration.metadata.key)
    if known is not None and known.metadata.uid == migration.metadata.uid:
        state.apply(known, None)


def _newer(mine: object, known: object) -> bool:
    one, other = mine.metadata, known.metadata  # type: ignore[attr-defined]
    return one.uid == other.uid and is_newer(one.resource_version, other.resource_version)

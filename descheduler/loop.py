"""One turn of the descheduler: take migrations a step further, and plan when that is due.

Runs on the thread that owns the state and returns at once: requests are made by others. Only a leader acts.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor as Pool
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from cluster import errors
from cluster.objects import PodMigration
from descheduler import gauges, interruption, maintenance, memory, misread, plan
from descheduler.gauges import Reading, Share
from descheduler.guards import Context
from descheduler.last_pass import LastPass
from descheduler.memory import Rest
from descheduler.migration import leftovers
from descheduler.migration.leftovers import Leftover
from descheduler.migration.migrator import Migrator
from descheduler.node_state import Key
from descheduler.plan import Plan
from descheduler.proposal import Move, Urgency
from descheduler.requests import Said
from descheduler.state import ClusterState
from descheduler.upkeep import Upkeep
from descheduler.usage import Usage
from policy import keys
from policy.settings import Mode, Settings

PLAN_GAP: Final = timedelta(seconds=1)
"""Between two plans at least: what the last one began should show before the next is made."""
CLEAR_EVERY: Final = timedelta(minutes=1)
"""Between two looks for records that are no longer needed."""
SWEEP_EVERY: Final = timedelta(seconds=10)
"""Between two looks at all pods: for marks that no migration answers for, for values that mean nothing, and at who is
on spot."""


class Api(Protocol):
    """The requests of the loop itself. Those about migrations raise ApiError."""

    def create(self, move: Move, now: datetime) -> PodMigration: ...
    def delete(self, migration: PodMigration) -> None: ...
    def clear(self, leftover: Leftover) -> object: ...


class Teller(Protocol):
    """Who tells people."""

    def began(self, cause: str, objects: int) -> None: ...
    def planned(self, plan: Plan, seconds: float, now: datetime) -> None: ...
    def gauged(self, readings: Iterable[Reading]) -> None: ...
    def shared(self, shares: Mapping[str, Share]) -> None: ...
    def misread(self, found: Iterable[Said]) -> None: ...
    def held(self, why: str) -> None: ...
    def rested(self, rests: Mapping[str, Rest], now: datetime) -> None: ...
    def resigned(self) -> None: ...
    def failed(self, error: Exception) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop works with."""

    migrator: Migrator
    upkeep: Upkeep
    api: Api
    teller: Teller
    pool: Pool
    wake: Callable[[], None]
    settings: Callable[[], Settings]
    stopped: Callable[[], str]
    """Why nothing new may be begun; empty if it may."""
    leading: Callable[[], bool]
    usage: Callable[[], Usage | None]
    clock: Callable[[], float]
    wall: Callable[[], datetime]
    hurried: Pool | None = None
    """For what leaves a node that is being lost; None: the pool of all."""


class Loop:
    """`turn` is what the keeper of the state calls."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._created: queue.SimpleQueue[tuple[Key, PodMigration | Exception | None]] = queue.SimpleQueue()
        self._creating: dict[Key, Move] = {}
        """Moves that are being written down, by pod."""
        self._lost: frozenset[str] = frozenset()
        """Nodes that were being lost when the last plan was made."""
        self._led = False
        self._planned_at: datetime | None = None
        self._planned_for: tuple[int, Settings, str] | None = None
        self._cleared_at: datetime | None = None
        self._swept_at: datetime | None = None
        self.last: Plan | None = None
        self.last_pass: LastPass | None = None
        """For whoever asks from another thread: replaced, never changed."""

    def turn(self, state: ClusterState) -> float | None:
        """Seconds after which to come again if nothing changes."""
        parts = self._parts
        self._adopt(state)
        if not parts.leading():
            self._resign()
            return None
        self._led = True
        now = parts.wall()
        parts.teller.held(self.held())
        try:
            kept = parts.upkeep.turn(state, self.last, now)
        finally:  # if it fails, so does the turn, but not before moves and plans had theirs
            due = parts.migrator.turn(state, now)
            next_plan = self._plan(state, now)
            self._clear(state, now)
        soonest = min(due or next_plan, kept or next_plan, next_plan, self._sweep(state, now))
        return max(0.0, (soonest - now).total_seconds())

    def held(self) -> str:
        """Why nothing new may be begun; empty if it may. Asked by other threads too, right before they do it."""
        observing = self._parts.settings().mode is Mode.OBSERVE
        return self._parts.stopped() or ("mode is observe" if observing else "")

    def _resign(self) -> None:
        if self._led:
            self._led = False
            self._parts.upkeep.resign()
            self._parts.teller.resigned()

    def _adopt(self, state: ClusterState) -> None:
        """What was created is known at once, so that the next plan counts with it."""
        while not self._created.empty():
            pod, made = self._created.get()
            self._creating.pop(pod, None)
            if isinstance(made, Exception):
                self._parts.teller.failed(made)
            elif made is not None and made.metadata.key not in state.migrations:
                state.apply(None, made)

    def _plan(self, state: ClusterState, now: datetime) -> datetime:
        """Make a plan if the cluster has changed or the interval is over; when the next one is due."""
        settings = self._parts.settings()
        context = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns={})
        lost = frozenset(interruption.find(context))
        cause = self._cause(state, settings) if lost <= self._lost else "interruption"
        if lost <= self._lost:  # a node that is being lost waits for nothing
            due = self._due(state, settings, context)
            if due is not None and now < due:
                self._lost = lost
                return due
        self._lost = lost
        self._parts.teller.began(cause, len(state.nodes) + len(state.pods))
        self._make(state, settings, now)
        return self._due(state, settings, context) or now + settings.rescheduling_interval

    def _cause(self, state: ClusterState, settings: Settings) -> str:
        """What a plan made now would be made for."""
        if self._planned_at is None:
            return "start"
        return "change" if self._is_changed(state, settings) else "interval"

    def _is_changed(self, state: ClusterState, settings: Settings) -> bool:
        """Since the last plan. That nothing holds moves back any more is a change too: those of the last one wait."""
        return self._planned_for != (state.changes, settings, self._parts.stopped())

    def _due(self, state: ClusterState, settings: Settings, context: Context) -> datetime | None:
        """When to make the next one, if no node is lost until then; None: now."""
        if self._creating:
            return context.now + PLAN_GAP
        if self._planned_at is None:
            return None
        changed = self._is_changed(state, settings)
        due = self._planned_at + (PLAN_GAP if changed else settings.rescheduling_interval)
        silent = interruption.next_change(context)
        return due if silent is None else min(due, silent)

    def _make(self, state: ClusterState, settings: Settings, now: datetime) -> None:
        began = self._parts.clock()
        begun = tuple(self._creating.values())
        made = plan.make(state, settings, now, self._parts.usage(), begun=begun)
        took, stopped = self._parts.clock() - began, self._parts.stopped()
        self._planned_at, self._planned_for, self.last = now, (state.changes, settings, stopped), made
        self._parts.teller.planned(made, took, now)
        self._parts.teller.gauged(gauges.read(state, made, settings, now))
        self._parts.teller.rested(memory.rests(state.migrations.values(), settings, now), now)
        self.last_pass = LastPass(
            now,
            round(took, 4),
            len(made.moves),
            len(made.refusals),
            settings.mode.value,
            stopped,
            settings.label_prefix,
        )
        if settings.mode is Mode.OBSERVE or stopped:
            return
        for move in maintenance.sendable(made.moves, state):
            self._creating[move.pod.metadata.key] = move
            hurries = move.urgency is Urgency.INTERRUPTION
            pool = (hurries and self._parts.hurried) or self._parts.pool
            pool.submit(self._create, move, now)

    def _create(self, move: Move, now: datetime) -> None:
        made: PodMigration | Exception | None = None
        try:
            if self._parts.leading() and not self.held():  # it may have waited in line for long
                made = self._parts.api.create(move, now)
        except errors.ApiError:
            made = None  # the next plan starts from what is there
        except Exception as error:  # noqa: BLE001 - outermost place of the thread: plans wait for the answer
            made = error
        self._created.put((move.pod.metadata.key, made))
        self._parts.wake()

    def _clear(self, state: ClusterState, now: datetime) -> None:
        if self._cleared_at is not None and now - self._cleared_at < CLEAR_EVERY:
            return
        self._cleared_at = now
        for migration in memory.expired(state.migrations.values(), self._parts.settings(), now):
            self._parts.pool.submit(self._delete, migration)

    def _sweep(self, state: ClusterState, now: datetime) -> datetime:
        """Take back what nobody else will; when to look again."""
        if self._swept_at is None or now - self._swept_at >= SWEEP_EVERY:
            self._swept_at = now
            settings = self._parts.settings()
            context = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns={})
            for leftover in leftovers.find(state, context.keys):
                self._parts.pool.submit(self._parts.api.clear, leftover)
            self._parts.teller.shared(gauges.shares(state))
            self._parts.teller.misread(misread.find(context))
        return self._swept_at + SWEEP_EVERY

    def _delete(self, migration: PodMigration) -> None:
        with contextlib.suppress(errors.ApiError):  # looked at again in a minute
            self._parts.api.delete(migration)

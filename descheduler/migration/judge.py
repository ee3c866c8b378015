"""Sees the world for one migration: whether the pod may still be moved, whether the move is still wanted, and where
it should go.   Pure, but for remembering what was worked out for the state as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler import grace, guards, interruption, memory, moving, scaling
from descheduler.fit import Fitter
from descheduler.guards import Context
from descheduler.guards.case import Case
from descheduler.interruption import Loss
from descheduler.ledger import Ledger
from descheduler.migration import approach, modes, permits, recreate, replacement, surge, world
from descheduler.migration.world import Viewpoint, World
from descheduler.node_state import Key, NodeState
from descheduler.picture import Picture
from descheduler.proposal import Mode, Proposal, Urgency
from descheduler.reasons import Code, Reason
from descheduler.search import Search
from descheduler.state import ClusterState
from policy import keys
from policy import settings as policy_settings
from policy.settings import Settings
from policy.signal_table import Kind

URGENCY: Final = {interruption.STRATEGY: Urgency.INTERRUPTION, "NodeMaintenance": Urgency.MAINTENANCE}
"""By strategy; every other move is voluntary, those asked for by hand included."""
BEFORE_EVICTION: Final = frozenset({"", "Guard", "Mark", "Evict"})
BEGUN: Final = frozenset(
    {Code.TERMINATING, Code.PENDING_REVISION, Code.NOT_READY, Code.TOO_YOUNG, Code.COOLING_DOWN, Code.OUTSIDE_WINDOW}
)
"""What no longer counts once a second pod was asked for: going on is as quick as going back. A rollout is looked for
by other signs, because a changed number looks like one at first."""


class Judge:
    """One per process. `settings` gives those in force, `stopped` says why nothing new may be done, if so."""

    def __init__(self, settings: Callable[[], Settings], stopped: Callable[[], str], *, holder: str) -> None:
        self._settings = settings
        self._stopped = stopped
        self._holder = holder
        self._context: Context | None = None
        self._changes = -1
        self._lost: Mapping[str, Loss] = {}
        self._permitted: frozenset[Key] = frozenset()

    def __call__(self, migration: PodMigration, state: ClusterState, now: datetime) -> World:
        """The world at this moment."""
        context = self._seen(state, now)
        by = Viewpoint(context.keys, context.settings, self._holder, now)
        source = world.source_of(migration, state)
        loss = self._lost.get(source.node_name) if source is not None else None
        # Who asked for it does not matter any more when the node goes.
        urgency = Urgency.INTERRUPTION if loss is not None else urgency_of(migration)
        target, mode = "", Mode.EVICT
        objections: tuple[Reason, ...] = ()
        if source is not None and source.node_name and migration.status.step in BEFORE_EVICTION:
            target, objections = self._examined(migration, source, context, urgency)
            mode, unsuited = approach.decide(migration, Case(source, context), urgency)
            objections += unsuited
        elif source is not None and (surge.under_way(migration) or recreate.under_way(migration)):
            objections = tuple(_meanwhile(migration, source, context, urgency))
        seen = world.look(
            migration,
            state,
            by,
            urgency=urgency,
            objections=objections,
            withdrawn=self._withdrawn(migration, context),
            target=target,
            mode=mode,
            permitted=urgency is not Urgency.INTERRUPTION or migration.metadata.key in self._permitted,
        )
        lost = seen.node_lost or self._is_lost(migration, state)
        return replace(seen, node_lost=lost, leave_by=_leave_by(source, loss, context.settings))

    def _seen(self, state: ClusterState, now: datetime) -> Context:
        known, settings = self._context, self._settings()
        if known is None or self._changes != state.changes or known.settings is not settings or known.now != now:
            cooldowns = memory.cooldowns(state.migrations.values(), settings, now)
            known = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns)
            self._context, self._changes = known, state.changes
            self._lost = known.losses
            self._permitted = permits.find(state, now)
        return known

    def _examined(
        self, migration: PodMigration, source: Pod, context: Context, urgency: Urgency
    ) -> tuple[str, tuple[Reason, ...]]:
        """Where it should go, and what speaks against the move."""
        found = [*_guarded(migration, source, context, urgency), *_rival(migration, context.state)]
        found.extend(_settled(migration, source))
        if (
            migration.status.phase in {"", "Pending"}
            and not migration.spec.target_node
            and not migration.spec.strategy
        ):
            chosen = _chosen(source, context)
            return (chosen, tuple(found)) if isinstance(chosen, str) else ("", (*found, chosen))
        target = replacement.goal(migration, context.state)
        if target and urgency is Urgency.VOLUNTARY and migration.status.replacement is None:
            beside = surge.is_mode(migration) or recreate.is_mode(migration)
            found.extend(_misfits(source, target, context.state, beside=beside))
        elif target and urgency is Urgency.MAINTENANCE and _is_signed(target, context.state):
            found.append(Reason(Code.NO_NODE_FITS, f"target {target} is to be left as well"))
        return "", tuple(found)

    def _is_lost(self, migration: PodMigration, state: ClusterState) -> bool:
        """Gone, going, or silent: whoever deletes a pod there does not mean that it is not wanted any more."""
        resolved = migration.status.resolved
        if resolved is None:
            return False
        found = state.nodes.get(resolved.source_node)
        if found is None or found.node is None or not found.ready:
            return True
        return found.name in self._lost or found.node.metadata.deletion_timestamp is not None

    def _withdrawn(self, migration: PodMigration, context: Context) -> str:
        stopped = self._stopped()
        if stopped:
            return stopped
        if context.settings.mode is policy_settings.Mode.OBSERVE:
            return "mode is observe: nothing new is done"
        resolved = migration.status.resolved
        node = context.state.nodes.get(resolved.source_node) if resolved is not None else None
        if node is None or node.node is None:
            return ""  # a node that is gone is no reason to stop leaving it
        match urgency_of(migration):
            case Urgency.INTERRUPTION if node.name not in self._lost:
                return f"node {node.name} is no longer about to be lost"
            case Urgency.MAINTENANCE if not _asks_to_be_left(node, context):
                return f"node {node.name} no longer asks to be left"
            case _:
                return ""


def _asks_to_be_left(node: NodeState, context: Context) -> bool:
    return any(signal.kind is Kind.MAINTENANCE for signal in node.signals_at(context.now))


def _leave_by(source: Pod | None, loss: Loss | None, settings: Settings) -> datetime | None:
    """By the loss as it is now: a move may have begun before anybody knew of it."""
    if source is None or loss is None or loss.deadline is None:
        return None
    return loss.deadline - grace.of(source, settings) - modes.REACTION


def urgency_of(migration: PodMigration) -> Urgency:
    """Why the pod is to leave."""
    return URGENCY.get(migration.spec.strategy, Urgency.VOLUNTARY)


def _guarded(migration: PodMigration, source: Pod, context: Context, urgency: Urgency) -> Iterator[Reason]:
    """What the guards say, but for this very migration being under way. A move that a user asked for by hand is not
    held back by the youth of a pod or by a rest: they have looked.
    """
    passed = {Code.ALREADY_MIGRATING}
    if migration.status.step == "Evict":
        passed.add(Code.TERMINATING)  # evicted, by us or by somebody else: what follows is the same
    if recreate.has_copy(migration):
        passed.add(Code.COOLING_DOWN)  # another copy is not what it is about
    if not migration.spec.strategy:
        passed |= {Code.TOO_YOUNG, Code.COOLING_DOWN}
    return (it for it in guards.reasons(source, context, urgency) if it.code not in passed)


def _rival(migration: PodMigration, state: ClusterState) -> Iterator[Reason]:
    """Of two migrations of one pod the older has it."""
    for other in state.moving.by_pod.get((migration.metadata.namespace, migration.spec.pod_ref.name), ()):
        if moving.age(other) < moving.age(migration):
            yield Reason(Code.ALREADY_MIGRATING, f"PodMigration {other.metadata.name} moves this pod")


def _settled(migration: PodMigration, source: Pod) -> Iterator[Reason]:
    """To its own node: an eviction would cost a restart and change nothing. No plan asks for that, people do."""
    if migration.spec.target_node == source.node_name:
        yield Reason(Code.ALREADY_THERE, f"it runs on {source.node_name} already")


def _is_signed(name: str, state: ClusterState) -> bool:
    node = state.nodes.get(name)
    return node is not None and node.signed


def _chosen(source: Pod, context: Context) -> str | Reason:
    ledger = Ledger(context.state, context.settings)
    ledger.picture.take(source)
    return Search(ledger, context).target(Proposal(source, Urgency.VOLUNTARY, "asked for by hand"))


def _meanwhile(migration: PodMigration, source: Pod, context: Context, urgency: Urgency) -> Iterator[Reason]:
    """What speaks against going on with a second pod that was asked for."""
    yield from (it for it in _guarded(migration, source, context, urgency) if it.code not in BEGUN)
    found = context.state.workload(source)
    if found is not None and surge.is_mode(migration):
        yield from scaling.disturbances(scaling.Subject(source, found, context.state, context.autoscalers))


def _misfits(source: Pod, target: str, state: ClusterState, *, beside: bool) -> Iterator[Reason]:
    """`beside`: the source is still there when its replacement comes."""
    node = state.nodes.get(target)
    if node is None or node.node is None:
        yield Reason(Code.NO_NODE_FITS, f"target {target} does not exist")
        return
    picture = Picture(state)
    if not beside:
        picture.take(source)
    for misfit in Fitter(picture).misfits(source, target):
        yield Reason(Code.NO_NODE_FITS, f"target {target}: {misfit.text}")

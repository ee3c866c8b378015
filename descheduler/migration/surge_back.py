"""The way back of a Surge: the new pod goes instead of the original, and costs are what they were.   Pure."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.objects import Pod, PodMigration
from descheduler.migration import eviction, marking, surge_turn
from descheduler.migration.actions import Action, MarkPod, MarkWorkload, Scale, Wait
from descheduler.migration.endings import Ending, text_of
from descheduler.migration.surge_turn import BACK, LOWEST, Turn
from descheduler.migration.world import World
from descheduler.scaling import mode_of


def back(turn: Turn) -> Action | Ending:
    """First what is on its way is stopped. Then costs the other way round, the number, and the costs as they were."""
    target = turn.target
    unmarked = _unmarked(turn)
    if unmarked is not None:
        return unmarked
    if target.replicas == turn.raised and not turn.intent.get("left"):
        return _restored(turn.migration, turn.world) or _turned(turn) or _lower(turn)
    seen = turn.since("backAt") + surge_turn.LAG
    if turn.unseen and seen > turn.now:
        return Wait(seen, "a number that was raised would be seen soon")
    if target.replicas == turn.before and turn.new and turn.source is not None and not turn.intent.get("left"):
        if "lowered" not in turn.intent:
            return turn.write(BACK, lowered=text_of(turn.now))
        late = turn.since("lowered") + surge_turn.CONTROLLER_GRACE
        if late > turn.now:
            return Wait(late, "the controller is about to take the new pod")
    return (
        _restored(turn.migration, turn.world)
        or _cleaned(turn.new)
        or Ending(str(turn.intent["ending"]), str(turn.intent["why"]))
    )


def _unmarked(turn: Turn) -> Action | None:
    """Marks of the move on the original and on the workload: without them nothing is evicted or raised, and with them
    change the versions of the objects, so that what another process has on its way is refused. The label of another
    move is none of our business: it raises nothing for this one.
    """
    target = turn.target
    source = marking.unmark(turn.migration, turn.world) if eviction.is_announced(turn.migration) else None
    if source is None and turn.marked:
        return MarkWorkload(target.kind, target.name, target.uid, None)
    return source


def _lower(turn: Turn) -> Action:
    """What is not Ready would go before the new pod; give it a moment."""
    target = turn.target
    new = {pod.metadata.uid for pod in turn.new}
    waits = any(not pod.ready for pod in target.pods if pod.metadata.uid not in new) and any(
        it.ready for it in turn.new
    )
    late = turn.since("backAt") + turn.world.settings.migrations.ready_timeout
    if waits and late > turn.now:
        return Wait(late, "a sibling that is not Ready would be taken instead of the new pod")
    return Scale(target.kind, target.name, target.uid, turn.raised, turn.before, owned=True)


def remaining(migration: PodMigration, world: World) -> MarkPod | None:
    """A cost of ours when all is over: the workload was deleted in the middle and left its pods, or another process
    had one on its way. The next move may have begun with one of these pods; what it set is its own.
    """
    if mode_of(migration) != "Surge":
        return None
    if world.source is not None and marking.is_foreign(world.source, migration, world):
        return None
    turned = world.doubles if "backAt" in (migration.status.intent or {}) else ()
    ours = [pod for pod in turned if not marking.is_foreign(pod, migration, world)]
    return _restored(migration, world) or _cleaned(ours)


def _restored(migration: PodMigration, world: World) -> MarkPod | None:
    """The original's cost as it was, if what stands there is ours; before the Surge began it is not."""
    source, intent = world.source, migration.status.intent or {}
    old = intent.get("cost")
    if source is None or source.metadata.deletion_timestamp is not None or "to" not in intent:
        return None
    return surge_turn.costing(source, old) if surge_turn.cost_of(source) == LOWEST and old != str(LOWEST) else None


def _turned(turn: Turn) -> Action | None:
    if turn.source is None:
        return None
    return next(
        (surge_turn.costing(pod, str(LOWEST)) for pod in turn.new if surge_turn.cost_of(pod) != LOWEST),
        None,
    )


def _cleaned(new: Iterable[Pod]) -> MarkPod | None:
    """A new pod that stays after all, because somebody wanted more of them, is a pod like others."""
    return next((surge_turn.costing(pod, None) for pod in new if surge_turn.cost_of(pod) == LOWEST), None)

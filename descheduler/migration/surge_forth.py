"""The way there of a Surge: one replica more, wait until it serves, and have the original taken.   Pure."""

from __future__ import annotations

from dataclasses import replace

from cluster.objects import Pod
from descheduler.migration import eviction, surge_turn
from descheduler.migration.actions import Action, MarkWorkload, Scale, Wait, Write
from descheduler.migration.endings import text_of
from descheduler.migration.surge_turn import AVAILABLE, DOWN, LOWEST, Turn
from descheduler.reasons import Code
from policy import keys


def up(turn: Turn) -> Action:
    if turn.called_off:
        return turn.back("Cancelled", turn.called_off)
    target = turn.target
    if target.replicas == turn.raised:
        return turn.write(AVAILABLE, scaledAt=text_of(turn.now))
    if target.replicas != turn.before or target.generation != turn.intent["generation"]:
        return turn.contested(f"{target.kind} {target.name} was changed to {target.replicas} replicas meanwhile")
    return _marking(turn) or Scale(
        target.kind,
        target.name,
        target.uid,
        turn.before,
        turn.raised,
        generation=int(turn.intent["generation"]),
        mark=turn.mark,
    )


def _marking(turn: Turn) -> Action | None:
    """Another move of the workload may have set its own label, or somebody taken ours off. Who takes it off again and
    again has the last word, or this would go on for ever.
    """
    if turn.marked:
        return None
    target, (key, value) = turn.target, turn.mark
    if turn.since("at") + turn.world.settings.migrations.ready_timeout <= turn.now:
        return turn.contested(f"{target.kind} {target.name} does not keep the label {key}")
    return MarkWorkload(target.kind, target.name, target.uid, value)


def available(turn: Turn) -> Action:
    """The original serves; wait for the other one to."""
    if turn.source is None:
        return turn.write(DOWN, downAt=text_of(turn.now))
    return _disturbed(turn) or _claim(turn) or _until_available(turn)


def _disturbed(turn: Turn) -> Action | None:
    """Why to go no further."""
    target = turn.target
    if turn.called_off:
        return turn.back("Cancelled", turn.called_off)
    if turn.unseen:
        return Wait(turn.now + surge_turn.LAG, "the raised number is not seen yet")
    if target.replicas != turn.raised:
        return turn.contested(f"somebody set {target.replicas} replicas, {turn.raised} were needed")
    if target.failure and not turn.new:
        return turn.back("Failed", f"{Code.NO_QUOTA}: {target.failure}")
    return None


def _claim(turn: Turn) -> Action | None:
    found, claimed = turn.world.replacement, turn.migration.status.replacement
    if found is None or (
        claimed is not None and (claimed.uid, claimed.node) == (found.metadata.uid, found.node_name)
    ):
        return None
    return Write({"replacement": {"name": found.metadata.name, "uid": found.metadata.uid, "node": found.node_name}})


def _until_available(turn: Turn) -> Action:
    at = surge_turn.available_at(turn.world.replacement, turn.target)
    if at is not None and at <= turn.now:
        served = turn.world.replacement.metadata.uid if turn.world.replacement is not None else ""
        return replace(turn.write(DOWN, downAt=text_of(turn.now), served=served), ready=True)
    return surge_turn.wait(turn, "scaledAt", at, "the new pod is not Available")


def down(turn: Turn) -> Action:
    """Both serve; have the original taken."""
    target, source = turn.target, turn.source
    if source is None:
        return _after(turn)
    if target.replicas == turn.before and not turn.unseen:
        return _verify(turn, source)
    return (
        _disturbed(turn)
        or _not_serving(turn)
        or _cost(turn, source)
        or Scale(
            target.kind,
            target.name,
            target.uid,
            turn.raised,
            turn.before,
            owned=True,
            lowest=(source.metadata.name, source.metadata.uid, surge_turn.cost_of(source)),
        )
    )


def _not_serving(turn: Turn) -> Action | None:
    """A controller takes what is not Ready before it looks at any cost."""
    at = surge_turn.available_at(turn.world.replacement, turn.target)
    if at is None or at > turn.now:
        return surge_turn.wait(turn, "downAt", at, "the new pod is no longer Available")
    unready = sorted(pod.metadata.name for pod in turn.target.pods if not pod.ready)
    return (
        surge_turn.wait(turn, "downAt", None, f"{unready[0]} is not Ready and would be taken first")
        if unready
        else None
    )


def _cost(turn: Turn, source: Pod) -> Action | None:
    """Make the original the cheapest to lose. A cost that somebody else wrote meanwhile stays as it is."""
    mine = surge_turn.cost_of(source)
    if mine != LOWEST and source.metadata.annotations.get(keys.POD_DELETION_COST) == turn.intent.get("cost"):
        return surge_turn.costing(source, str(LOWEST))
    rivals = [
        pod for pod in turn.target.pods if pod.metadata.uid != source.metadata.uid and surge_turn.cost_of(pod) <= mine
    ]
    if not rivals:
        return None
    name, told = rivals[0].metadata.name, f"{keys.POD_DELETION_COST} of {source.metadata.name} is {mine}"
    return turn.contested(f"{told}, so that {name} would be taken in its place")


def _verify(turn: Turn, source: Pod) -> Action:
    """The number is as before; the controller is about to choose. Its time begins when that is seen: who announced
    the lowering may have been gone for long.
    """
    if "loweredAt" not in turn.intent:
        return turn.write(DOWN, loweredAt=text_of(turn.now))
    late = turn.since("loweredAt") + turn.world.settings.migrations.ready_timeout
    gone = turn.world.replacement is None
    if not gone and late > turn.now:
        return _not_taken(turn, f"{source.metadata.name} is about to be taken")
    what = f"{turn.target.kind} {turn.target.name} took another pod than {source.metadata.name}"
    return replace(turn.contested(what), late=not gone)


def _not_taken(turn: Turn, what: str) -> Action:
    """A controller that is slow, or has taken another one, is not waited for where the node does not wait either."""
    by, acts = turn.world.leave_by, turn.since("loweredAt") + surge_turn.LAG
    if by is not None and acts > turn.now:
        return Wait(acts, what)
    evicted = eviction.when_time_is_up(turn.migration, turn.world, turn.now)
    return evicted or Wait(surge_turn.earliest(turn.now + surge_turn.CONTROLLER_GRACE, by), what)


def _after(turn: Turn) -> Action:
    """The original is going. If it was not the lower number that took it, the number is still raised."""
    target = turn.target
    if target.replicas == turn.raised and not turn.intent.get("left"):
        return Scale(target.kind, target.name, target.uid, turn.raised, turn.before, owned=True)
    return turn.write("AwaitReplacement", evictedAt=text_of(turn.now))

"""A move that starts the replacement first: one replica more, and when it serves, the original goes.   Pure.

    Mark -> SurgeUp -> AwaitAvailable -> SurgeDown -> AwaitReplacement, or from any of them SurgeBack

Until the number is lowered the original serves, and the way back takes the new pod instead of it. The number is
lowered only while it is the one that we wrote. The deletion cost is set last of all: a controller that somebody else
makes scale down before the new pod is Available takes the new pod then, not the one that serves. Only where its node
would be gone before the new pod is Available, the original is evicted first and the number is lowered after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import eviction, marking
from descheduler.migration.actions import Action, MarkPod, MarkWorkload, Scale, Wait, Write
from descheduler.migration.endings import Ending, text_of, time_of
from descheduler.migration.world import World
from descheduler.reasons import Code
from descheduler.scaling import ScaleTarget, mode_of
from policy import durations, keys, values

UP, AVAILABLE, DOWN, BACK = "SurgeUp", "AwaitAvailable", "SurgeDown", "SurgeBack"
STEPS: Final = frozenset({UP, AVAILABLE, DOWN, BACK})
LOWEST: Final = -(2**31)
"""The cost of the pod that is to go; the least there is."""
CONTROLLER_GRACE: Final = timedelta(seconds=10)
"""How long a controller may take to act on a changed number."""
LAG: Final = timedelta(seconds=1)
"""How long a watch may take to tell what we did ourselves."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a step looks at."""

    migration: PodMigration
    world: World
    target: ScaleTarget
    called_off: str
    now: datetime

    @property
    def intent(self) -> Mapping[str, Any]:
        """What was written down when the Surge began, and since."""
        return self.migration.status.intent or {}

    @property
    def before(self) -> int:
        """Replicas as they were."""
        return int(self.intent["from"])

    @property
    def raised(self) -> int:
        """Replicas as we set them."""
        return int(self.intent["to"])

    @property
    def new(self) -> tuple[Pod, ...]:
        """Pods that came after the Surge was announced."""
        known = {*self.intent.get("known", ()), self.intent.get("uid", "")}
        return tuple(pod for pod in self.target.pods if pod.metadata.uid not in known)

    @property
    def source(self) -> Pod | None:
        """The original, while it is not being deleted."""
        found = self.world.source
        return found if found is not None and found.metadata.deletion_timestamp is None else None

    @property
    def unseen(self) -> bool:
        """Nothing has changed since the Surge was announced, as far as the watch has told."""
        return self.target.replicas == self.before and self.target.generation == self.intent["generation"]

    @property
    def mark(self) -> tuple[str, str]:
        """The label without which nobody raises the number."""
        return marking.of_workload(self.migration, self.world)

    @property
    def marked(self) -> bool:
        """Whether the workload carries it."""
        key, value = self.mark
        return self.world.workload is not None and self.world.workload.labels.get(key) == value

    def since(self, key: str) -> datetime:
        """A time of the intent."""
        text = self.intent.get(key)
        return datetime.fromisoformat(text) if isinstance(text, str) else self.now

    def write(self, step: str, **more: Any) -> Write:
        """Go on to a step, or stay in one with something noted."""
        intent = {key: value for key, value in {**self.intent, "action": step, **more}.items() if key != "retryAt"}
        return Write({"step": step, "holder": self.world.holder, "intent": intent})

    def back(self, phase: str, why: str) -> Write:
        """Begin the way back."""
        return given_up(self.migration, self.world, Ending(phase, why), self.now)

    def contested(self, what: str) -> Write:
        """Somebody else decides about what this move counted on."""
        return self.back("Failed", f"{Code.REPLICAS_CONTESTED}: {what}")


def is_mode(migration: PodMigration) -> bool:
    """Whether the move is carried out in this way."""
    return mode_of(migration) == "Surge"


def under_way(migration: PodMigration) -> bool:
    """Whether the replicas may have been touched."""
    return migration.status.step in STEPS


def is_going_back(migration: PodMigration) -> bool:
    """Whether what was done is being undone, which has no end but success."""
    return migration.status.step == BACK


def begin(source: Pod, world: World, now: datetime) -> Write | Ending:
    """Announce it, with all that is needed to take it back."""
    target = world.scale
    if target is None:
        return Ending("Cancelled", "the workload was deleted")
    intent = {
        "action": UP,
        "at": text_of(now),
        "uid": source.metadata.uid,
        "known": sorted(pod.metadata.uid for pod in target.pods),
        "from": target.replicas,
        "to": target.replicas + 1,
        "generation": target.generation,
        "cost": source.metadata.annotations.get(keys.POD_DELETION_COST),
    }
    kept = {key: value for key, value in intent.items() if value is not None}
    return Write({"step": UP, "holder": world.holder, "intent": kept})


def step(migration: PodMigration, world: World, called_off: str, now: datetime) -> Action | Ending:
    """What to do next."""
    if world.namespace_terminating:
        return Ending("Cancelled", "the namespace is being deleted")
    if world.scale is None:
        return Ending("Cancelled", "the workload was deleted")
    turn = Turn(migration, world, world.scale, called_off, now)
    retry = time_of(turn.intent.get("retryAt"))
    # An eviction that its budget refused keeps nothing else from going on.
    if retry is not None and retry > now and not turn.intent.get("blocked"):
        return Wait(retry, migration.status.message)
    return _STEPS[migration.status.step](turn)


def given_up(migration: PodMigration, world: World, ending: Ending, now: datetime) -> Write:
    """Begin the way back; or, on it, leave a number alone that is not ours any more. How it will end stands in
    the intent, because the message tells of whatever goes wrong until then.
    """
    known = migration.status.intent or {}
    intent = {key: value for key, value in known.items() if key not in {"retryAt", "blocked"}}
    if migration.status.step == BACK:
        return Write({"intent": {**intent, "left": True}})
    intent |= {"action": BACK, "ending": ending.phase, "why": ending.why[:1024], "backAt": text_of(now)}
    return Write({"step": BACK, "holder": world.holder, "message": ending.why[:1024], "intent": intent})


# ---- the way there


def _up(turn: Turn) -> Action:
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


def _available(turn: Turn) -> Action:
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
        return Wait(turn.now + LAG, "the raised number is not seen yet")
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
    at = _available_at(turn.world.replacement, turn.target)
    if at is not None and at <= turn.now:
        served = turn.world.replacement.metadata.uid if turn.world.replacement is not None else ""
        return replace(turn.write(DOWN, downAt=text_of(turn.now), served=served), ready=True)
    return _wait(turn, "scaledAt", at, "the new pod is not Available")


def _down(turn: Turn) -> Action:
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
            lowest=(source.metadata.name, source.metadata.uid, cost_of(source)),
        )
    )


def _not_serving(turn: Turn) -> Action | None:
    """A controller takes what is not Ready before it looks at any cost."""
    at = _available_at(turn.world.replacement, turn.target)
    if at is None or at > turn.now:
        return _wait(turn, "downAt", at, "the new pod is no longer Available")
    unready = sorted(pod.metadata.name for pod in turn.target.pods if not pod.ready)
    return _wait(turn, "downAt", None, f"{unready[0]} is not Ready and would be taken first") if unready else None


def _cost(turn: Turn, source: Pod) -> Action | None:
    """Make the original the cheapest to lose. A cost that somebody else wrote meanwhile stays as it is."""
    mine = cost_of(source)
    if mine != LOWEST and source.metadata.annotations.get(keys.POD_DELETION_COST) == turn.intent.get("cost"):
        return _costing(source, str(LOWEST))
    rivals = [pod for pod in turn.target.pods if pod.metadata.uid != source.metadata.uid and cost_of(pod) <= mine]
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
    by, acts = turn.world.leave_by, turn.since("loweredAt") + LAG
    if by is not None and acts > turn.now:
        return Wait(acts, what)
    evicted = eviction.when_time_is_up(turn.migration, turn.world, turn.now)
    return evicted or Wait(_earliest(turn.now + CONTROLLER_GRACE, by), what)


def _after(turn: Turn) -> Action:
    """The original is going. If it was not the lower number that took it, the number is still raised."""
    target = turn.target
    if target.replicas == turn.raised and not turn.intent.get("left"):
        return Scale(target.kind, target.name, target.uid, turn.raised, turn.before, owned=True)
    return turn.write("AwaitReplacement", evictedAt=text_of(turn.now))


# ---- the way back


def _back(turn: Turn) -> Action | Ending:
    """First what is on its way is stopped. Then costs the other way round, the number, and the costs as they were."""
    target = turn.target
    unmarked = _unmarked(turn)
    if unmarked is not None:
        return unmarked
    if target.replicas == turn.raised and not turn.intent.get("left"):
        return _restored(turn.migration, turn.world) or _turned(turn) or _lower(turn)
    seen = turn.since("backAt") + LAG
    if turn.unseen and seen > turn.now:
        return Wait(seen, "a number that was raised would be seen soon")
    if target.replicas == turn.before and turn.new and turn.source is not None and not turn.intent.get("left"):
        if "lowered" not in turn.intent:
            return turn.write(BACK, lowered=text_of(turn.now))
        late = turn.since("lowered") + CONTROLLER_GRACE
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
    if not is_mode(migration):
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
    return _costing(source, old) if cost_of(source) == LOWEST and old != str(LOWEST) else None


def _turned(turn: Turn) -> Action | None:
    if turn.source is None:
        return None
    return next((_costing(pod, str(LOWEST)) for pod in turn.new if cost_of(pod) != LOWEST), None)


def _cleaned(new: Iterable[Pod]) -> MarkPod | None:
    """A new pod that stays after all, because somebody wanted more of them, is a pod like others."""
    return next((_costing(pod, None) for pod in new if cost_of(pod) == LOWEST), None)


_STEPS: Final[dict[str, Callable[[Turn], Action | Ending]]] = {
    UP: _up,
    AVAILABLE: _available,
    DOWN: _down,
    BACK: _back,
}


# ---- small readings


def cost_of(pod: Pod) -> int:
    """As the controller reads it: nothing, or nonsense, is zero."""
    said = pod.metadata.annotations.get(keys.POD_DELETION_COST, "0")
    try:
        return int(said)
    except ValueError:
        return 0


def _available_at(pod: Pod | None, target: ScaleTarget) -> datetime | None:
    """When it counts as Available: gates and probes are in Ready, the rest is time."""
    since = values.plausible(pod.ready_since) if pod is not None and pod.ready else None
    return None if since is None else since + durations.of_seconds(target.min_ready_seconds)


def _wait(turn: Turn, since: str, at: datetime | None, what: str) -> Action:
    """Until then, but neither for ever nor for longer than the node is there."""
    evicted = eviction.when_time_is_up(turn.migration, turn.world, turn.now)
    if evicted is not None:
        return Wait(_earliest(evicted.until, at), evicted.note) if isinstance(evicted, Wait) else evicted
    allowed = turn.world.settings.migrations.ready_timeout + durations.of_seconds(turn.target.min_ready_seconds)
    late = turn.since(since) + allowed
    if late <= turn.now:
        return replace(turn.back("Failed", f"{what} after {allowed}"), late=True)
    return Wait(_earliest(late, at, turn.world.leave_by), what)


def _earliest(*times: datetime | None) -> datetime | None:
    return min((it for it in times if it is not None), default=None)


def _costing(pod: Pod, value: str | None) -> MarkPod:
    """Tied to the pod as it was seen: one that comes late, when the marks of the move are off, is refused."""
    meta = pod.metadata
    return MarkPod(meta.name, meta.uid, annotations={keys.POD_DELETION_COST: value}, version=meta.resource_version)

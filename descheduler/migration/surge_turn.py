"""One look at a Surge: what was announced, what is there now, and how to go on or back from it.   Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import eviction, marking
from descheduler.migration.actions import Action, MarkPod, Wait, Write
from descheduler.migration.endings import Ending, text_of, unanswered
from descheduler.migration.world import World
from descheduler.reasons import Code
from descheduler.scaling import ScaleTarget
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
        return self.world.staying

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
        known = self.intent if step == self.migration.status.step else unanswered(self.intent)
        intent = {key: value for key, value in {**known, "action": step, **more}.items() if key != "retryAt"}
        return Write({"step": step, "holder": self.world.holder, "intent": intent})

    def back(self, phase: str, why: str) -> Write:
        """Begin the way back."""
        return given_up(self.migration, self.world, Ending(phase, why), self.now)

    def contested(self, what: str) -> Write:
        """Somebody else decides about what this move counted on."""
        return self.back("Failed", f"{Code.REPLICAS_CONTESTED}: {what}")


def given_up(migration: PodMigration, world: World, ending: Ending, now: datetime) -> Write:
    """Begin the way back; or, on it, leave a number alone that is not ours any more. How it will end stands in
    the intent, because the message tells of whatever goes wrong until then.
    """
    intent = unanswered(migration.status.intent)
    if migration.status.step == BACK:
        return Write({"intent": {**intent, "left": True}})
    intent |= {"action": BACK, "ending": ending.phase, "why": ending.why[:1024], "backAt": text_of(now)}
    return Write({"step": BACK, "holder": world.holder, "message": ending.why[:1024], "intent": intent})


def cost_of(pod: Pod) -> int:
    """As the controller reads it: nothing, or nonsense, is zero."""
    said = pod.metadata.annotations.get(keys.POD_DELETION_COST, "0")
    try:
        return int(said)
    except ValueError:
        return 0


def costing(pod: Pod, value: str | None) -> MarkPod:
    """Tied to the pod as it was seen: one that comes late, when the marks of the move are off, is refused."""
    meta = pod.metadata
    return MarkPod(meta.name, meta.uid, annotations={keys.POD_DELETION_COST: value}, version=meta.resource_version)


def available_at(pod: Pod | None, target: ScaleTarget) -> datetime | None:
    """When it counts as Available: gates and probes are in Ready, the rest is time."""
    since = values.plausible(pod.ready_since) if pod is not None and pod.ready else None
    return None if since is None else since + durations.of_seconds(target.min_ready_seconds)


def wait(turn: Turn, since: str, at: datetime | None, what: str) -> Action:
    """Until then, but neither for ever nor for longer than the node is there; and if it is there long after that, not
    for ever either.
    """
    by = turn.world.leave_by
    allowed = turn.world.settings.migrations.ready_timeout + durations.of_seconds(turn.target.min_ready_seconds)
    late = turn.since(since) + allowed
    if by is not None and by <= turn.now:
        late = max(late, by + allowed)
    if late <= turn.now:
        return replace(turn.back("Failed", f"{what} after {allowed}"), late=True)
    evicted = eviction.when_time_is_up(turn.migration, turn.world, turn.now)
    if evicted is not None:
        return Wait(earliest(evicted.until, at, late), evicted.note) if isinstance(evicted, Wait) else evicted
    return Wait(earliest(late, at, by), what)


def earliest(*times: datetime | None) -> datetime | None:
    return min((it for it in times if it is not None), default=None)

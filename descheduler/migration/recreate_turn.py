"""One look at a Recreate: what was announced, what is there now, and how to go on or back from it.   Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from descheduler.migration.actions import Write
from descheduler.migration.endings import Ending, text_of, unanswered
from descheduler.migration.world import World

CREATE, READY, REMOVE = "CreateCopy", "AwaitReady", "RemoveCopy"
STEPS: Final = frozenset({CREATE, READY, REMOVE})
ASKED: Final = "askedAt"
"""Since when, in the intent, the original is to be evicted."""
BACK_AT: Final = "backAt"
"""Since when, in the intent, the copy is to go."""
UNWANTED: Final = "unwanted"
"""In the intent: the original went away, and nobody misses it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a step looks at."""

    migration: PodMigration
    world: World
    called_off: str
    now: datetime

    @property
    def intent(self) -> Mapping[str, Any]:
        """What was written down when the copy was announced."""
        return self.migration.status.intent or {}

    @property
    def source(self) -> Pod | None:
        """The original, while it is not being deleted."""
        return self.world.staying

    @property
    def late(self) -> datetime:
        """When the copy has to be Ready."""
        since = datetime.fromisoformat(str(self.intent["at"]))
        return since + self.world.settings.migrations.ready_timeout

    @property
    def is_outlived(self) -> bool:
        """Whether the node took the original with it, and the copy is all that is left."""
        return self.source is None and not is_unwanted(self.world) and UNWANTED not in self.intent

    def write(self, step: str, *, replacement: Mapping[str, str] | None = None, **more: str) -> Write:
        """Go on to a step, with something noted."""
        claimed = {"replacement": replacement} if replacement is not None else {}
        noted = {**unanswered(self.intent), "action": step, **more}
        return Write({"step": step, "holder": self.world.holder, "intent": noted, **claimed})

    def ready(self, copy: Pod) -> Write:
        """The copy serves; go on to the eviction. People are told once, however often it is waited for."""
        told = self.intent.get("served") == copy.metadata.uid
        noted = {**unanswered(self.intent), "action": "Evict", "served": copy.metadata.uid, ASKED: text_of(self.now)}
        return Write({"step": "Evict", "holder": self.world.holder, "intent": noted}, ready=not told)

    def outlived(self) -> Write:
        """The copy takes over."""
        return self.write("AwaitReplacement", evictedAt=text_of(self.now))

    def back(self, phase: str, why: str) -> Write:
        """Have the copy removed."""
        return back(self.migration, self.world, Ending(phase, why), self.now)


def back(migration: PodMigration, world: World, ending: Ending, now: datetime) -> Write:
    """The copy has to go before the move can end."""
    announced = unanswered(migration.status.intent)  # no budget holds the original any more: it stays
    intent = {**announced, "action": REMOVE, "ending": ending.phase, "why": ending.why[:1024], BACK_AT: text_of(now)}
    if is_unwanted(world):
        intent[UNWANTED] = "true"  # also when the node goes before the copy does
    return Write({"step": REMOVE, "holder": world.holder, "message": ending.why[:1024], "intent": intent})


def is_unwanted(world: World) -> bool:
    """Whether the original is gone and nothing was lost: somebody deleted it, or its work was done. A pod that is
    asked to stop and obeys has succeeded as well, whatever it had left to do.
    """
    if world.staying is not None:
        return False
    there = world.stopping
    done = there is not None and there.status.phase == "Succeeded" and there.metadata.deletion_timestamp is None
    return done or not world.node_lost

"""A move of a pod that nobody would replace: a copy runs and is Ready before the original is evicted.   Pure.

    Mark -> CreateCopy -> AwaitReady -> Evict -> AwaitReplacement, or before the eviction RemoveCopy

The copy belongs to nobody, as the original did. It is told where to go like every replacement: by the webhook, as a
preference.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import marking
from descheduler.migration.actions import Action, CreateCopy, RemoveCopy, SeekCopy, Wait, Write
from descheduler.migration.endings import Ending, text_of, unanswered
from descheduler.migration.world import World
from descheduler.proposal import Mode
from descheduler.scaling import mode_of
from policy.values import MigrationStatus

CREATE, READY, REMOVE = "CreateCopy", "AwaitReady", "RemoveCopy"
STEPS: Final = frozenset({CREATE, READY, REMOVE})
PREFIX: Final = "rescheduled-"
NAME_LENGTH: Final = 63
"""Of a pod that should have a host name."""
ASKED: Final = "askedAt"
"""Since when, in the intent, the original is to be evicted."""
UNWANTED: Final = "unwanted"
"""In the intent: the original went away, and nobody misses it."""
APART: Final = 97
"""Seconds by which later names may differ: moves that were begun together must not meet at the next name again."""
_COPIED: Final = re.compile(rf"{PREFIX}(.+)-\d{{10}}")


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
        found = self.world.source
        return found if found is not None and found.metadata.deletion_timestamp is None else None

    @property
    def late(self) -> datetime:
        """When the copy has to be Ready."""
        since = datetime.fromisoformat(str(self.intent["at"]))
        return since + self.world.settings.migrations.ready_timeout

    @property
    def is_outlived(self) -> bool:
        """Whether the node took the original with it, and the copy is all that is left."""
        return self.source is None and not _is_unwanted(self.world) and UNWANTED not in self.intent

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
        return back(self.migration, self.world, Ending(phase, why))


def is_mode(migration: PodMigration) -> bool:
    """Whether the move is carried out in this way."""
    return mode_of(migration) == Mode.RECREATE


def under_way(migration: PodMigration) -> bool:
    """Whether there may be a copy that serves nobody yet."""
    return migration.status.step in STEPS


def has_copy(migration: PodMigration) -> bool:
    """Whether calling the move off leaves a copy."""
    return is_mode(migration) and bool((migration.status.intent or {}).get("copy"))


def name_of(source: Pod, world: World, at: datetime) -> str:
    """`rescheduled-NAME-TIME`, of the first name where the pod is a copy itself."""
    base = source.metadata.annotations.get(world.keys.original_pod_name) or source.metadata.name
    while (found := _COPIED.fullmatch(base)) is not None:
        base = found.group(1)
    stamp = f"-{int(at.timestamp()):010d}"
    return PREFIX + base[: NAME_LENGTH - len(PREFIX) - len(stamp)].rstrip("-.") + stamp


def other_name(migration: PodMigration, world: World, now: datetime) -> str:
    """Another pod has the name: the same with a later time. How much later follows from the pod."""
    taken, source = str((migration.status.intent or {})["copy"]), world.source
    if source is None:
        return taken
    since = max(int(now.timestamp()), int(taken.rpartition("-")[2]))
    later = since + 1 + zlib.crc32(source.metadata.uid.encode()) % APART
    return name_of(source, world, datetime.fromtimestamp(later, UTC))


def ended(copy: Pod) -> str:
    """A pod that runs to its end takes over nothing. Copied again it would do its work again."""
    return f"the copy ended: {copy.status.phase}"


def begin(migration: PodMigration, source: Pod, world: World, now: datetime) -> Write:
    """Announce the copy by its name, so that it is made once and found again, also if this is done anew."""
    announced = str((migration.status.intent or {}).get("copy", ""))
    name = announced or name_of(source, world, migration.status.started_at or now)
    intent = {"action": CREATE, "at": text_of(now), "uid": source.metadata.uid, "copy": name}
    return Write({"step": CREATE, "holder": world.holder, "intent": intent})


def step(migration: PodMigration, world: World, called_off: str, now: datetime) -> Action | Ending:
    """What to do next."""
    if world.namespace_terminating:
        return Ending("Cancelled", "the namespace is being deleted")
    turn = Turn(migration, world, called_off, now)
    retry = turn.intent.get("retryAt")
    if isinstance(retry, str) and datetime.fromisoformat(retry) > now:
        return Wait(datetime.fromisoformat(retry), migration.status.message)
    return _STEPS[migration.status.step](turn)


def back(migration: PodMigration, world: World, ending: Ending) -> Write:
    """The copy has to go before the move can end."""
    announced = unanswered(migration.status.intent)  # no budget holds the original any more: it stays
    intent = {**announced, "action": REMOVE, "ending": ending.phase, "why": ending.why[:1024]}
    if _is_unwanted(world):
        intent[UNWANTED] = "true"  # also when the node goes before the copy does
    return Write({"step": REMOVE, "holder": world.holder, "message": ending.why[:1024], "intent": intent})


def not_serving(migration: PodMigration, world: World, now: datetime) -> Write | None:
    """Why the original must stay after all: between Ready and the eviction lie budgets, retries and other leaders.
    Its time to become Ready begins anew, because it may have served for hours.
    """
    found = world.replacement
    if found is None:
        return back(migration, world, Ending("Failed", "the copy was deleted before the original was evicted"))
    if found.terminal:
        return back(migration, world, Ending("Failed", ended(found)))
    if found.ready:
        return None
    intent = {**unanswered(migration.status.intent), "action": READY, "at": text_of(now)}
    return Write({"step": READY, "holder": world.holder, "intent": intent})


def _create(turn: Turn) -> Action:
    source, found = turn.source, turn.world.replacement
    if turn.is_outlived:  # the watch may not have told of the copy yet
        return turn.outlived()
    if turn.called_off or source is None:
        return turn.back("Cancelled", turn.called_off or "the pod went away before it was copied")
    if found is not None:
        return turn.write(READY, replacement=_claimed(found))
    marks = marking.of_source(turn.migration, turn.world, MigrationStatus.IN_PROGRESS)
    # Without its mark on the original nobody makes a copy: that is how a move is called off for everybody.
    return (
        _late(turn, "there is no copy")
        or marking.missing(source, marks)
        or CreateCopy(source.metadata.name, source.metadata.uid, str(turn.intent["copy"]))
    )


def _ready(turn: Turn) -> Action:
    """A pod that somebody deletes is not wanted any more, and neither is its copy."""
    found = turn.world.replacement
    if turn.is_outlived and found is not None:
        return turn.outlived()
    if turn.called_off or turn.source is None:
        return turn.back("Cancelled", turn.called_off or "the pod went away before its copy was Ready")
    if found is None:
        return turn.back("Failed", "the copy was deleted before it was Ready")
    return turn.back("Failed", ended(found)) if found.terminal else _until_it_serves(turn, found)


def _until_it_serves(turn: Turn, found: Pod) -> Action:
    claimed = turn.migration.status.replacement
    if claimed is None or claimed.node != found.node_name:
        return Write({"replacement": _claimed(found)})
    if found.ready:
        return turn.ready(found)
    return _late(turn, f"the copy {found.metadata.name} is not Ready") or Wait(turn.late, "the copy is not Ready yet")


def _late(turn: Turn, what: str) -> Write | None:
    """Its time is over."""
    if turn.late > turn.now:
        return None
    return replace(turn.back("Failed", f"{what} after {turn.world.settings.migrations.ready_timeout}"), late=True)


def _is_unwanted(world: World) -> bool:
    """Whether the original is gone and nothing was lost: somebody deleted it, or its work was done. A pod that is
    asked to stop and obeys has succeeded as well, whatever it had left to do.
    """
    source, there = world.source, world.stopping
    if source is not None and source.metadata.deletion_timestamp is None:
        return False
    done = there is not None and there.status.phase == "Succeeded" and there.metadata.deletion_timestamp is None
    return done or not world.node_lost


def _remove(turn: Turn) -> Action | Ending:
    found = turn.world.replacement
    if found is not None and turn.is_outlived and not found.terminal:
        return turn.outlived()
    if found is not None and _is_kept(turn):
        why = f"{turn.intent['why']}; the copy {found.metadata.name} stays: its disruption budget does not let it go"
        return Ending(str(turn.intent["ending"]), why)
    if found is not None:
        return RemoveCopy(found.metadata.name, found.metadata.uid, found.metadata.resource_version)
    if "sought" not in turn.intent:
        # The request may have been accepted and the watch not have told of it yet.
        return SeekCopy(str(turn.intent["copy"]), str(turn.intent["uid"]))
    return Ending(str(turn.intent["ending"]), str(turn.intent["why"]))


def _is_kept(turn: Turn) -> bool:
    """Whether the copy is all that its budget has left, and will never be let go."""
    refused = int(turn.intent.get("tries", 0)) > turn.world.settings.migrations.max_retries
    return turn.source is None and bool(turn.intent.get("blocked")) and refused


def sought(migration: PodMigration, world: World, now: datetime) -> Write:
    """The API has no copy of it: the way back is gone to its end."""
    intent = {**(migration.status.intent or {}), "sought": text_of(now)}
    return Write({"holder": world.holder, "intent": intent})


_STEPS: Final[dict[str, Callable[[Turn], Action | Ending]]] = {CREATE: _create, READY: _ready, REMOVE: _remove}


def _claimed(pod: Pod) -> dict[str, str]:
    return {"name": pod.metadata.name, "uid": pod.metadata.uid, "node": pod.node_name}

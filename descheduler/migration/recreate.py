"""A move of a pod that nobody would replace: a copy runs and is Ready before the original is evicted.   Pure.

    Mark -> CreateCopy -> AwaitReady -> Evict -> AwaitReplacement, or before the eviction RemoveCopy

The copy belongs to nobody, as the original did. It is told where to go like every replacement: by the webhook, as a
preference.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler.migration import marking, recreate_back
from descheduler.migration.actions import Action, CreateCopy, Wait, Write
from descheduler.migration.endings import Ending, text_of, unanswered
from descheduler.migration.recreate_turn import CREATE, READY, REMOVE, STEPS, Turn, back
from descheduler.migration.world import World
from descheduler.proposal import Mode
from descheduler.scaling import mode_of
from policy.values import MigrationStatus

PREFIX: Final = "rescheduled-"
NAME_LENGTH: Final = 63
"""Of a pod that should have a host name."""
APART: Final = 97
"""Seconds by which later names may differ: moves that were begun together must not meet at the next name again."""
_COPIED: Final = re.compile(rf"{PREFIX}(.+)-\d{{10}}")


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


def not_serving(migration: PodMigration, world: World, now: datetime) -> Write | None:
    """Why the original must stay after all: between Ready and the eviction lie budgets, retries and other leaders.
    Its time to become Ready begins anew, because it may have served for hours.
    """
    found = world.replacement
    if found is None:
        return back(migration, world, Ending("Failed", "the copy was deleted before the original was evicted"), now)
    if found.terminal:
        return back(migration, world, Ending("Failed", ended(found)), now)
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


_STEPS: Final[dict[str, Callable[[Turn], Action | Ending]]] = {
    CREATE: _create,
    READY: _ready,
    REMOVE: recreate_back.step,
}


def _claimed(pod: Pod) -> dict[str, str]:
    return {"name": pod.metadata.name, "uid": pod.metadata.uid, "node": pod.node_name}

"""The way back of a Recreate: the copy goes, for the original stays or is not wanted any more.   Pure."""

from __future__ import annotations

from datetime import datetime

from cluster.objects import PodMigration
from descheduler.migration.actions import Action, RemoveCopy, SeekCopy, Write
from descheduler.migration.endings import Ending, text_of
from descheduler.migration.recreate_turn import Turn
from descheduler.migration.world import World


def step(turn: Turn) -> Action | Ending:
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

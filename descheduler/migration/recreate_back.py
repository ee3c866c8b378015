"""The way back of a Recreate: the copy goes, for the original stays or is not wanted any more.   Pure."""

from __future__ import annotations

from datetime import datetime

from cluster.objects import PodMigration
from descheduler.migration.actions import Action, RemoveCopy, SeekCopy, Write
from descheduler.migration.endings import Ending, text_of
from descheduler.migration.recreate_turn import BACK_AT, Turn
from descheduler.migration.world import World


def step(turn: Turn) -> Action | Ending:
    found = turn.world.replacement
    if found is not None and turn.is_outlived and not found.terminal:
        return turn.outlived()
    kept = _kept(turn) if found is not None else ""
    if found is not None and kept:
        why = f"{turn.intent['why']}; the copy {found.metadata.name} stays: {kept}"
        return Ending(str(turn.intent["ending"]), why)
    if found is not None:
        return RemoveCopy(found.metadata.name, found.metadata.uid, found.metadata.resource_version)
    if "sought" not in turn.intent:
        # The request may have been accepted and the watch not have told of it yet.
        return SeekCopy(str(turn.intent["copy"]), str(turn.intent["uid"]))
    return Ending(str(turn.intent["ending"]), str(turn.intent["why"]))


def _kept(turn: Turn) -> str:
    """Why the copy stays, once it was asked for often enough, or for so long without an answer. Asked for ever, it
    would hold up every drain of both nodes, and whoever deletes the PodMigration. Where the original lives, the copy
    is a leftover from then on: it goes as soon as somebody lets it.
    """
    settings, intent = turn.world.settings.migrations, turn.intent
    if int(intent.get("tries", 0)) <= settings.max_retries:
        return ""
    if intent.get("several"):
        return "several disruption budgets select it, and the API refuses every eviction"
    if intent.get("blocked"):
        return "its disruption budget does not let it go"
    refused = intent.get("denied") or _since(turn) + settings.ready_timeout <= turn.now
    return turn.migration.status.message if refused else ""


def _since(turn: Turn) -> datetime:
    """When the way back began."""
    return datetime.fromisoformat(str(turn.intent.get(BACK_AT) or turn.intent["at"]))


def sought(migration: PodMigration, world: World, now: datetime) -> Write:
    """The API has no copy of it: the way back is gone to its end."""
    intent = {**(migration.status.intent or {}), "sought": text_of(now)}
    return Write({"holder": world.holder, "intent": intent})

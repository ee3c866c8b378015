"""The way back of a Recreate: the copy goes, for the original stays or is not wanted any more.   Pure.

It has an end also where the copy cannot go, or must not because nothing else serves.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler.migration.actions import Action, RemoveCopy, SeekCopy, Wait, Write
from descheduler.migration.endings import Ending, text_of
from descheduler.migration.recreate_turn import BACK_AT, Turn
from descheduler.migration.world import World

ALONE: Final = "it serves, and the original is not Ready"


def step(turn: Turn) -> Action | Ending:
    """The copy, if there is one and somebody lets it."""
    found = turn.world.replacement
    if found is None:
        return _absent(turn)
    if turn.is_outlived and not found.terminal:
        return turn.outlived()
    alone = _awaited(turn, found)
    if isinstance(alone, Wait):
        return alone
    kept = alone or _kept(turn)
    if kept:
        why = f"{turn.intent['why']}; the copy {found.metadata.name} stays: {kept}"
        return Ending(str(turn.intent["ending"]), why)
    return RemoveCopy(found.metadata.name, found.metadata.uid, found.metadata.resource_version)


def _absent(turn: Turn) -> Action | Ending:
    if "sought" not in turn.intent:
        # The request may have been accepted and the watch not have told of it yet.
        return SeekCopy(str(turn.intent["copy"]), str(turn.intent["uid"]))
    return Ending(str(turn.intent["ending"]), str(turn.intent["why"]))


def _awaited(turn: Turn, found: Pod) -> Wait | str:
    """A node that is back starts what was on it again. Until then the copy is all that serves, and it stays if the
    original does not come up: evicted instead of the copy, it would be moved by a move that was called off.
    """
    if turn.source is None or not serves_alone(found, turn.source):
        return ""
    until = _since(turn) + turn.world.settings.migrations.ready_timeout
    return Wait(until, f"the copy goes when the original is Ready: {ALONE}") if until > turn.now else ALONE


def serves_alone(copy: Pod, original: Pod) -> bool:
    """Whether nobody would serve without the copy."""
    return copy.ready and not original.ready


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

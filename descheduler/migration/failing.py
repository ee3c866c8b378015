"""What a request that failed means for its move: try again a little later, or give up.   Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from cluster.objects import PodMigration
from descheduler.migration import eviction, marking, recreate, recreate_turn, surge, surge_turn
from descheduler.migration.actions import Action, Write
from descheduler.migration.endings import MESSAGE, Ending, end, text_of, time_of
from descheduler.migration.outcomes import Failure
from descheduler.migration.world import World
from descheduler.proposal import Urgency

PAST_EVICTION: Final = frozenset({"AwaitReplacement", "Settle"})
WITHOUT_END: Final = frozenset({"Mark", surge_turn.UP, "Evict"})
"""Steps that have no deadline of their own, and wait for nothing but the API."""
LONGEST_PAUSE: Final = 5
"""Doublings of the pause between two attempts: half a minute with the default settings."""
HURRIED_PAUSE: Final = 2
"""The same where a node is being lost and the API only asks to come back: four seconds."""


def failed(migration: PodMigration, world: World, failure: Failure, now: datetime) -> Action:
    """An action did not succeed: try again a little later, or give up.

    A budget that allows nothing right now is no fault of the move: where somebody is waiting for the node it is
    asked again and again, and otherwise the move ends without counting against the workload.
    """
    settings = world.settings.migrations
    if failure.several and not world.crowded:
        # A user's own budget came beside ours, which goes at once or is gone by now: not two budgets for good.
        failure = replace(failure, final=False, counts=False)
    spared = failure.eviction and is_an_attempt(migration, world, now)
    patient = spared or (failure.blocked and not failure.final and _is_waited_for(migration, world))
    attempts = migration.status.attempts + (1 if failure.counts and not patient else 0)
    over = failure.final or attempts > settings.max_retries or _is_out_of_time(migration, world, now)
    if over and not patient and not _has_to_go_on(migration, failure):
        if surge.under_way(migration):
            return surge_turn.given_up(migration, world, Ending("Failed", failure.why), now)
        return give_up(migration, world, failure, now)
    known = migration.status.intent or {}
    tries = int(known.get("tries", 0)) + 1
    longest = HURRIED_PAUSE if world.urgency is Urgency.INTERRUPTION and not failure.counts else LONGEST_PAUSE
    pause = max(settings.retry_backoff * 2 ** min(max(attempts, tries - 1), longest), failure.retry_after)
    intent = {**known, "retryAt": text_of(now + pause), "tries": tries}
    intent |= {"blocked": failure.blocked, "several": failure.several, "eviction": failure.eviction}
    intent["denied"] = failure.counts and not failure.blocked and not failure.several
    if failure.taken:
        intent["copy"] = recreate.other_name(migration, world, now)
    return Write({"attempts": attempts, "message": failure.why[:MESSAGE], "intent": intent})


def is_an_attempt(migration: PodMigration, world: World, now: datetime) -> bool:
    """Whether an eviction is one to have a pod stop in order before its node takes it: it is doubled already, and
    refused, that costs the pod that will survive nothing. Of a node that is there long after its time nobody knows.
    """
    if surge.under_way(migration):
        return True
    asked = time_of((migration.status.intent or {}).get(recreate_turn.ASKED))
    since = world.leave_by or asked or migration.status.started_at or now
    lasts = since + world.settings.migrations.ready_timeout > now
    return lasts and world.node_lost and recreate.has_copy(migration) and not recreate.under_way(migration)


def in_vain(migration: PodMigration, world: World, now: datetime) -> Write | None:
    """Give up where no turn will come, or where it has not come in time and the pod would have a copy for ever."""
    waits = not world.permitted and (world.crowded or recreate.has_copy(migration))
    over = waits and not is_an_attempt(migration, world, now)
    return give_up(migration, world, eviction.refusal(world), now) if over else None


def _is_waited_for(migration: PodMigration, world: World) -> bool:
    """Whether a budget that says no may say so for as long as it likes, and is no fault of the move. On a lost node
    a pod that has a copy does not wait for ever, or the two would run side by side.
    """
    copied = world.urgency is Urgency.INTERRUPTION and recreate.has_copy(migration)
    return world.urgency is not Urgency.VOLUNTARY and not copied


def _has_to_go_on(migration: PodMigration, failure: Failure) -> bool:
    """What is being undone, or cannot be, has no end but success."""
    if surge.is_going_back(migration):
        return not failure.final
    return migration.status.step in {recreate_turn.REMOVE, *PAST_EVICTION}


def give_up(migration: PodMigration, world: World, failure: Failure, now: datetime) -> Write:
    """Marks go first here too, and until they are gone the status must say that it is over: whoever looks at it in
    between would mark the pod again and go on. What was said first stays, whatever goes wrong with the marks.
    """
    if recreate.has_copy(migration):  # another copy would run what is in it again, so the pod has to rest
        return recreate_turn.back(migration, world, Ending("Failed", failure.why), now)
    said = migration.status.intent or {}
    phase = said.get("ending") or ("Cancelled" if failure.blocked or not failure.counts else "Failed")
    why = said.get("why") or failure.why
    if marking.unmark(migration, world) is None:
        return end(phase, why, now)
    intent = {"action": "GiveUp", "at": text_of(now), "ending": phase, "why": why[:MESSAGE]}
    return Write({"holder": world.holder, "message": why[:MESSAGE], "intent": intent})


def _is_out_of_time(migration: PodMigration, world: World, now: datetime) -> bool:
    """Nobody waits for the node, and the API has not accepted the request for so long, whatever it says."""
    if world.urgency is not Urgency.VOLUNTARY or migration.status.step not in WITHOUT_END:
        return False
    intent = migration.status.intent or {}
    asked = time_of(intent.get(recreate_turn.ASKED) or intent.get("at")) or now
    return asked + world.settings.migrations.ready_timeout <= now

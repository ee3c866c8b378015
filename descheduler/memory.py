"""What is remembered of finished moves: which workloads rest, and which records are no longer needed.   Pure.

The records are the PodMigrations themselves, so a restart forgets nothing. A workload is known by namespace
and UID, because the UID is what somebody wrote on a pod; a pod on its own by namespace and name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler.workload import Workload
from policy import settings_rules
from policy.settings import Settings
from policy.settings_moves import Backoff

INTERRUPTION: Final = "SpotInterruption"
"""Strategy after whose moves a workload is not brought back to spot for a while."""
FINISHED: Final = frozenset({"Completed", "Failed", "Cancelled"})
PAST_EVICTION: Final = frozenset({"AwaitReplacement", "Settle"})
"""Steps in which the pod that was to be moved is gone."""
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class Outcome(StrEnum):
    """What a finished move says about the next one of the same workload."""

    HELPED = "helped"
    BOUNCED = "bounced"
    """The replacement came to the very node that its pod had left."""
    FAILED = "failed"
    NOTHING = "nothing"
    """Cancelled: its cause went away, so it says nothing either way."""


def outcome(migration: PodMigration) -> Outcome:
    """Of a finished move. Landing beside the target, but away from the source, is a help all the same."""
    status = migration.status
    if status.phase == "Failed":
        return Outcome.FAILED
    if status.phase != "Completed":
        return Outcome.NOTHING
    source = status.resolved.source_node if status.resolved is not None else ""
    landed = status.replacement.node if status.replacement is not None else ""
    return Outcome.BOUNCED if landed and landed == source and not status.on_target else Outcome.HELPED


@dataclass(frozen=True, slots=True)
class Rest:
    """How long a workload is left alone, and after which move."""

    until: datetime
    after: PodMigration


def cooldowns(migrations: Iterable[PodMigration], settings: Settings, now: datetime) -> Mapping[str, datetime]:
    """Until when each workload rests; one that does not rest at this time is not in it."""
    return {subject: rest.until for subject, rest in rests(migrations, settings, now).items()}


def rests(migrations: Iterable[PodMigration], settings: Settings, now: datetime) -> Mapping[str, Rest]:
    """The same with the move that was the last reason."""
    found = {}
    for subject, moves in _by_subject(migrations).items():
        until = _rests_until(moves, settings.backoff)
        if until is not None and until > now:
            found[subject] = Rest(until, _streak(moves)[0])
    return found


def expired(migrations: Iterable[PodMigration], settings: Settings, now: datetime) -> tuple[PodMigration, ...]:
    """Finished moves to delete, oldest first: too old, too many of one workload, or too many in all.

    Age never takes a record that a rest is counted from, and the two numbers take such records last. The one that
    says when an interruption took pods of a workload stands outside both: it is one for some minutes, and just then,
    when many nodes are lost at once, there are too many of all.
    """
    history = settings.history
    kept: list[tuple[bool, PodMigration]] = []
    gone: list[PodMigration] = []
    for finished in _by_subject(migrations).values():
        needed = {id(it) for it in _needed(finished, settings.backoff, now)}
        interrupted = _interrupted(finished, settings, now)
        moves = [it for it in finished if it is not interrupted]
        old = [it for it in moves if ended(it) + history.history_ttl <= now and id(it) not in needed]
        gone += old
        dropped = {id(it) for it in old}
        rest = [(id(it) in needed, it) for it in moves if id(it) not in dropped]
        over = _surplus(rest, history.per_workload)
        gone += over
        dropped = {id(it) for it in over}
        kept += [entry for entry in rest if id(entry[1]) not in dropped]
    gone += _surplus(kept, history.total)
    return tuple(sorted(gone, key=ended))


def ended(migration: PodMigration) -> datetime:
    """When it finished; a record without that time counts from its creation."""
    return migration.status.finished_at or migration.metadata.creation_timestamp or _BEGINNING


def _by_subject(migrations: Iterable[PodMigration]) -> dict[str, list[PodMigration]]:
    """Finished ones, the newest first."""
    found: dict[str, list[PodMigration]] = {}
    for migration in migrations:
        if migration.status.phase in FINISHED and migration.metadata.deletion_timestamp is None:
            found.setdefault(subject(migration), []).append(migration)
    for moves in found.values():
        moves.sort(key=ended, reverse=True)
    return found


def subject(migration: PodMigration) -> str:
    """Whose move it was. A copied pod goes on under another name, and that is the one that may be moved again; unless
    the move was given up before the eviction, for then the copy went and the original stays.
    """
    status = migration.status
    if status.resolved is not None and status.resolved.workload is not None:
        return f"{migration.metadata.namespace}/{status.resolved.workload.uid}"
    copied = status.replacement.name if status.replacement is not None and went(migration) else ""
    return f"{migration.metadata.namespace}/{copied or migration.spec.pod_ref.name}"


def subject_of(pod: Pod, workload: Workload | None) -> str:
    """Under which the moves of a pod are remembered."""
    return of_workload(workload) if workload is not None and workload.uid else "/".join(pod.metadata.key)


def of_workload(workload: Workload) -> str:
    """The same of any pod of it."""
    return "/".join(workload.key)


def went(migration: PodMigration) -> bool:
    """Whether a move that has ended took its pod away, whatever came of it."""
    return migration.status.phase == "Completed" or migration.status.step in PAST_EVICTION


def _streak(moves: Iterable[PodMigration]) -> list[PodMigration]:
    """Moves since the last one that helped, the newest first; those that say nothing are left out."""
    found = []
    for migration in moves:
        match outcome(migration):
            case Outcome.HELPED:
                break
            case Outcome.NOTHING:
                continue
            case _:
                found.append(migration)
    return found


def _rests_until(moves: Iterable[PodMigration], backoff: Backoff) -> datetime | None:
    streak = _streak(moves)
    return ended(streak[0]) + _rest(len(streak), backoff) if streak else None


def _rest(failures: int, backoff: Backoff) -> timedelta:
    """How long after so many in a row. Counted in steps that can matter, for a power would grow beyond all bounds."""
    steps = min(failures, settings_rules.failures_to_longest_rest(backoff)) - 1
    return min(backoff.initial * backoff.factor**steps, backoff.max)


def _needed(moves: Sequence[PodMigration], backoff: Backoff, now: datetime) -> list[PodMigration]:
    """Records from which a rest that still lasts is counted."""
    until = _rests_until(moves, backoff)
    if until is None or until <= now:
        return []
    return _streak(moves)[: settings_rules.failures_to_longest_rest(backoff)]


def _interrupted(moves: Iterable[PodMigration], settings: Settings, now: datetime) -> PodMigration | None:
    """The newest record of an interruption, while the workload rests after it."""
    own = settings.strategies
    longest = max(own.spot_reclaim.cool_down, own.spot_mix.cool_down)
    taken = (it for it in moves if it.spec.strategy == INTERRUPTION and outcome(it) is not Outcome.NOTHING)
    newest = next(taken, None)
    return newest if newest is not None and ended(newest) + longest > now else None


def _surplus(moves: Sequence[tuple[bool, PodMigration]], most: int) -> list[PodMigration]:
    """What goes beyond the number: first what nobody needs, the oldest before the newer."""
    ordered = sorted(moves, key=lambda entry: (entry[0], ended(entry[1])))
    return [migration for _, migration in ordered[: max(0, len(moves) - most)]]

"""Which workloads are not to be brought to spot for a while, and the aim that tells their pods so.   Pure.

Counted from PodMigrations, like every rest: a restart forgets nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster.objects import Pod, PodMigration
from descheduler import memory
from descheduler.moving import is_open
from descheduler.picture import Picture
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState
from policy import values
from policy.capacity import CapacityType


@dataclass(frozen=True, slots=True)
class Held:
    """The aim of a pod that should go, but not yet: no node serves it, and the reason is told."""

    reason: Reason

    def reached(self, picture: Picture) -> bool:  # noqa: ARG002 - the shape of an aim
        """Never: the pod is told why it stays."""
        return False

    def ceiling(self) -> float:
        """No node will do."""
        return 0.0

    def alike(self) -> Hashable:
        """Who has the same reason."""
        return self.reason

    def objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:  # noqa: ARG002 - the shape of an aim
        """No node will do."""
        return self.reason


def interrupted(state: ClusterState, cool_down: timedelta, now: datetime) -> Mapping[str, Reason]:
    """Workloads from which an interruption has taken pods: what is gone may go again."""
    found: dict[str, tuple[datetime, str]] = {}
    for migration in state.migrations.values():
        if migration.spec.strategy != memory.INTERRUPTION or migration.status.phase == "Cancelled":
            continue
        until = now + cool_down if is_open(migration) else memory.ended(migration) + cool_down
        _keep(found, migration, until, now, "an interruption took a pod of it")
    return _reasons(found)


def missed(state: ClusterState, strategy: str, cool_down: timedelta, now: datetime) -> Mapping[str, Reason]:
    """Workloads of which a move by this strategy ended on the wrong capacity: the next one would most likely too."""
    found: dict[str, tuple[datetime, str]] = {}
    for migration in state.migrations.values():
        ended = migration.spec.strategy == strategy and migration.status.phase == "Completed"
        if ended and _missed(migration, state):
            _keep(found, migration, memory.ended(migration) + cool_down, now, "its last move ended on other capacity")
    return _reasons(found)


def until(times: Mapping[str, datetime], now: datetime, why: str) -> Mapping[str, Reason]:
    """Those that still rest, and why."""
    return _reasons({subject: (time, why) for subject, time in times.items() if time > now})


def _keep(
    found: dict[str, tuple[datetime, str]], migration: PodMigration, until: datetime, now: datetime, why: str
) -> None:
    subject = memory.subject(migration)
    known = found.get(subject)
    if until > now and (known is None or known[0] < until):
        found[subject] = (until, why)


def _reasons(found: Mapping[str, tuple[datetime, str]]) -> Mapping[str, Reason]:
    return {
        subject: Reason(Code.COOLING_DOWN, f"{why}; it rests until {values.format_time(until)}")
        for subject, (until, why) in found.items()
    }


def _missed(migration: PodMigration, state: ClusterState) -> bool:
    status = migration.status
    if status.on_target or status.resolved is None or status.replacement is None:
        return False
    target, landed = state.nodes.get(status.resolved.target_node), state.nodes.get(status.replacement.node)
    if target is None or landed is None:
        return False
    return (target.capacity is CapacityType.SPOT) is not (landed.capacity is CapacityType.SPOT)

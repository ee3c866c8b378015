"""What the migrator keeps of moves between two turns."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cluster.objects import PodMigration
from descheduler.migration.actions import Action
from descheduler.migration.judge import Judge
from descheduler.migration.machine import Failure
from descheduler.migration.migrator import LOOK_AGAIN, SLOW_DOWN, Migrator
from descheduler.migration.outcomes import Outcome, Overtaken
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.test_loop import AtOnce

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Nobody:
    """Hears and tells nothing."""

    def performed(self, migration: PodMigration, action: Action, outcome: Outcome, now: datetime) -> None:
        pass


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(Overtaken("gone", gone=True), id="it is gone"),
        pytest.param(Overtaken("changed"), id="it has changed, and goes later"),
        pytest.param(Failure("no connection"), id="it failed, and goes later"),
    ],
)
def test_nothing_is_kept_of_a_move_that_had_to_wait(outcome: Any) -> None:
    pod = build.pod("web-1", on="a", of=build.owner("ReplicaSet", "web"))
    move = build.thing("PodMigration", "m", spec={"podRef": {"name": "web-1", "uid": pod.metadata.uid}})
    state = build.state(build.node("a"), build.thing("ReplicaSet", "web", spec={"replicas": 1}), pod, move)
    judge = Judge(Settings, lambda: "", holder="one")
    migrator = Migrator(lambda *_: outcome, judge, Nobody(), pool=AtOnce(), wake=lambda: None)
    migrator.turn(state, NOW)
    migrator.turn(state, NOW)
    assert migrator.resting == {move.metadata.key}
    for known in list(state.migrations.values()):
        state.apply(known, None)
    migrator.turn(state, NOW + max(LOOK_AGAIN, SLOW_DOWN))
    assert migrator.resting == set()

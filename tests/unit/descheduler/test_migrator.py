"""What the migrator keeps of moves between two turns."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cluster.objects import PodMigration
from descheduler.migration.actions import Action
from descheduler.migration.judge import Judge
from descheduler.migration.migrator import LOOK_AGAIN, SLOW_DOWN, Migrator
from descheduler.migration.outcomes import Failure, Outcome, Overtaken
from descheduler.migration.world import World
from descheduler.node_state import Key
from descheduler.state import ClusterState
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.test_loop import AtOnce

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Nobody:
    """Tells nobody what it hears."""

    def __init__(self, unheard: Key | None = None) -> None:
        self.defects: list[Exception] = []
        self.unheard = unheard
        """It cannot hear of this one."""

    def performed(self, migration: PodMigration, action: Action, outcome: Outcome, now: datetime) -> None:
        if migration.metadata.key == self.unheard:
            raise OverflowError("date value out of range")

    def failed(self, error: Exception) -> None:
        self.defects.append(error)


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


def three() -> tuple[ClusterState, list[PodMigration]]:
    """Moves of three pods; the second one is the one that nobody understands."""
    pods = [build.pod(f"web-{number}", on="a", of=build.owner("ReplicaSet", "web")) for number in range(3)]
    moves = [
        build.thing("PodMigration", f"m-{it.metadata.name}", spec={"podRef": {"name": it.metadata.name}})
        for it in pods
    ]
    web = build.thing("ReplicaSet", "web", spec={"replicas": 3})
    return build.state(build.node("a"), web, *pods, *moves), moves


def test_a_move_that_nobody_understands_does_not_hold_up_the_others() -> None:
    state, moves = three()
    wrong, heard = moves[1].metadata.key, Nobody()
    sent: list[Key] = []
    judging = Judge(Settings, lambda: "", holder="one")
    broken = True

    def judge(migration: PodMigration, state: ClusterState, now: datetime) -> World:
        if broken and migration.metadata.key == wrong:
            raise OverflowError("date value out of range")
        return judging(migration, state, now)

    def perform(migration: PodMigration, _: Action) -> Outcome:
        sent.append(migration.metadata.key)
        return Overtaken("changed")

    migrator = Migrator(perform, judge, heard, pool=AtOnce(), wake=lambda: None)
    assert migrator.turn(state, NOW) == NOW + SLOW_DOWN, "it is tried again, and not at once"
    assert sent == [moves[0].metadata.key, moves[2].metadata.key]
    migrator.turn(state, NOW)
    assert [type(it) for it in heard.defects] == [OverflowError], "told once until then"
    broken = False
    migrator.turn(state, NOW + SLOW_DOWN)
    assert wrong in sent


def test_an_answer_that_nobody_understands_does_not_hold_up_the_others() -> None:
    state, moves = three()
    heard = Nobody(unheard=moves[1].metadata.key)
    judge = Judge(Settings, lambda: "", holder="one")
    migrator = Migrator(lambda *_: Overtaken("changed"), judge, heard, pool=AtOnce(), wake=lambda: None)
    migrator.turn(state, NOW)
    migrator.turn(state, NOW)
    assert len(heard.defects) == 1
    assert migrator.idle
    assert migrator.resting == {it.metadata.key for it in moves}

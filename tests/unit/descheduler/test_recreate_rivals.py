"""Two moves that ask for the same name of a copy: each gets a copy of its own, and none goes without one."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from cluster.objects import PodMigration
from descheduler.migration import failing, outcomes, recreate
from descheduler.migration.actions import CreateCopy, Done, Wait, Write
from tests.unit.descheduler import build
from tests.unit.descheduler.test_recreate import COPY, KEYS, START, Cluster, cluster, copy_of

LONG = "integration-runner-of-the-payments-team-eu-west-0"


@dataclass
class Crowd(Cluster):
    """Several moves, of which one is looked at."""

    which: int = 0

    @property
    def migration(self) -> PodMigration:
        return sorted(self.state.migrations.values(), key=lambda it: it.metadata.name)[self.which]


def crowd(*names: str) -> Crowd:
    moves = [
        build.thing(
            "PodMigration",
            f"migration-{number}-x",
            spec={"podRef": {"name": name}, "targetNode": "b", "strategy": "NodeMaintenance"},
        )
        for number, name in enumerate(names)
    ]
    pods = [build.pod(name, on="a") for name in names]
    return Crowd(build.state(build.node("a"), build.node("b"), *pods, *moves))


RIVALS = {
    "the same beginning": (f"{LONG}1", f"{LONG}2"),
    "a copy of an earlier move": ("web", "rescheduled-web-1770000000"),
    "a whole crowd": tuple(f"{LONG}{number}" for number in range(9)),
}


@pytest.mark.parametrize("names", RIVALS.values(), ids=RIVALS.keys())
def test_each_gets_a_copy_of_its_own(names: tuple[str, ...]) -> None:
    made = crowd(*names)
    for _ in range(200):
        waiting = True
        for made.which in range(len(names)):
            action = made.decide()
            if not isinstance(action, Wait | Done):
                waiting = False
                made.carry_out(action)
        made.now += timedelta(seconds=1) if waiting else timedelta()
    assert {it.status.phase for it in made.state.migrations.values()} == {"Completed"}
    assert len(made.names()) == len(names)
    assert not set(made.names()) & set(names), "all of them were moved"
    originals = {pod.metadata.annotations[KEYS.original_pod] for pod in made.state.pods.values()}
    assert originals == {f"uid-default-{name}" for name in names}
    assert all(len(it) <= recreate.NAME_LENGTH for it in made.names())


def test_a_pod_that_has_the_name_by_chance_is_not_the_copy() -> None:
    made = cluster()
    made.state.apply(None, build.pod(COPY, on="b"))
    ended = made.run()
    assert ended.status.phase == "Completed"
    assert ended.status.replacement is not None
    assert ended.status.replacement.name != COPY
    assert len(made.names()) == 2, "the stranger stays"


def test_names_that_are_never_free_end_the_move() -> None:
    made = cluster()
    taken = outcomes.Failure("another pod has its name", counts=False, taken=True)
    for _ in range(2000):
        action = made.decide()
        if isinstance(action, Done):
            break
        if isinstance(action, CreateCopy):
            action = failing.failed(made.migration, made.look(), taken, made.now)
            assert isinstance(action, Write)
        made.carry_out(action)
    assert made.migration.status.phase == "Failed"
    assert "there is no copy after" in made.migration.status.message
    assert made.names() == ["web"]


def test_a_copy_under_a_later_name_is_kept_when_the_pod_is_marked_anew() -> None:
    made = cluster()
    made.state.apply(None, build.pod(COPY, on="b"))
    while made.migration.status.step != "Evict":
        made.carry_out(made.decide())
    web = made.state.pods["default", "web"]
    made.state.apply(web, build.pod("web", on="a"))
    assert made.run().status.phase == "Completed"
    assert len([it for it in made.effects if it.startswith("create")]) == 1
    assert len(made.names()) == 2


def test_the_next_name_is_a_later_time() -> None:
    made = cluster()
    while not isinstance(action := made.decide(), CreateCopy):
        made.carry_out(action)
    found = recreate.other_name(made.migration, made.look(), START)
    assert found.startswith("rescheduled-web-")
    assert 0 < int(found[-10:]) - int(START.timestamp()) <= recreate.APART
    made.state.apply(None, copy_of(CreateCopy("web", "uid-default-web", COPY)))
    assert isinstance(made.decide(), Write), "the announced one counts as soon as it is seen"

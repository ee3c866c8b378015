"""What waits in line when everything is stopped is not sent any more; what puts things back is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import PodMigration
from cluster.resources import NODES
from descheduler import plan
from descheduler.migration import machine
from descheduler.migration.actions import (
    Action,
    Adopt,
    CreateCopy,
    Evict,
    MarkPod,
    MarkWorkload,
    Release,
    RemoveCopy,
    Scale,
    Write,
    begins,
)
from descheduler.migration.judge import Judge
from descheduler.migration.migrator import Migrator
from descheduler.migration.outcomes import Done, Outcome
from descheduler.requests import Request
from descheduler.upkeep import Surroundings, Upkeep
from policy import keys
from policy.settings import Mode, Settings
from policy.settings_strategies import NodeMaintenance, OnDeadline, Strategies
from telemetry.logs import Logger
from telemetry.meter import Meter
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment
from tests.unit.descheduler.test_loop import ACTING, Desk, Told, uneven
from tests.unit.descheduler.test_maintenance import AUTOSCALED, LATE
from tests.unit.descheduler.test_temporary_budget import migration, ours, workload
from tests.unit.descheduler.test_upkeep import LABEL, Later

KEYS = keys.under()
LOWERED = Scale("Deployment", "web", "u", 2, 1, owned=True)

ACTIONS: dict[str, tuple[Action, bool]] = {
    "an eviction": (Evict("web", "u", "1"), True),
    "one replica more": (Scale("Deployment", "web", "u", 1, 2, generation=1), True),
    "a copy": (CreateCopy("web", "u", "copy"), True),
    "as many replicas as before": (LOWERED, False),
    "a copy that goes again": (RemoveCopy("copy", "u", "1"), False),
    "marks": (MarkPod("web", "u"), False),
    "the label of the workload": (MarkWorkload("Deployment", "web", "u", None), False),
    "a status": (Write({}), False),
    "taken up": (Adopt(), False),
    "let go of": (Release(), False),
}


@pytest.mark.parametrize(("action", "new"), ACTIONS.values(), ids=ACTIONS.keys())
def test_what_begins_something(action: Action, new: bool) -> None:
    assert begins(action) is new


@dataclass
class Line:
    """Everything asked for waits until the test says so."""

    settings: Settings = field(default_factory=Settings)
    why: str = ""
    pool: Later = field(default_factory=Later)

    def held(self) -> str:
        return self.why or ("mode is observe" if self.settings.mode is Mode.OBSERVE else "")


def pull(line: Any) -> None:
    line.why = line.stopped = "somebody pulled it"


def observe(line: Any) -> None:
    line.settings = msgspec.structs.replace(line.settings, mode=Mode.OBSERVE)


STOPS = pytest.mark.parametrize("stop", [pull, observe], ids=["emergency stop", "observe"])
Stop = Callable[[Any], None]


# ---- moves


class Moves(Line):
    """A pod on its way out, marked, whose eviction is next."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[type[Action]] = []
        labels = {KEYS.migration_id: "m1", KEYS.migration_status: "in-progress"}
        (web, replica_set, *pods) = workload(replicas=3)
        pod = build.pod("web-0", on="a", labels={"app": "web", **labels}, of=build.owner("ReplicaSet", "web-rs"))
        move = migration(intent={"at": NOW.isoformat()})
        adopted = msgspec.structs.replace(move.metadata, finalizers=(machine.FINALIZER,))
        move = msgspec.structs.replace(move, metadata=adopted)
        budget = build.budget("mine", allowed=1, labels={"app": "web"})
        nodes = (build.node("a"), build.node("b"))
        self.state = build.state(*nodes, web, replica_set, pod, *pods[1:], move, budget)
        judge = Judge(lambda: self.settings, lambda: self.why, holder="one")
        self.migrator = Migrator(self.perform, judge, self, pool=self.pool, wake=lambda: None, stopped=self.held)

    def perform(self, _: PodMigration, action: Action) -> Outcome:
        self.sent.append(type(action))
        return Done()

    def performed(self, *_: Any) -> None:
        """Nobody is told."""

    def failed(self, error: Exception) -> None:
        raise error

    def turn(self, seconds: float = 0.0) -> None:
        self.migrator.turn(self.state, NOW + timedelta(seconds=seconds))


def test_an_eviction_goes_through_where_nothing_is_stopped() -> None:
    moves = Moves()
    moves.turn()
    moves.pool.work()
    assert moves.sent == [Evict]


@STOPS
def test_an_eviction_that_waits_in_line_is_not_sent_and_the_move_is_called_off(stop: Stop) -> None:
    moves = Moves()
    moves.turn()
    stop(moves)
    moves.pool.work()
    assert moves.sent == []
    for second in (1, 2):
        moves.turn(second)
        moves.pool.work()
    assert moves.sent == [MarkPod], "its marks are taken off"


# ---- nodes and budgets


class Keeping(Line):
    """What is written to nodes and about budgets."""

    def __init__(self, objects: list[Any], settings: Settings) -> None:
        super().__init__(settings)
        self.sent: list[str] = []
        self.state = build.state(*objects, settings=settings)
        self.plan = plan.make(self.state, settings, NOW)
        self.upkeep = Upkeep(
            self.send,
            Surroundings(
                settings=lambda: self.settings,
                stopped=lambda: self.why,
                leading=lambda: True,
                pool=self.pool,
                wake=lambda: None,
                recorder=Told(),
                meter=Meter(strict=True),
                log=Logger(lambda _line: None, now=lambda: NOW, strict=True),
            ),
        )

    def send(self, request: Request) -> None:
        if request.resource is not NODES:
            self.sent.append(f"{request.verb.value} {request.resource.plural}")
        elif "spec" in request.body:
            self.sent.append("cordon" if request.body["spec"]["unschedulable"] else "uncordon")

    def turn(self, seconds: float = 0.0) -> None:
        self.upkeep.turn(self.state, self.plan, NOW + timedelta(seconds=seconds))


DELETING = Settings(strategies=Strategies(node_maintenance=NodeMaintenance(on_deadline=OnDeadline.DELETE)))
HELD_BY_A_BUDGET = [
    build.node("a", labels=LABEL, annotations=LATE, unschedulable=True),
    build.node("b"),
    *deployment("x", ["a", "b"]),
    AUTOSCALED,
    build.budget("x", allowed=0, labels={"app": "x"}),
]
BEGUN: dict[str, tuple[list[Any], str]] = {
    "a cordon": ([build.node("a", labels=LABEL)], "cordon"),
    "a temporary budget": ([build.node("a"), *workload(), migration()], "create poddisruptionbudgets"),
    "a deletion at the deadline": (HELD_BY_A_BUDGET, "delete pods"),
}


@STOPS
@pytest.mark.parametrize(("objects", "expected"), BEGUN.values(), ids=BEGUN.keys())
def test_what_waits_in_line_is_not_sent_until_all_goes_on(objects: list[Any], expected: str, stop: Stop) -> None:
    keeping = Keeping(objects, DELETING)
    keeping.turn()
    stop(keeping)
    keeping.pool.work()
    assert keeping.sent == []
    keeping.turn(10)
    assert keeping.pool.work() == 0, "nor asked for again and again"
    keeping.why, keeping.settings = "", DELETING
    keeping.turn(20)
    keeping.pool.work()
    assert keeping.sent == [expected]


BACK: dict[str, tuple[list[Any], str]] = {
    "a cordon of ours": (
        [build.node("a", annotations={KEYS.cordoned_by: "spotshift"}, unschedulable=True)],
        "uncordon",
    ),
    "a temporary budget": ([build.node("a"), *workload(), ours("m1")], "delete poddisruptionbudgets"),
}


@STOPS
@pytest.mark.parametrize(("objects", "expected"), BACK.values(), ids=BACK.keys())
def test_what_is_put_back_is_sent_all_the_same(objects: list[Any], expected: str, stop: Stop) -> None:
    keeping = Keeping(objects, Settings())
    stop(keeping)
    keeping.turn()
    keeping.pool.work()
    assert keeping.sent == [expected]


# ---- new moves


def lose_the_lease(desk: Any) -> None:
    desk.leading = False


@pytest.mark.parametrize("stop", [pull, observe, lose_the_lease], ids=["emergency stop", "observe", "lease"])
def test_moves_that_are_planned_and_not_written_down_yet_are_not(stop: Stop) -> None:
    pool = Later()
    desk = Desk(uneven(), pool=pool)
    desk.loop.turn(desk.state)
    stop(desk)
    assert pool.work() == 2
    assert desk.created == []
    desk.stopped, desk.settings, desk.leading = "", ACTING, True
    desk.now += timedelta(minutes=10)
    desk.loop.turn(desk.state)
    assert pool.work() == 2
    assert len(desk.created) == 2, "the next plan asks for them again"

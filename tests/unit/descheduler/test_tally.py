"""How interruptions went, as a scraper and the Events tell it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cluster.eventlog import Subject, Topic
from descheduler import leaving
from descheduler.guards import Context
from descheduler.tally import Tally
from policy import keys
from policy.settings import Settings
from telemetry.meter import Meter
from telemetry.metrics import Metric
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment
from tests.unit.descheduler.test_interruption import ITN, ago, noted, silent, taint
from tests.unit.descheduler.test_leaving import dying

KEYS = keys.under()
SINCE = NOW - timedelta(seconds=10)
LOST = build.node("a", spot=True, taints=[taint(ITN, SINCE)])
NOTED = build.node("a", spot=True, taints=[taint(ITN, SINCE)], annotations=noted(f"taint {ITN}", 10, 110))
OTHERS = [build.node(f"r{number}", spot=True, zone="z") for number in range(3)]
WEB, SET, *PODS = deployment("x", ["a", "a"])
MOVING = build.thing(
    "PodMigration",
    "m",
    spec={"podRef": {"name": "x-00"}},
    status={"phase": "InProgress", "step": "AwaitReplacement", "resolved": {"sourceNode": "a"}},
)


@dataclass
class Desk:
    """A tally and what it told."""

    reasons: list[str] = field(default_factory=list)
    meter: Meter = field(default_factory=lambda: Meter(strict=True))
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(self.meter, self)

    def record(self, subject: Subject, topic: Topic, note: str, *, related: Subject | None = None) -> bool:
        assert (subject.kind, subject.name, related) == ("Node", "a", None)
        assert note
        self.reasons.append(topic.reason)
        return True

    def look(self, *objects: Any, at: float = 0) -> None:
        now: datetime = ago(-at)
        context = Context(build.state(*OTHERS, *objects), Settings(), KEYS, now, {})
        self.tally.look(leaving.look(context), context)

    def numbers(self) -> tuple[float, ...]:
        """Nodes, those left, those replaced, pods lost."""
        counted = (Metric.INTERRUPTION_LEFT_SECONDS, Metric.INTERRUPTION_REPLACED_SECONDS, Metric.PODS_LOST)
        sorts = ("notice", "rebalance", "notReady")
        nodes = sum(self.meter.read(Metric.INTERRUPTIONS, cause=sort) for sort in sorts)
        return nodes, *(self.meter.read(it) for it in counted)

    def seconds(self, metric: Metric) -> float:
        found = [line for line in self.meter.render()[1].decode().splitlines() if f"{metric.value.name}_sum" in line]
        return float(found[0].split()[-1])


def test_from_the_signal_to_the_last_replacement() -> None:
    desk = Desk()
    desk.look(LOST, WEB, SET, *PODS)
    desk.look(NOTED, WEB, SET, *PODS, at=1)
    assert (desk.numbers(), desk.reasons) == ((1, 0, 0, 0), [])
    desk.look(NOTED, WEB, SET, dying(PODS[0], ago(-30)), MOVING, at=5)
    assert desk.numbers() == (1, 0, 0, 0), "a pod that is stopping is still there"
    desk.look(NOTED, WEB, SET, MOVING, at=8)
    assert (desk.numbers(), desk.reasons) == ((1, 1, 0, 0), ["PodsLeft"])
    desk.look(NOTED, WEB, SET, at=20)
    desk.look(NOTED, WEB, SET, at=21)
    assert (desk.numbers(), desk.reasons) == ((1, 1, 1, 0), ["PodsLeft"])
    assert desk.seconds(Metric.INTERRUPTION_LEFT_SECONDS) == 18
    assert desk.seconds(Metric.INTERRUPTION_REPLACED_SECONDS) == 30


def test_who_takes_over_does_not_count_again() -> None:
    desk = Desk()
    desk.look(NOTED, WEB, SET, *PODS)
    assert desk.numbers() == (0, 0, 0, 0)
    desk.look(NOTED, WEB, SET, at=5)
    assert desk.numbers() == (0, 1, 1, 0), "but sees the end"
    late = Desk()
    late.look(NOTED, WEB, SET, *PODS, at=200)
    assert late.numbers() == (0, 0, 0, 0), "and what had passed, another has counted"


def test_what_is_still_there_at_the_deadline_is_lost() -> None:
    desk = Desk()
    desk.look(LOST, WEB, SET, *PODS)
    desk.look(NOTED, WEB, SET, dying(PODS[0], ago(-200)), PODS[1], at=111)
    desk.look(NOTED, WEB, SET, dying(PODS[0], ago(-200)), PODS[1], at=112)
    assert (desk.numbers(), desk.reasons) == ((1, 0, 0, 1), ["PodsLost"])


def test_a_node_that_vanishes_takes_what_is_on_it() -> None:
    desk = Desk()
    agent = build.pod("agent", on="a", of=build.owner("DaemonSet", "agent"))
    desk.look(LOST, WEB, SET, *PODS, agent)
    desk.look(WEB, SET, *PODS, agent, at=40)
    assert (desk.numbers(), desk.reasons) == ((1, 1, 1, 2), ["PodsLost", "PodsLeft"])
    desk.look(WEB, SET, at=41)
    assert desk.numbers() == (1, 1, 1, 2)


def test_a_node_that_comes_back_has_lost_nothing() -> None:
    desk = Desk()
    desk.look(silent("a", 90), WEB, SET, *PODS)
    desk.look(build.node("a", spot=True, zone="z"), WEB, SET, *PODS, at=5)
    assert desk.numbers() == (1, 0, 0, 0)


def test_pods_that_are_stuck_are_told_once_and_not_lost() -> None:
    desk = Desk()
    desk.look(silent("a", 90), WEB, SET, *PODS)
    dead = [dying(it, ago(1)) for it in PODS]
    for at in (1, 2, 3000):
        desk.look(silent("a", 90), WEB, SET, *dead, at=at)
    assert (desk.numbers(), sorted(desk.reasons)) == ((1, 1, 1, 0), ["PodsLeft", "PodsStuck"])

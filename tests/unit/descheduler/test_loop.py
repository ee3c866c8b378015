"""What the loop does with a plan: carries it out, or only tells it; and what a scraper sees of that."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cluster import errors
from cluster.eventlog import Subject, Topic
from cluster.objects import NodeMetrics, PodMetrics, PodMigration
from descheduler import gauges, measuring, plan, publish
from descheduler.last_pass import LastPass
from descheduler.loop import SWEEP_EVERY, Loop, Parts
from descheduler.measuring import Measuring
from descheduler.migration.actions import Write
from descheduler.migration.judge import Judge
from descheduler.migration.leftovers import Leftover
from descheduler.migration.migrator import Migrator
from descheduler.migration.outcomes import Done
from descheduler.plan import Plan
from descheduler.proposal import Move
from descheduler.state import ClusterState
from descheduler.telling import Teller
from descheduler.upkeep import Surroundings, Upkeep
from descheduler.usage_sources import Answer, Sources
from policy import keys
from policy.settings import Mode, Settings
from policy.settings_moves import Limits
from policy.settings_strategies import ResourceOptimization, Strategies, UsageSource
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric
from tests.unit.cluster.surroundings import World
from tests.unit.descheduler import build

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ACTING = Settings(enabled_strategies=("LoadBalancing",), limits=Limits(min_pod_age=timedelta()))


class AtOnce(Executor):
    """Does what it is given at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@dataclass
class Told:
    """Keeps Events."""

    reasons: list[tuple[str, str]] = field(default_factory=list)

    def record(self, subject: Subject, topic: Topic, note: str, *, related: Subject | None = None) -> bool:
        self.reasons.append((subject.kind, topic.reason))
        return True


@dataclass
class Desk:
    """A loop on a state without a cluster."""

    state: ClusterState
    settings: Settings = ACTING
    stopped: str = ""
    leading: bool = True
    now: datetime = NOW
    pool: Executor = field(default_factory=AtOnce)
    upkeep: Upkeep | None = None
    refusing: Exception | None = None
    created: list[str] = field(default_factory=list)
    told: Told = field(default_factory=Told)
    meter: Meter = field(default_factory=lambda: Meter(strict=True))
    lines: list[Mapping[str, Any]] = field(default_factory=list)
    loop: Loop = field(init=False)

    def __post_init__(self) -> None:
        log = Logger(self.lines.append, now=lambda: NOW, strict=True, level=logging.DEBUG)
        teller = Teller(self.told, self.meter, log)
        judge = Judge(lambda: self.settings, lambda: self.stopped, holder="one")
        migrator = Migrator(lambda *_: Done(), judge, teller, pool=AtOnce(), wake=lambda: None)
        around = Surroundings(
            settings=lambda: self.settings,
            stopped=lambda: self.stopped,
            leading=lambda: self.leading,
            pool=AtOnce(),
            wake=lambda: None,
            recorder=self.told,
            meter=self.meter,
            log=log,
        )
        self.loop = Loop(
            Parts(
                migrator=migrator,
                upkeep=self.upkeep or Upkeep(lambda _: None, around),
                api=self,
                teller=teller,
                pool=self.pool,
                wake=lambda: None,
                settings=lambda: self.settings,
                stopped=lambda: self.stopped,
                leading=lambda: self.leading,
                usage=lambda: None,
                clock=lambda: 0.0,
                wall=lambda: self.now,
            )
        )

    def create(self, move: Move, now: datetime) -> PodMigration:
        if self.refusing is not None:
            raise self.refusing
        self.created.append(move.pod.metadata.name)
        made: PodMigration = build.decode(build.merged(publish.body(move, now), {"metadata": META}))
        return made

    def delete(self, migration: PodMigration) -> None:
        raise AssertionError("nothing has ended")

    def clear(self, leftover: Leftover) -> object:
        raise AssertionError("nothing was left")


class Never(Executor):
    """Takes everything and does nothing: a slow API."""

    def __init__(self) -> None:
        self.taken = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.taken += 1
        return Future()


META = {"namespace": "default", "uid": "u", "resourceVersion": "1"}


def uneven() -> ClusterState:
    """Four pods of a tenth each on one node, nothing on the other."""
    pods = [build.pod(f"p{number}", on="a", of=build.owner("ReplicaSet", "web"), cpu="400m") for number in range(4)]
    bare = build.pod("bare", on="a", cpu="100m")
    nodes = [build.node("a", spot=False), build.node("b", spot=False), build.node("s", spot=True)]
    return build.state(*nodes, *pods, bare, build.thing("ReplicaSet", "web", spec={"replicas": 4}))


ACTS = {
    "enforce": (ACTING, "", True),
    "observe": (msgspec.structs.replace(ACTING, mode=Mode.OBSERVE), "", False),
    "emergency stop": (ACTING, "somebody pulled it", False),
}


@pytest.mark.parametrize(("settings", "stopped", "acts"), ACTS.values(), ids=ACTS.keys())
def test_the_same_plan_is_made_and_told_whether_it_is_carried_out_or_not(
    settings: Settings, stopped: str, acts: bool
) -> None:
    desk = Desk(uneven(), settings, stopped)
    desk.loop.turn(desk.state)
    assert desk.loop.last is not None
    moves = [it.pod.metadata.name for it in desk.loop.last.moves]
    assert len(moves) == 2
    assert desk.created == (moves if acts else [])
    assert desk.meter.read(Metric.PASS_SECONDS) == 1
    refused = len(desk.loop.last.refusals)
    assert desk.loop.last_pass == LastPass(NOW, 0.0, 2, refused, settings.mode.value, stopped, settings.label_prefix)
    assert desk.meter.read(Metric.PROPOSALS, strategy="LoadBalancing") == 2 + refused
    assert desk.meter.read(Metric.IMBALANCE) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(errors.Conflict("not now"), [], id="the API says no"),
        pytest.param(TypeError("cannot be written down"), ["INTERNAL_ERROR"] * 2, id="a defect of ours"),
    ],
)
def test_planning_goes_on_after_a_move_that_could_not_be_written_down(error: Exception, told: list[str]) -> None:
    desk = Desk(uneven(), refusing=error)
    desk.loop.turn(desk.state)
    desk.refusing = None
    desk.now += ACTING.rescheduling_interval
    desk.loop.turn(desk.state)
    assert len(desk.created) == 2
    assert [it["event"] for it in desk.lines if it["event"] == "INTERNAL_ERROR"] == told
    assert desk.meter.read(Metric.INTERNAL_ERRORS) == len(told)


class Broken(Upkeep):
    """A defect of ours that some node brings to light."""

    def __init__(self) -> None:
        pass

    def turn(self, state: ClusterState, plan: Plan | None, now: datetime) -> datetime | None:
        raise OverflowError("date value out of range")


def test_moves_and_plans_do_not_wait_for_nodes_that_cannot_be_kept() -> None:
    desk = Desk(uneven(), upkeep=Broken())
    with pytest.raises(OverflowError):  # counted and told by who asked for the turn
        desk.loop.turn(desk.state)
    assert len(desk.created) == 2


LEAVING = Settings(enabled_strategies=("SpotInterruption",))
GOING = [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}]


def two_spot_nodes(**first: Any) -> ClusterState:
    """Two pods on each, and a third node that is empty."""
    pods = [build.pod(f"p{number}", on="ab"[number % 2], of=build.owner("ReplicaSet", "web")) for number in range(4)]
    nodes = [build.node("a", spot=True, **first), build.node("b", spot=True), build.node("c", spot=True)]
    return build.state(*nodes, *pods, build.thing("ReplicaSet", "web", spec={"replicas": 4}))


def interrupted(state: ClusterState, name: str) -> None:
    state.apply(state.nodes[name].node, build.node(name, spot=True, taints=GOING))


def test_a_lost_node_is_planned_at_once_even_while_other_moves_are_being_written() -> None:
    pool = Never()
    desk = Desk(two_spot_nodes(), LEAVING, pool=pool)
    desk.loop.turn(desk.state)
    assert pool.taken == 0
    interrupted(desk.state, "a")
    desk.loop.turn(desk.state)
    assert pool.taken == 2, "no pause since the last plan"
    interrupted(desk.state, "b")
    desk.loop.turn(desk.state)
    assert pool.taken == 4, "nor for what is being written down"
    desk.now += timedelta(seconds=30)
    desk.loop.turn(desk.state)
    assert pool.taken == 4, "and nothing twice"


def test_the_time_after_which_silence_counts_wakes_the_loop() -> None:
    state = two_spot_nodes(ready=False)
    quiet = state.nodes["a"].node
    assert quiet is not None
    since = msgspec.structs.replace(quiet.status.conditions[0], last_transition_time=NOW - timedelta(seconds=48))
    state.apply(
        quiet, msgspec.structs.replace(quiet, status=msgspec.structs.replace(quiet.status, conditions=(since,)))
    )
    desk = Desk(state, LEAVING)
    again = desk.loop.turn(desk.state)
    assert desk.created == []
    assert again is not None
    assert again <= 12
    desk.now += timedelta(seconds=12)
    desk.loop.turn(desk.state)
    assert sorted(desk.created) == ["p0", "p2"]


def test_who_no_longer_leads_takes_its_numbers_back() -> None:
    desk = Desk(uneven())
    desk.loop.turn(desk.state)
    assert desk.meter.read(Metric.NODES, capacity="on-demand") == 2
    desk.leading = False
    assert desk.loop.turn(desk.state) is None
    assert desk.meter.read(Metric.NODES, capacity="on-demand") == 0
    assert desk.meter.read(Metric.IMBALANCE) == 0


def test_what_a_pass_is_made_for_is_told() -> None:
    desk = Desk(two_spot_nodes(ready=True), LEAVING)
    for wait in (0.0, 0.1, 30.0, 2.0):
        desk.now += timedelta(seconds=wait)
        desk.loop.turn(desk.state)
        if wait == 30.0:
            desk.state.apply(None, build.pod("another", on="a"))
    node = desk.state.nodes["a"].node
    assert node is not None
    desk.state.apply(node, build.node("a", spot=True, taints=GOING))
    desk.loop.turn(desk.state)
    passes = [(it["cause"], it["passId"]) for it in desk.lines if it["event"] == "PASS_STARTED"]
    assert passes == [("start", 1), ("interval", 2), ("change", 3), ("interruption", 4)]
    assert [it["passId"] for it in desk.lines if it["event"] == "PASS_FINISHED"] == [1, 2, 3, 4]


def test_holding_back_is_told_once_however_many_turns_there_are() -> None:
    desk = Desk(uneven(), msgspec.structs.replace(ACTING, mode=Mode.OBSERVE))
    for stopped in ("", "", "somebody says stop", "somebody says stop"):
        desk.stopped = stopped
        desk.loop.turn(desk.state)
    causes = [it["cause"] for it in desk.lines if it["event"] == "OBSERVE_ONLY"]
    assert causes == ["mode is observe", "somebody says stop"]


def test_gauges() -> None:
    ended = {"phase": "Failed", "finishedAt": "2026-06-01T11:59:00Z", "resolved": {"workload": {"uid": "w"}}}
    state = build.state(
        build.node("a", spot=True),
        build.node("b", spot=False, labels={"scheduler.alpha.kubernetes.io/maintenance": "true"}),
        build.node("c"),
        build.thing("PodMigration", "new"),
        build.thing("PodMigration", "m1", status={"phase": "InProgress", "step": "AwaitReplacement"}),
        build.thing("PodMigration", "m2", status={"phase": "InProgress", "step": "Mark"}),
        build.thing("PodMigration", "m3", status=ended),
    )
    made = plan.make(state, ACTING, NOW)
    found = {(it.metric, *it.labels.values()): it.value for it in gauges.read(state, made, ACTING, NOW)}
    assert {key: value for key, value in found.items() if value} == {
        (Metric.NODES, "spot"): 1,
        (Metric.NODES, "on-demand"): 1,
        (Metric.NODES, "unknown"): 1,
        (Metric.NODES_SIGNALLED, "on-demand"): 1,
        (Metric.MIGRATIONS_OPEN, "Pending"): 1,
        (Metric.MIGRATIONS_OPEN, "InProgress"): 2,
        (Metric.REPLACEMENTS_AWAITED,): 1,
        (Metric.WORKLOADS_RESTING,): 1,
        (Metric.IMBALANCE,): 1,
        (Metric.RESCHEDULING_INTERVAL,): 30,
    }
    assert {(it.metric, *it.labels.values()) for it in gauges.none()} == set(found), "the same series"


def test_how_much_runs_on_spot() -> None:
    on = ["s", "s", "o", ""]
    agent = [build.pod("agent", on="o", namespace="b", of=build.owner("DaemonSet", "agent"))]
    named = [
        build.pod(f"{name}-{number}", on=node, namespace=name) for name in "ab" for number, node in enumerate(on)
    ]
    few = [build.pod("p", on="s", namespace=f"x{number:02}") for number in range(60)]
    state = build.state(build.node("s", spot=True), build.node("o", spot=False), *named, *agent, *few)
    found = gauges.shares(state)
    assert found["a"] == found["b"] == (2, 3)
    assert (len(found), found["x47"], found["other"]) == (51, (1, 1), (12, 12))
    desk = Desk(state)
    desk.loop.turn(desk.state)
    assert desk.meter.read(Metric.SPOT_SHARE) == pytest.approx(64 / 66)
    assert desk.meter.read(Metric.NAMESPACE_SPOT_SHARE, namespace="a") == pytest.approx(2 / 3)
    desk.leading = False
    desk.loop.turn(desk.state)
    assert desk.meter.read(Metric.SPOT_SHARE) == 0
    assert b"namespace_spot_share_ratio{" not in desk.meter.render()[1]


def test_a_value_that_means_nothing_is_told_once_however_often_it_is_seen() -> None:
    unread = {keys.under().rescheduling: "disbled"}
    desk = Desk(build.state(build.node("a"), build.pod("p", on="a", labels=unread)))
    for _ in range(3):
        desk.loop.turn(desk.state)
        desk.now += SWEEP_EVERY
    assert desk.told.reasons == [("Pod", "InvalidValue")]


def test_the_start_of_a_move_is_told_wherever_somebody_may_look() -> None:
    """The workload and the node are known only from the write that starts it."""
    desk = Desk(uneven())
    teller = Teller(desk.told, desk.meter, Logger(lambda _: None, now=lambda: NOW, strict=True))
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u"}
    status = {"phase": "InProgress", "resolved": {"workload": workload, "sourceNode": "a"}}
    before, after = (build.thing("PodMigration", "m", status=it) for it in ({}, status))
    teller.performed(before, Write(status, event="MoveStarted moving pod p from a"), Done(after), NOW)
    assert sorted(desk.told.reasons) == [
        (kind, "MoveStarted") for kind in ("Deployment", "Node", "Pod", "PodMigration")
    ]


@dataclass
class Measured:
    """Answers, or does not."""

    problem: Exception | None = None
    asked: int = 0

    def ask(self) -> Answer:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        node = {
            "metadata": {"name": "a"},
            "timestamp": "2026-06-01T11:59:50Z",
            "usage": {"cpu": "3", "memory": "1Gi"},
        }
        container = {"name": "main", "usage": {"cpu": "2", "memory": "1Mi"}}
        pod = {"metadata": {"name": "p", "namespace": "default"}, "containers": [container]}
        return Answer((msgspec.convert(node, NodeMetrics),), (msgspec.convert(pod, PodMetrics),))


def measured(source: Measured, settings: Settings = Settings()) -> Measuring:  # noqa: B008 - a frozen value
    return Measuring(Sources(source), lambda: settings, runtime=World().runtime)


def test_what_was_measured_reaches_the_strategies() -> None:
    made = measured(Measured())
    assert made.usage() is None
    made.ask()
    found = made.usage()
    assert found is not None
    assert found.node("a") == (3000, 1 << 30)
    assert found.pod(("default", "p")) == (2000, 1 << 20)
    assert found.age("a", NOW) == timedelta(seconds=10)


def test_a_cluster_without_metrics_is_an_ordinary_one() -> None:
    made = measured(Measured(errors.NotFound("no such resource", status=404)))
    made.ask()
    assert made.usage() is None


def source(chosen: UsageSource) -> Settings:
    return Settings(strategies=Strategies(resource_optimization=ResourceOptimization(source=chosen)))


WANTED = {
    "by default": (Settings(), True),
    "another strategy": (ACTING, False),
    "requests": (source(UsageSource.REQUESTS), False),
    "metrics": (source(UsageSource.METRICS), True),
}


@pytest.mark.parametrize(("settings", "expected"), WANTED.values(), ids=WANTED.keys())
def test_nobody_is_asked_for_what_nobody_uses(settings: Settings, expected: bool) -> None:
    assert measuring.wanted(settings) is expected
    asked = Measured()
    measured(asked, settings).ask()
    assert asked.asked == int(expected)

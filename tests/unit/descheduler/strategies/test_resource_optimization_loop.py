"""ResourceOptimization pass after pass: the mean trails every move, and must not be taken for how things are."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster.node import ContainerMetrics
from cluster.objects import NodeMetrics, ObjectMeta, PodMetrics
from descheduler import plan
from descheduler.plan import Plan
from descheduler.proposal import Move
from descheduler.reasons import Code
from descheduler.usage import SAMPLES, Samples
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, nodes

ONLY = Settings(
    enabled_strategies=("ResourceOptimization",), limits=Limits(per_workload=20, per_node=20), max_reschedule_pods=20
)
FEW_AT_ONCE = Settings(enabled_strategies=("ResourceOptimization",))
SECOND = timedelta(seconds=1)
MEASURED_EVERY = 15
MOVE_SECONDS = 10
USED = 190
"""Thousandths of a cpu that each pod uses: 4.75 % of a node."""


@dataclass
class Cluster:
    """Pods that use what they use, measured every 15 seconds; a move takes 10, the pod is gone after half of that."""

    where: dict[str, str]
    settings: Settings = ONLY
    strategy: str = "ResourceOptimization"
    now: datetime = NOW
    usage: Samples = field(default_factory=Samples)
    moves: list[tuple[Move, datetime]] = field(default_factory=list)
    names: tuple[str, ...] = ("n0", "n1", "n2", "n3")

    def run(self, seconds: int) -> None:
        """A plan each second."""
        for _ in range(seconds):
            if (self.now - NOW).seconds % MEASURED_EVERY == 0:
                self.measure()
            self._go_on()
            self.moves += [(it, self.now) for it in self.planned().moves]
            self.now += SECOND

    def measure(self) -> None:
        self.usage.add_nodes(
            NodeMetrics(metadata=ObjectMeta(name=name), timestamp=self.now, usage={"cpu": f"{self.used(name)}m"})
            for name in self.names
        )
        part = (ContainerMetrics(name="main", usage={"cpu": f"{USED}m"}),)
        self.usage.set_pods(
            PodMetrics(metadata=ObjectMeta(name=name, namespace="default"), timestamp=self.now, containers=part)
            for name in self.where
        )

    def used(self, name: str) -> int:
        return USED * sum(on == name for on in self.where.values())

    def planned(self) -> Plan:
        owner = build.owner("ReplicaSet", "web")
        pods = [build.pod(name, on=on, of=owner, cpu="50m") for name, on in self.where.items()]
        workload = build.thing("ReplicaSet", "web", spec={"replicas": len(self.where)})
        records = [self._record(number, *it) for number, it in enumerate(self.moves)]
        state = build.state(*nodes(*self.names), workload, *pods, *records, settings=self.settings)
        return plan.make(state, self.settings, self.now, self.usage)

    def _go_on(self) -> None:
        for number, (move, began) in enumerate(self.moves):
            if self.now - began == MOVE_SECONDS * SECOND / 2:
                del self.where[move.pod.metadata.name]
            if self.now - began == MOVE_SECONDS * SECOND:
                self.where[f"new-{number}"] = move.target or ""

    def _record(self, number: int, move: Move, began: datetime) -> Any:
        pod = move.pod.metadata
        ends = began + MOVE_SECONDS * SECOND
        workload = {"kind": "ReplicaSet", "name": "web", "uid": "uid-default-web"}
        owner = {**workload, "controller": True}
        resolved = {"sourceNode": move.source, "targetNode": move.target, "workload": workload, "owner": owner}
        status: dict[str, Any] = {"phase": "InProgress", "step": "Evict", "resolved": resolved}
        if pod.name not in self.where:
            status["step"] = "AwaitReplacement"
        if self.now >= ends:
            landed = {"name": f"new-{number}", "uid": f"uid-default-new-{number}", "node": move.target}
            ended = {"phase": "Completed", "step": "Settle", "finishedAt": ends.isoformat(), "onTarget": True}
            status |= {**ended, "replacement": landed}
        spec = {"podRef": {"name": pod.name, "uid": pod.uid}, "strategy": self.strategy}
        return build.thing("PodMigration", f"m{number}", spec=spec, status=status)


def full(settings: Settings = ONLY) -> Cluster:
    """One node at 95 %; nine tenths of the threshold are reached with five pods fewer."""
    return Cluster({f"web-{number:02}": "n0" for number in range(20)}, settings)


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [pytest.param(ONLY, 600, id="all at once"), pytest.param(FEW_AT_ONCE, 900, id="two of a workload at once")],
)
def test_a_node_is_relieved_once(settings: Settings, seconds: int) -> None:
    cluster = full(settings)
    cluster.run(seconds)
    assert len(cluster.moves) <= 6
    assert 65 <= cluster.used("n0") / 40 <= 80


def test_a_target_is_not_filled_up_with_what_its_mean_does_not_show_yet() -> None:
    cluster = full()
    cluster.where |= {f"more-{number:02}": "n1" for number in range(20)}
    cluster.names = ("n0", "n1", "n2")
    cluster.run(600)
    assert max(cluster.used(name) for name in cluster.names) / 40 <= 80
    assert len(cluster.moves) <= 12


def test_why_a_node_that_was_just_relieved_waits_is_told_to_who_asks() -> None:
    cluster = full()
    cluster.run(MEASURED_EVERY)
    assert len(cluster.moves) == 5
    refusals = cluster.planned().refusals
    assert {it.code for refusal in refusals for it in refusal.reasons} == {Code.METRICS_STALE}
    assert all(it.routine for refusal in refusals for it in refusal.reasons), "and no news for anybody else"
    assert "before" in refusals[0].reasons[0].text


@pytest.mark.parametrize("strategy", ["ResourceOptimization", "NodeMaintenance"])
def test_it_waits_for_measurements_of_what_is_there_now(strategy: str) -> None:
    """Whoever moved the pods: the mean trails all of them."""
    cluster = full()
    cluster.strategy = strategy
    cluster.run(MEASURED_EVERY)
    began = len(cluster.moves)
    cluster.where |= {f"more-{number:02}": "n0" for number in range(6)}  # really too much again
    cluster.run(MEASURED_EVERY * (SAMPLES - 1))
    assert len(cluster.moves) == began
    cluster.run(MEASURED_EVERY)
    assert len(cluster.moves) > began

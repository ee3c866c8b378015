"""A budget whose making is answered long ago: another leader may have removed it before the answer is taken in."""

from datetime import timedelta
from typing import Any

import pytest

from cluster import errors
from descheduler.requests import Request, Verb
from descheduler.upkeep import Surroundings, Upkeep
from policy import keys
from policy.drain_status import Stage
from policy.settings import Settings
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW
from tests.unit.descheduler.test_loop import Desk
from tests.unit.descheduler.test_temporary_budget import NAME, migration, ours, workload
from tests.unit.descheduler.test_upkeep import Later, Recorded

KEYS = keys.under()


class Cluster:
    """An API that keeps one budget, and a process whose watch tells what the test says."""

    def __init__(self) -> None:
        self.state = build.state(build.node("a"), *workload(), migration())
        self.pool, self.meter = Later(), Meter(strict=True)
        self.budget: Any = None
        self.made = 0
        self.sent: list[Verb] = []
        self.upkeep = Upkeep(
            self.send,
            Surroundings(
                settings=Settings,
                stopped=lambda: "",
                leading=lambda: True,
                pool=self.pool,
                wake=lambda: None,
                recorder=Recorded(),
                meter=self.meter,
                log=Logger(lambda _line: None, now=lambda: NOW, strict=True),
            ),
        )

    def send(self, request: Request) -> Any:
        self.sent.append(request.verb)
        if request.verb is Verb.CREATE:
            self.made += 1
            owners = [it["name"] for it in request.body["metadata"]["ownerReferences"]]
            self.budget = ours(*owners, metadata={"uid": f"budget-{self.made}"})
        elif self.budget is None or self.budget.metadata.uid != request.uid:
            raise errors.NotFound("gone", status=404)
        return self.budget

    def turn(self, seconds: float) -> None:
        """Look, and have sent what is asked for."""
        self.upkeep.turn(self.state, None, NOW + timedelta(seconds=seconds))
        self.pool.work()

    def finished_by_another(self) -> None:
        """It saw the budget come, ended the move and removed the budget."""
        self.state.apply(None, self.budget)
        self.state.apply(migration(), migration(phase="Completed"))
        self.state.apply(self.budget, None)
        self.budget = None


def made_and_gone() -> Cluster:
    """Just before this process takes in the answer of the creation."""
    cluster = Cluster()
    cluster.turn(0)
    assert cluster.sent == [Verb.CREATE]
    cluster.finished_by_another()
    return cluster


def test_an_answer_from_before_the_lease_was_lost_is_not_believed() -> None:
    cluster = made_and_gone()
    cluster.upkeep.resign()
    for second in range(1, 5):
        cluster.turn(second)
    assert cluster.sent == [Verb.CREATE]
    assert cluster.state.budgets == {}


def test_the_loop_tells_of_a_lease_that_was_lost() -> None:
    cluster = Cluster()
    desk = Desk(cluster.state, upkeep=cluster.upkeep)
    desk.loop.turn(desk.state)
    cluster.pool.work()
    cluster.finished_by_another()
    for desk.leading in (False, True):
        desk.loop.turn(desk.state)
    cluster.pool.work()
    assert cluster.sent == [Verb.CREATE]


def drains(cluster: Cluster) -> dict[str, float]:
    found = {stage.value: cluster.meter.read(Metric.NODES_DRAINING, stage=stage.value) for stage in Stage}
    return {**found, "pods": cluster.meter.read(Metric.DRAIN_PODS)}


def test_a_lease_that_was_lost_takes_the_numbers_of_drains_with_it() -> None:
    """Whoever leads next counts the same nodes; old numbers beside theirs look like a drain that stands still."""
    cluster = Cluster()
    for name in ("b", "c"):
        cluster.state.apply(None, build.node(name, labels={KEYS.maintenance: "true"}))
        cluster.state.apply(None, build.pod(f"web-{name}", on=name, of=build.owner("ReplicaSet", "web")))
    cluster.state.apply(None, build.node("empty", labels={KEYS.maintenance: "true"}))
    desk = Desk(cluster.state, upkeep=cluster.upkeep)
    desk.loop.turn(desk.state)
    assert drains(cluster) == {"waiting": 1, "draining": 1, "drained": 1, "pods": 2}
    desk.leading = False
    desk.loop.turn(desk.state)
    assert set(drains(cluster).values()) == {0}


def test_an_answer_in_the_same_term_is() -> None:
    cluster = Cluster()
    cluster.upkeep.resign()
    cluster.turn(0)
    cluster.turn(1)
    assert cluster.state.budgets["default"]["default", NAME].metadata.uid == "budget-1"
    assert cluster.sent == [Verb.CREATE]


def test_a_budget_that_is_not_there_is_removed_once() -> None:
    cluster = made_and_gone()
    for second in range(1, 5):
        cluster.turn(second)
    assert cluster.sent == [Verb.CREATE, Verb.DELETE]
    assert cluster.state.budgets == {}


def test_a_budget_that_is_not_there_is_made_anew_for_the_next_move() -> None:
    cluster = made_and_gone()
    cluster.state.apply(None, migration("m2", pod="web-1"))
    for second in range(1, 5):
        cluster.turn(second)
    assert cluster.sent == [Verb.CREATE, Verb.PATCH, Verb.CREATE]
    assert cluster.state.budgets["default"]["default", NAME].metadata.uid == "budget-2"


def test_a_budget_that_somebody_sets_back_is_corrected_after_a_pause() -> None:
    """They may do so each time."""
    cluster, sent = Cluster(), []
    cluster.turn(0)
    cluster.turn(0.5)
    for seconds in (0.6, 1.4, 1.6):
        known = cluster.state.budgets["default"]["default", NAME]
        theirs = ours("migration-1-x", spec={"maxUnavailable": 2}, metadata={"uid": known.metadata.uid})
        cluster.state.apply(known, theirs)
        cluster.turn(seconds)
        sent.append(len(cluster.sent))
    assert (sent, cluster.sent) == ([1, 1, 2], [Verb.CREATE, Verb.PATCH])


@pytest.mark.parametrize("known", ["budget-9", None], ids=["another has its name", "it is known to be gone"])
def test_only_the_one_that_is_gone_is_forgotten(known: str | None) -> None:
    cluster = made_and_gone()
    cluster.upkeep.turn(cluster.state, None, NOW + timedelta(seconds=1))
    cluster.state.apply(cluster.state.budgets["default"]["default", NAME], None)
    if known is not None:
        cluster.state.apply(None, ours(metadata={"uid": known}))
    cluster.pool.work()
    cluster.upkeep.turn(cluster.state, None, NOW + timedelta(seconds=1))
    left = [it.metadata.uid for it in cluster.state.budgets.get("default", {}).values()]
    assert left == ([known] if known else [])

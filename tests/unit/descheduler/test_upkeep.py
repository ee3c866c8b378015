"""Requests about nodes and budgets: one at a time for each object, and what follows from their answers."""

from collections.abc import Callable
from concurrent.futures import Executor as Pool
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cluster import errors
from cluster.eventlog import Subject, Topic
from cluster.objects import Node
from descheduler.requests import Request
from descheduler.state import ClusterState
from descheduler.upkeep import Surroundings, Upkeep
from policy import keys
from policy.settings import Mode, Settings
from telemetry.logs import Logger
from telemetry.meter import Meter
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW

KEYS = keys.under()
LABEL = {KEYS.maintenance: "true"}


class Later(Pool):
    """Runs what it was given when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.waiting.append(lambda: fn(*args, **kwargs))
        return Future()

    def work(self) -> int:
        jobs, self.waiting = self.waiting, []
        for job in jobs:
            job()
        return len(jobs)


class Recorded:
    """Keeps the reasons of Events."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def record(self, subject: Subject, topic: Topic, note: str, *, related: Subject | None = None) -> bool:
        assert subject.kind == "Node"
        assert note
        assert related is None
        self.reasons.append(topic.reason)
        return True


class Cluster:
    """An API that carries out patches of nodes, or answers with an error."""

    def __init__(self, settings: Settings | None = None, *, leading: bool = True) -> None:
        self.state = ClusterState(Settings())
        self.pool, self.recorded = Later(), Recorded()
        self.sent: list[Request] = []
        self.error: errors.ApiError | None = None
        self.version = 1
        self.upkeep = Upkeep(
            self.send,
            Surroundings(
                settings=lambda: settings or Settings(),
                stopped=lambda: "",
                leading=lambda: leading,
                pool=self.pool,
                wake=lambda: None,
                recorder=self.recorded,
                meter=Meter(strict=True),
                log=Logger(lambda _line: None, now=lambda: NOW, strict=True),
            ),
        )

    def send(self, request: Request) -> Node:
        self.sent.append(request)
        if self.error is not None:
            raise self.error
        known = self.state.nodes[request.name].node
        assert known is not None
        self.version += 1
        body = request.body
        notes = {**known.metadata.annotations, **body["metadata"]["annotations"]}
        made = build.node(
            request.name,
            labels=known.metadata.labels,
            annotations={key: value for key, value in notes.items() if value is not None},
            unschedulable=bool(body.get("spec", {}).get("unschedulable", known.spec.unschedulable)),
        )
        return renewed(made, str(self.version))

    def label(self, labels: dict[str, str]) -> None:
        found = self.state.nodes.get("a")
        known = found.node if found is not None else None
        made = build.node("a", labels=labels)
        if known is not None:
            made = build.node(
                "a", labels=labels, annotations=known.metadata.annotations, unschedulable=known.spec.unschedulable
            )
        self.version += 1
        self.state.apply(known, renewed(made, str(self.version)))

    def turn(self, seconds: float = 0.0) -> float | None:
        now = NOW + timedelta(seconds=seconds)
        due = self.upkeep.turn(self.state, None, now)
        return None if due is None else (due - now).total_seconds()


def renewed(node: Node, version: str) -> Node:
    meta = msgspec.structs.replace(node.metadata, resource_version=version)
    return msgspec.structs.replace(node, metadata=meta)


def test_a_cordon_is_sent_once_and_known_at_once() -> None:
    cluster = Cluster()
    cluster.label(LABEL)
    cluster.turn()
    cluster.turn()
    assert cluster.pool.work() == 1
    assert cluster.turn() is not None
    assert cluster.pool.work() == 0, "the answer is in the state though no watch has told of it"
    node = cluster.state.nodes["a"].node
    assert node is not None
    assert node.spec.unschedulable
    assert cluster.recorded.reasons == ["Cordoned", "Drained"]


def test_a_label_that_goes_again_is_followed_at_once() -> None:
    cluster = Cluster()
    cluster.label(LABEL)
    cluster.turn()
    cluster.pool.work()
    cluster.turn()
    cluster.label({})
    cluster.turn(0.1)
    cluster.pool.work()
    cluster.turn(0.2)
    node = cluster.state.nodes["a"].node
    assert node is not None
    assert not node.spec.unschedulable
    assert set(node.metadata.annotations) == set()


PAUSES = {
    "a conflict": (errors.Conflict("changed", status=409), 0.1),
    "gone": (errors.NotFound("gone", status=404), 0.1),
    "not allowed": (errors.Forbidden("no", status=403), 5.0),
}


@pytest.mark.parametrize(("error", "pause"), PAUSES.values(), ids=PAUSES.keys())
def test_what_failed_is_tried_again(error: errors.ApiError, pause: float) -> None:
    cluster = Cluster()
    cluster.label(LABEL)
    cluster.error = error
    cluster.turn()
    assert cluster.pool.work() == 1
    due = cluster.turn()
    assert due == pytest.approx(pause)
    assert cluster.pool.work() == 0
    cluster.error = None
    cluster.turn(pause + 0.01)
    assert cluster.pool.work() == 1
    assert cluster.recorded.reasons == []


def test_what_waits_in_line_is_not_sent_without_the_lease() -> None:
    cluster = Cluster(leading=False)
    cluster.label(LABEL)
    cluster.turn()
    assert cluster.pool.work() == 1
    cluster.turn()
    assert cluster.sent == []
    assert cluster.recorded.reasons == []


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(Settings(mode=Mode.OBSERVE), id="observing"),
        pytest.param(Settings(enabled_strategies=("LoadBalancing",)), id="the strategy is not enabled"),
    ],
)
def test_no_cordon_where_nothing_would_be_drained(settings: Settings) -> None:
    cluster = Cluster(settings)
    cluster.label(LABEL)
    cluster.turn()
    assert cluster.pool.work() == 0


def test_a_label_that_means_nothing_is_told_once() -> None:
    cluster = Cluster()
    cluster.label({KEYS.maintenance: "yes"})
    cluster.turn()
    cluster.label({KEYS.maintenance: "yes", "other": "label"})
    cluster.turn(1)
    assert cluster.recorded.reasons == ["InvalidValue"]
    assert cluster.pool.work() == 0


def test_nothing_to_do_asks_for_no_turn() -> None:
    cluster = Cluster()
    cluster.label({})
    assert cluster.turn() is None
    assert cluster.turn() is None

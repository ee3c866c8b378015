"""The live state on sources in memory: what arrives on a watch is in the next turn, and turns are not wasted."""

import queue
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import objects
from cluster.absent import MayBeAbsent
from cluster.decode import Decoder, Decoders
from cluster.pace import Pace
from cluster.recovery import Tuning
from cluster.store import Delta, Kind
from descheduler import kinds
from descheduler.state import ClusterState
from descheduler.sync import Change, Live, matters
from policy.capacity import CapacityType
from policy.settings import Settings
from policy.settings_load import load
from telemetry.metrics import Metric
from tests.unit.cluster.kept import Kept
from tests.unit.cluster.surroundings import PATIENCE_SECONDS, World, until
from tests.unit.descheduler import build

QUICK = Tuning(pace=Pace(0.001, 0.01), healthy_seconds=60)
DECODERS = Decoders()
POLICY = "{apiVersion: spotshift.dev/v1alpha1, kind: Policy, %s}"
OTHER_LABEL = POLICY % "capacity: {labels: [{key: example.com/pool, spot: [cheap], onDemand: [dear]}]}"


class Cluster:
    """All sources of a live state, and the turns it took: (pods, nodes, kinds of capacity) each."""

    def __init__(self, kind: type[Live] = Live) -> None:
        self.kept = {kind.name: Kept(kind.resource, self._decoder(kind)) for kind in kinds.ALL}
        self.world = World()
        self.turns: queue.SimpleQueue[tuple[set[str], set[str], set[CapacityType]]] = queue.SimpleQueue()
        self.broken = False
        self.again: float | None = None
        self.indexed: tuple[set[Any], set[str]] = set(), set()
        """Of the last turn: pods that ask for a mix, nodes that carry a signal."""
        sources = [(it, self.kept[it.name] if it.installed else MayBeAbsent(self.kept[it.name])) for it in kinds.ALL]
        self.live = kind(sources, Settings(), self.turn, runtime=self.world.runtime, tuning=QUICK)

    @staticmethod
    def _decoder(kind: kinds.Watched) -> Decoder[Any]:
        return DECODERS.of(kind.type)

    def turn(self, state: ClusterState) -> float | None:
        if self.broken:
            self.broken = False
            raise RuntimeError("broken")
        capacity = {it.capacity for it in state.nodes.values()}
        self.indexed = set(state.mixing.mixed.pods), {name for name, it in state.nodes.items() if it.signed}
        self.turns.put(({name for _, name in state.pods}, set(state.nodes), capacity))
        return self.again

    def next_turn(self) -> tuple[set[str], set[str], set[CapacityType]]:
        return self.turns.get(timeout=PATIENCE_SECONDS)

    def say(self, kind: kinds.Watched, event: str, name: str, **rest: Any) -> None:
        namespace = "shop" if kind.resource.namespaced else ""
        self.kept[kind.name].say(event, name, namespace=namespace, **rest)


class Late(Live):
    """The last list ends when the thread has just stopped waiting for changes."""

    def _next(self) -> Change | None:
        if self.synced:
            return super()._next()
        until(lambda: self.problem() == "the state is not complete yet", "every list")
        return None


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    made = Cluster(getattr(request, "param", Live))
    made.say(kinds.NODES, "ADDED", "a", metadata={"labels": {"example.com/pool": "cheap"}})
    made.say(kinds.PODS, "ADDED", "x", spec={"nodeName": "a"})
    yield made
    made.live.stop()


@pytest.fixture
def synced(cluster: Cluster) -> Cluster:
    cluster.live.start()
    assert cluster.live.wait_synced(PATIENCE_SECONDS)
    assert cluster.next_turn() == ({"x"}, {"a"}, {CapacityType.UNKNOWN})
    return cluster


@pytest.mark.parametrize("cluster", [Live, Late], indirect=True)
def test_the_first_turn_sees_everything(cluster: Cluster) -> None:
    assert cluster.live.problem() == "nodes not synced yet"
    cluster.live.start()
    assert cluster.next_turn()[:2] == ({"x"}, {"a"})
    assert cluster.live.synced
    assert cluster.live.problem() is None
    assert cluster.live.absent() == ()


def test_a_change_makes_a_turn(synced: Cluster) -> None:
    synced.say(kinds.PODS, "ADDED", "y", spec={"nodeName": "a"})
    assert synced.next_turn()[0] == {"x", "y"}
    synced.say(kinds.PODS, "DELETED", "x")
    assert synced.next_turn()[0] == {"y"}


def test_a_heartbeat_makes_none(synced: Cluster) -> None:
    synced.say(kinds.NODES, "MODIFIED", "a", metadata={"labels": {"example.com/pool": "cheap"}})
    synced.say(kinds.PODS, "MODIFIED", "x", spec={"nodeName": "a"})
    synced.say(kinds.NODES, "ADDED", "b")
    assert synced.next_turn()[1] == {"a", "b"}
    assert synced.turns.empty()


def test_a_turn_can_be_asked_for(synced: Cluster) -> None:
    synced.live.wake()
    assert synced.next_turn()[0] == {"x"}


def test_a_turn_comes_again_without_any_change(cluster: Cluster) -> None:
    cluster.again = 0.05
    cluster.live.start()
    for _ in range(3):
        assert cluster.next_turn()[0] == {"x"}


def test_a_server_without_our_own_kind_is_fine(cluster: Cluster) -> None:
    cluster.kept["podmigrations"].exists = False
    cluster.live.start()
    assert cluster.live.wait_synced(PATIENCE_SECONDS)
    assert cluster.live.absent() == ("podmigrations",)
    assert cluster.live.problem() is None
    cluster.kept["podmigrations"].exists = True
    until(lambda: cluster.live.absent() == (), "the definition")


def test_a_server_without_an_ordinary_kind_is_a_problem(cluster: Cluster) -> None:
    cluster.kept["poddisruptionbudgets"].exists = False
    cluster.live.start()
    until(lambda: cluster.live.problem() == "poddisruptionbudgets not synced yet", "the problem")
    assert not cluster.live.synced


def test_other_settings_make_the_state_anew(synced: Cluster) -> None:
    synced.live.configure(load(OTHER_LABEL))
    assert synced.next_turn() == ({"x"}, {"a"}, {CapacityType.SPOT})
    synced.say(kinds.PODS, "DELETED", "x")
    assert synced.next_turn()[0] == set()


RESHAPED: dict[str, tuple[str, tuple[set[Any], set[str]]]] = {
    "nothing of the kind": ("mode: observe", (set(), set())),
    "the prefix of our keys": ("labelPrefix: example.com/", ({("shop", "x")}, set())),
    "which signs a node can carry": (
        "signals: {rows: [{kind: maintenance, place: label, key: example.com/pool, value: cheap}]}",
        (set(), {"a"}),
    ),
}
"""What of the settings is changed; which pods then ask for a mix, and which nodes carry a signal."""


@pytest.mark.parametrize(("changed", "expected"), RESHAPED.values(), ids=RESHAPED.keys())
def test_what_is_read_by_other_settings_is_read_again(
    cluster: Cluster, changed: str, expected: tuple[set[Any], set[str]]
) -> None:
    annotations = {"example.com/spot-percentage": "50"}
    cluster.say(kinds.PODS, "MODIFIED", "x", spec={"nodeName": "a"}, metadata={"annotations": annotations})
    cluster.live.start()
    assert cluster.next_turn()[0] == {"x"}
    assert cluster.indexed == (set(), set())
    cluster.live.configure(load(POLICY % changed))
    assert cluster.next_turn()[0] == {"x"}
    assert cluster.indexed == expected


def test_an_object_that_cannot_be_counted_is_left_out(synced: Cluster) -> None:
    broken = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "many"}}}], "nodeName": "a"}
    synced.say(kinds.PODS, "ADDED", "odd", spec=broken)
    assert synced.next_turn()[0] == {"x"}
    assert synced.world.meter.read(Metric.INTERNAL_ERRORS) == 1
    synced.say(kinds.PODS, "ADDED", "y", spec={"nodeName": "a"})
    assert synced.next_turn()[0] == {"x", "y"}


def test_a_turn_that_fails_does_not_end_the_thread(synced: Cluster) -> None:
    synced.broken = True
    synced.live.wake()
    until(lambda: synced.world.meter.read(Metric.INTERNAL_ERRORS) == 1, "the count")
    synced.say(kinds.PODS, "DELETED", "x")
    assert synced.next_turn()[0] == set()
    assert synced.live.problem() is None


POD = build.pod("x", on="a", cpu="1")
NODE = build.node("a")
MATTERS: dict[str, tuple[Any, Any, bool]] = {
    "a new object": (None, POD, True),
    "a deleted object": (POD, None, True),
    "a new version": (POD, build.pod("x", on="a", cpu="1", metadata={"resourceVersion": "2"}), False),
    "readiness": (POD, build.pod("x", on="a", cpu="1", ready=False), True),
    "a label": (POD, build.pod("x", on="a", cpu="1", labels={"a": "b"}), True),
    "deletion": (POD, build.pod("x", on="a", cpu="1", metadata={"deletionTimestamp": build.LONG_AGO}), True),
    "a node's heartbeat": (NODE, build.node("a"), False),
    "a taint": (NODE, build.node("a", taints=[{"key": "k", "effect": "NoSchedule"}]), True),
    "an annotation of a node": (NODE, build.node("a", annotations={"k": "v"}), True),
}


@pytest.mark.parametrize(("old", "new", "expected"), MATTERS.values(), ids=MATTERS.keys())
def test_what_matters(old: Any, new: Any, expected: bool) -> None:
    assert matters(Delta(Kind.MODIFIED, ("", ""), old, new)) is expected


def test_every_kind_of_the_state_is_watched() -> None:
    made = ClusterState(Settings())
    for kind in kinds.ALL:
        made.apply(None, kind.type(metadata=objects.ObjectMeta(name="x", uid=kind.name)))
    assert made.changes == len(kinds.ALL)
    assert set(build.TYPES.values()) == {kind.type for kind in kinds.ALL}

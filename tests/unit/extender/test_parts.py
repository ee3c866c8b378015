"""Changes of objects, one after the other, and the view after each of them."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster import resources
from cluster.decode import Decoder
from cluster.meta import PartialObjectMetadata
from cluster.migration import PodMigration
from cluster.node import Node
from cluster.resources import Resource
from cluster.store import Delta, Kind
from extender import view
from extender.objects import PlacedPod
from extender.parts import LOOK_AGAIN, Parts
from extender.view import Metadata, NodeFacts
from policy.capacity import CapacityType
from policy.settings_extender import NodeMetric
from policy.signal_table import Kind as Sign
from tests.unit.extender.building import NOW, PREFIX, settings

DECODERS: dict[Resource, Decoder[Any]] = {
    resources.NODES: Decoder(Node),
    resources.PODS: Decoder(PlacedPod),
    resources.PODMIGRATIONS: Decoder(PodMigration),
    resources.NAMESPACES: Decoder(PartialObjectMetadata),
}
LATENCY = "example.org/latency"


class Watch:
    """Parts, fed as a watch does it."""

    def __init__(self, said: str = "") -> None:
        self.now = NOW
        self.parts = Parts(settings(said), now=self._read)

    def _read(self) -> datetime:
        return self.now

    def put(self, resource: Resource, name: str, namespace: str = "", **body: Any) -> None:
        metadata = {"name": name, "namespace": namespace, **body.pop("metadata", {})}
        seen = DECODERS[resource].decode(json.dumps({"metadata": metadata, **body}).encode())
        self.parts.apply(resource, Delta(Kind.MODIFIED, (namespace, name), None, seen))

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        last = DECODERS[resource].decode(json.dumps({"metadata": {"name": name, "namespace": namespace}}).encode())
        self.parts.apply(resource, Delta(Kind.DELETED, (namespace, name), last, None))

    def node(self, name: str = "a", **body: Any) -> None:
        self.put(resources.NODES, name, **{"status": {"allocatable": {"cpu": "4", "pods": "110"}}, **body})

    def pod(self, name: str, node: str = "a", cpu: str = "1") -> None:
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "0"}}}]
        self.put(resources.PODS, name, "shop", spec={"nodeName": node, "containers": containers})


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        pytest.param({}, NodeFacts(), id="plain"),
        pytest.param(
            {"metadata": {"labels": {"node.kubernetes.io/capacity": "spot"}}}, NodeFacts(CapacityType.SPOT), id="spot"
        ),
        pytest.param(
            {"metadata": {"labels": {PREFIX + "maintenance": "true"}}}, NodeFacts(sign=Sign.MAINTENANCE), id="drained"
        ),
        pytest.param({"spec": {"unschedulable": True}}, NodeFacts(sign=Sign.AVOID), id="cordoned"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-11-16T11:00:00Z"}},
            NodeFacts(sign=Sign.INTERRUPTION),
            id="deleted",
        ),
        pytest.param(
            {
                "spec": {
                    "unschedulable": True,
                    "taints": [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}],
                }
            },
            NodeFacts(sign=Sign.INTERRUPTION),
            id="the worst of several signs",
        ),
    ],
)
def test_a_node(watch: Watch, body: dict[str, Any], facts: NodeFacts) -> None:
    watch.node(**body)
    assert watch.parts.view().nodes == {"a": facts}
    watch.remove(resources.NODES, "a")
    assert watch.parts.view().nodes == {}


@pytest.mark.parametrize(
    ("text", "best", "worst", "share"),
    [
        pytest.param("50", 0, 200, 0.75, id="between"),
        pytest.param("0", 0, 200, 1.0, id="best"),
        pytest.param("-5", 0, 200, 1.0, id="better than that"),
        pytest.param("500", 0, 200, 0.0, id="worse than the worst"),
        pytest.param("150", 200, 0, 0.75, id="more is better"),
        pytest.param("1.5e2", 0, 200, 0.25, id="with an exponent"),
        pytest.param(None, 0, 200, 0.5, id="none"),
        pytest.param("fast", 0, 200, 0.5, id="no number"),
        pytest.param("nan", 0, 200, 0.5, id="not a number by name"),
        pytest.param("inf", 0, 200, 0.0, id="endless"),
    ],
)
def test_the_number_in_an_annotation(text: str | None, best: float, worst: float, share: float) -> None:
    assert view.share(text, NodeMetric(annotation=LATENCY, best=best, worst=worst)) == share


def test_the_number_comes_from_the_annotation_of_the_settings() -> None:
    watch = Watch(f"extender: {{metric: {{annotation: {LATENCY}}}}}")
    watch.node(metadata={"annotations": {LATENCY: "10"}})
    assert watch.parts.view().nodes["a"].metric == 0.9


def test_what_is_announced_becomes_due_by_itself(watch: Watch) -> None:
    due = NOW + timedelta(hours=25)
    window = {"cloud.google.com/scheduled-maintenance-time": str(int(due.timestamp()))}
    watch.node(metadata={"labels": window})
    assert watch.parts.view().nodes["a"].sign is Sign.AVOID
    watch.now += timedelta(hours=2)
    assert watch.parts.view().nodes["a"].sign is Sign.MAINTENANCE


def test_signs_are_not_read_again_all_the_time(watch: Watch) -> None:
    watch.node(spec={"unschedulable": True})
    first = watch.parts.view()
    watch.now += LOOK_AGAIN / 2
    assert watch.parts.view() is first


def test_load_follows_the_pods(watch: Watch) -> None:
    steps: list[tuple[Callable[[], None], dict[str, float]]] = [
        (watch.node, {"a": 0.0}),
        (lambda: watch.pod("one"), {"a": 0.25}),
        (lambda: watch.pod("two", cpu="2"), {"a": 0.75}),
        (lambda: watch.pod("two", cpu="1"), {"a": 0.5}),  # resized in place
        (lambda: watch.remove(resources.PODS, "one", "shop"), {"a": 0.25}),
        (lambda: watch.pod("early", node="b"), {"a": 0.25}),
        (lambda: watch.node("b"), {"a": 0.25, "b": 0.25}),
        (lambda: watch.remove(resources.PODS, "two", "shop"), {"a": 0.0, "b": 0.25}),
    ]
    for step, loads in steps:
        step()
        assert watch.parts.view().loads == loads


def test_a_node_that_comes_back_has_the_pods_it_had(watch: Watch) -> None:
    watch.node()
    watch.pod("one")
    watch.remove(resources.NODES, "a")
    assert watch.parts.view().loads == {}
    watch.node()
    assert watch.parts.view().loads == {"a": 0.25}


@pytest.mark.parametrize("text", ["", "much", "1x"])
def test_amounts_that_cannot_be_read_count_nothing(watch: Watch, text: str) -> None:
    watch.node()
    watch.pod("one", cpu=text)
    assert watch.parts.view().loads == {"a": pytest.approx(1 / 110)}
    watch.node(status={"allocatable": {"cpu": text}})
    assert watch.parts.view().loads == {"a": 0.0}


def test_namespaces(watch: Watch) -> None:
    watch.put(resources.NAMESPACES, "shop", metadata={"annotations": {PREFIX + "spot": "avoid"}})
    assert watch.parts.view().namespaces == {"shop": Metadata({}, {PREFIX + "spot": "avoid"})}
    watch.remove(resources.NAMESPACES, "shop")
    assert watch.parts.view().namespaces == {}


def test_nothing_new_is_the_same_view(watch: Watch) -> None:
    watch.node()
    watch.pod("one")
    first = watch.parts.view()
    watch.node()
    watch.pod("one")
    assert watch.parts.view() is first


OPEN = {
    "phase": "InProgress",
    "startedAt": "2026-11-16T11:59:00Z",
    "resolved": {
        "owner": {"kind": "ReplicaSet", "uid": "rs-1", "controller": True},
        "podUid": "old",
        "sourceNode": "a",
        "targetNode": "b",
    },
}
OTHER_TARGET = {**OPEN["resolved"], "targetNode": "c"}  # type: ignore[dict-item]


def migration(watch: Watch, name: str, **status: Any) -> None:
    spec = {"podRef": {"name": "web-1"}, "targetNode": "elsewhere"}
    watch.put(resources.PODMIGRATIONS, name, "shop", spec=spec, status={**OPEN, **status})


def targets(watch: Watch) -> list[str]:
    return [it.target for it in watch.parts.view().moves.get(("shop", "rs-1"), ())]


@pytest.mark.parametrize(
    ("status", "found"),
    [
        pytest.param({}, ["b"], id="open"),
        pytest.param({"phase": "Pending"}, ["b"], id="not begun"),
        pytest.param({"phase": "Completed"}, [], id="completed"),
        pytest.param({"phase": "Cancelled"}, [], id="cancelled"),
        pytest.param({"phase": "Failed"}, [], id="failed"),
        pytest.param({"replacement": {"name": "web-9", "node": "b"}}, [], id="has its replacement"),
        pytest.param({"resolved": None}, [], id="not looked at yet: the spec is anybody's"),
        pytest.param({"resolved": {**OTHER_TARGET, "targetNode": ""}}, [], id="without a target"),
    ],
)
def test_which_moves_guide(watch: Watch, status: dict[str, Any], found: list[str]) -> None:
    migration(watch, "m-1", **status)
    assert targets(watch) == found


def test_the_oldest_move_first(watch: Watch) -> None:
    migration(watch, "m-1", startedAt="2026-11-16T11:59:30Z")
    migration(watch, "m-2", resolved=OTHER_TARGET)
    assert targets(watch) == ["c", "b"]
    watch.remove(resources.PODMIGRATIONS, "m-2", "shop")
    assert targets(watch) == ["b"]


def test_a_move_that_traded_targets_guides_to_the_one_it_got(watch: Watch) -> None:
    migration(watch, "m-1")
    exchange = {"migration": "m-1", "targetNode": "c"}
    migration(watch, "m-2", resolved=OTHER_TARGET, replacement={"name": "web-9", "node": "b"}, exchange=exchange)
    assert targets(watch) == ["c"]


def test_the_definition_of_moves_may_go(watch: Watch) -> None:
    migration(watch, "m-1")
    watch.parts.forget(resources.PODMIGRATIONS)
    assert watch.parts.view().moves == {}

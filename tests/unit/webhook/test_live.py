"""The live view on sources in memory: what arrives on a watch is in the view, and readiness tells what is missing."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster import resources
from cluster.absent import MayBeAbsent
from cluster.decode import Decoder
from cluster.pace import Pace
from cluster.recovery import Tuning
from cluster.resources import Resource
from policy import keys
from telemetry.metrics import Metric
from tests.unit.cluster.kept import Kept
from tests.unit.cluster.surroundings import World, until
from tests.unit.webhook import building
from tests.unit.webhook.building import CAPACITY, PREFIX
from webhook import live
from webhook.counts import Counted
from webhook.live import WORKLOADS
from webhook.parts import Parts
from webhook.tally import Tally
from webhook.watched import WatchedClass, WatchedMove, WatchedNode, WatchedObject

TYPES: dict[Resource, Any] = {
    resources.NODES: WatchedNode,
    resources.PRIORITYCLASSES: WatchedClass,
    resources.PODMIGRATIONS: WatchedMove,
}
QUICK = Tuning(pace=Pace(0.001, 0.01), healthy_seconds=60)
MOVE = {
    "spec": {"podRef": {"name": "web-1", "uid": "p"}, "strategy": "NodeMaintenance"},
    "status": {
        "phase": "Pending",
        "startedAt": "2026-11-16T05:00:00Z",
        "resolved": {"owner": {"kind": "ReplicaSet", "name": "web", "uid": "rs"}, "podUid": "p", "sourceNode": "a"},
    },
}


class Cluster:
    """All sources of a live view."""

    def __init__(self) -> None:
        wanted = (
            resources.NAMESPACES,
            resources.NODES,
            resources.PODS,
            resources.PRIORITYCLASSES,
            resources.PODMIGRATIONS,
        )
        self.kept = {
            resource: Kept(resource, Decoder(TYPES.get(resource, WatchedObject)))
            for resource in (*wanted, *WORKLOADS)
        }
        self.world = World()
        self.tally = Tally("me", keys.under(), lambda: building.NOW)
        self.live = live.view(
            [(it, MayBeAbsent(kept) if it is resources.PODMIGRATIONS else kept) for it, kept in self.kept.items()],
            building.settings(),
            own_namespace="spotshift-system",
            tally=self.tally,
            runtime=self.world.runtime,
            tuning=QUICK,
        )

    def say(self, resource: Resource, kind: str, name: str, **rest: Any) -> None:
        self.kept[resource].say(kind, name, **rest)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    made.say(resources.NAMESPACES, "ADDED", "shop", namespace="")
    made.say(resources.NODES, "ADDED", "a", namespace="", metadata={"labels": {CAPACITY: "spot"}})
    yield made
    made.live.stop()


@pytest.fixture
def ready(cluster: Cluster) -> Cluster:
    cluster.live.start()
    until(lambda: cluster.live.problem() is None, "readiness")
    return cluster


def test_ready_means_that_the_first_lists_are_in_the_view(cluster: Cluster) -> None:
    assert cluster.live.problem() == "namespaces not synced yet"
    cluster.live.start()
    until(lambda: cluster.live.problem() is None, "readiness")
    view = cluster.live.view
    assert "shop" in view.namespaces
    assert [label.key for label in view.capacity] == [CAPACITY]
    assert view.own_namespace == "spotshift-system"


def test_nothing_is_shown_before_all_is_known(cluster: Cluster) -> None:
    """A namespace without its workloads would look as if none of them had opted out."""
    cluster.kept[resources.DEPLOYMENTS].exists = False
    cluster.live.start()
    parts = cluster.live._parts
    assert isinstance(parts, Parts)
    for name in ("early", "later"):  # with the second one the view of the first is made
        cluster.say(resources.NAMESPACES, "ADDED", name, namespace="")
        until(partial(parts._namespaces.__contains__, name), "the namespace among the parts")
    assert cluster.live.problem() == "deployments not synced yet"
    assert not cluster.live.view.namespaces
    cluster.kept[resources.DEPLOYMENTS].exists = True
    until(lambda: cluster.live.problem() is None, "readiness")
    assert set(cluster.live.view.namespaces) == {"shop", "early", "later"}


def test_an_annotation_on_a_workload_reaches_the_view_and_leaves_it(ready: Cluster) -> None:
    said = {"annotations": {PREFIX + "spot": "avoid", "other": "x"}}
    ready.say(resources.DEPLOYMENTS, "ADDED", "web", uid="d", metadata=said)
    until(lambda: "d" in ready.live.view.workloads, "the workload")
    found = ready.live.view.workloads["d"]
    assert (found.kind, found.metadata.annotations) == ("Deployment", {PREFIX + "spot": "avoid"})
    assert ready.live.view.workload_names["shop", "Deployment", "web"] == "d"
    ready.say(resources.DEPLOYMENTS, "DELETED", "web", uid="d")
    until(lambda: not ready.live.view.workloads, "the end of the workload")
    assert not ready.live.view.workload_names


def test_a_view_that_was_taken_never_changes(ready: Cluster) -> None:
    before = ready.live.view
    ready.say(resources.NAMESPACES, "ADDED", "later", namespace="")
    until(lambda: "later" in ready.live.view.namespaces, "the namespace")
    assert "later" not in before.namespaces
    assert ready.live.view.workloads is before.workloads, "what did not change is not copied"


def test_a_status_alone_makes_no_new_view(ready: Cluster) -> None:
    ready.say(resources.JOBS, "ADDED", "one", uid="j")
    until(lambda: "j" in ready.live.view.workloads, "the job")
    before = ready.live.view
    ready.say(resources.JOBS, "MODIFIED", "one", uid="j")
    ready.say(resources.NODES, "MODIFIED", "a", namespace="", metadata={"labels": {CAPACITY: "spot"}})
    ready.say(resources.PRIORITYCLASSES, "ADDED", "batch-priority", namespace="", value=-100)
    until(lambda: ready.live.view.classes, "the class")
    assert ready.live.view.workloads is before.workloads
    assert ready.live.view.capacity is before.capacity


def test_a_name_with_a_new_bearer_leads_to_it(ready: Cluster) -> None:
    ready.say(resources.DEPLOYMENTS, "ADDED", "web", uid="first")
    ready.say(resources.DEPLOYMENTS, "DELETED", "web", uid="first")
    ready.say(resources.DEPLOYMENTS, "ADDED", "web", uid="second")
    until(lambda: "second" in ready.live.view.workloads, "the second")
    assert ready.live.view.workload_names["shop", "Deployment", "web"] == "second"
    assert set(ready.live.view.workloads) == {"second"}


def test_other_settings_make_the_view_anew(ready: Cluster) -> None:
    ready.say(resources.NAMESPACES, "ADDED", "mine", namespace="", metadata={"labels": {"example.com/spot": "avoid"}})
    until(lambda: "mine" in ready.live.view.namespaces, "the namespace")
    assert ready.live.view.namespaces["mine"].silent
    ready.live.configure(building.settings({"labelPrefix": "example.com/"}))
    until(lambda: not ready.live.view.namespaces["mine"].silent, "the new prefix")
    assert ready.live.view.keys.spot == "example.com/spot"
    assert "shop" in ready.live.view.namespaces
    assert ready.live.view.capacity


def test_moves_come_and_go_with_their_definition(cluster: Cluster) -> None:
    cluster.kept[resources.PODMIGRATIONS].exists = False
    cluster.live.start()
    until(lambda: cluster.live.problem() is None, "readiness without the definition")
    cluster.kept[resources.PODMIGRATIONS].exists = True
    cluster.say(resources.PODMIGRATIONS, "ADDED", "move", **MOVE)
    until(lambda: ("shop", "rs") in cluster.live.view.migrations, "the move")
    cluster.kept[resources.PODMIGRATIONS].exists = False
    cluster.kept[resources.PODMIGRATIONS].end()
    until(lambda: not cluster.live.view.migrations, "the end of the definition")
    assert cluster.live.problem() is None
    cluster.kept[resources.PODMIGRATIONS].exists = True
    cluster.say(resources.PODMIGRATIONS, "ADDED", "next", **MOVE)
    until(lambda: ("shop", "rs") in cluster.live.view.migrations, "the move of the new definition")
    cluster.live.configure(building.settings({"labelPrefix": "example.com/"}))
    until(lambda: cluster.live.view.keys.spot == "example.com/spot", "other settings")
    assert ("shop", "rs") in cluster.live.view.migrations


def test_other_settings_bring_nothing_back_of_a_definition_that_is_gone(ready: Cluster) -> None:
    ready.say(resources.PODMIGRATIONS, "ADDED", "move", **MOVE)
    until(lambda: ("shop", "rs") in ready.live.view.migrations, "the move")
    ready.kept[resources.PODMIGRATIONS].exists = False
    ready.kept[resources.PODMIGRATIONS].end()
    until(lambda: not ready.live.view.migrations, "the end of the definition")
    ready.live._reflectors[resources.PODMIGRATIONS].stop()  # it may be half a minute until it asks again
    ready.live.configure(building.settings({"labelPrefix": "example.com/"}))
    until(lambda: ready.live.view.keys.spot == "example.com/spot", "other settings")
    assert not ready.live.view.migrations


def test_pods_of_a_mix_are_counted_without_a_new_view(ready: Cluster) -> None:
    before = ready.live.view
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    said = {"annotations": {PREFIX + "capacity": "spot"}, "ownerReferences": [owner]}
    ready.say(resources.PODS, "ADDED", "web-1", uid="p", metadata=said)
    until(lambda: ready.live.view.counts.of(("shop", "rs")) == Counted(1, 0), "the pod among the counts")
    ready.live.configure(building.settings({"mode": "observe"}))
    until(lambda: ready.live.view is not before, "other settings")
    assert ready.live.view.counts.of(("shop", "rs")) == Counted(1, 0)
    ready.say(resources.PODS, "DELETED", "web-1", uid="p")
    until(lambda: ready.live.view.counts.of(("shop", "rs")) == Counted(0, 0), "the end of the pod")


def test_a_defect_costs_one_view_and_not_the_thread(ready: Cluster) -> None:
    broken: Any = 42
    ready.live.configure(building.settings())
    ready.live._changes.put((resources.JOBS, broken))
    until(lambda: ready.world.meter.read(Metric.INTERNAL_ERRORS) == 1, "the count")
    ready.say(resources.NAMESPACES, "ADDED", "later", namespace="")
    until(lambda: "later" in ready.live.view.namespaces, "the next view")
    assert "shop" in ready.live.view.namespaces

"""Whatever is not as users left it is named at a quiet point."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from testbed.api import Object
from tests.chaos import bodies, settled
from tests.chaos.model import Form, Machine, Model, Workload
from tests.unit.chaos.seeing import pod

PREFIX = "scheduler.alpha.kubernetes.io/"
WEB = Workload("web", Form.DEPLOYMENT, 2, budget={"maxUnavailable": 1})
LONELY = Workload("lonely", Form.POD)
NODE = Machine("n1", spot=True, zone="zone-a")


@dataclass
class World:
    """What a fake API server would list."""

    objects: dict[str, list[Any]]

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        return self.objects.get(resource, [])

    def meta(self, resource: str, number: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.objects[resource][number]["metadata"]
        return found


def as_left() -> World:
    move = {"metadata": {"name": "m"}, "spec": {}, "status": {"phase": "Completed"}}
    job = {"metadata": {"name": "job"}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    pods = [pod(f"u{i}", 1, name=f"web-{i}").object for i in range(2)]
    lonely = copy.deepcopy(pod("u9", 1, name="lonely", owned=False).object)
    lonely["metadata"]["labels"]["app"] = "lonely"
    return World(
        {
            "podmigrations": [move],
            "jobs": [job],
            "pods": [*pods, lonely],
            "nodes": [bodies.node(NODE)],
            "deployments": [bodies.of(WEB)],
            "poddisruptionbudgets": [bodies.budget(WEB)],
        }
    )


def model() -> Model:
    return Model({"web": WEB, "lonely": LONELY}, {"n1": NODE})


def mark(resource: str, kind: str, key: str, value: str = "x") -> Callable[[World], None]:
    return lambda world: world.meta(resource).setdefault(kind, {}).update({key: value})


def change(resource: str, part: str, **values: Any) -> Callable[[World], None]:
    return lambda world: world.objects[resource][0][part].update(values)


def double(world: World) -> None:
    twin = copy.deepcopy(world.objects["pods"][2])
    twin["metadata"]["name"] = "rescheduled-lonely"
    world.objects["pods"].append(twin)


def failed(world: World) -> None:
    world.objects["jobs"][0]["status"]["conditions"][0]["type"] = "Failed"


LEFT: dict[str, tuple[Callable[[World], None], str]] = {
    "an open move": (change("podmigrations", "status", phase="InProgress", step="Evict"), "m is InProgress at Evict"),
    "a finalizer": (change("podmigrations", "metadata", finalizers=["f"]), "keeps its finalizer"),
    "a cordon": (change("nodes", "spec", unschedulable=True), "node n1 is cordoned"),
    "an annotation on a node": (mark("nodes", "annotations", f"{PREFIX}cordoned-by"), "node n1 carries"),
    "a taint": (change("nodes", "spec", taints=[{"key": f"{PREFIX}draining"}]), "node n1 carries"),
    "a mark on a pod": (mark("pods", "labels", f"{PREFIX}migration-status", "in-progress"), "pod web-0 carries"),
    "a hint on a pod": (mark("pods", "annotations", f"{PREFIX}migration-target"), "pod web-0 carries"),
    "a deletion cost": (mark("pods", "annotations", "controller.kubernetes.io/pod-deletion-cost"), "deletion cost"),
    "a pod that does not go": (change("pods", "metadata", deletionTimestamp="t"), "is being deleted"),
    "a label on a workload": (mark("deployments", "labels", f"{PREFIX}moving"), "says that it is moving"),
    "a replica too many": (change("deployments", "spec", replicas=3), "has 3 replicas, its user wants 2"),
    "a pod too few": (lambda world: world.objects["pods"].pop(0), "wants 2 pods, has 1"),
    "a pod that is not Ready": (change("pods", "status", conditions=[]), "has 2, 1 of them Ready"),
    "a workload that is gone": (lambda world: world.objects["deployments"].clear(), "deployments web is gone"),
    "a budget of ours": (
        lambda world: world.objects["poddisruptionbudgets"].append({"metadata": {"name": "web-rescheduler-pdb"}}),
        "budget web-rescheduler-pdb is left",
    ),
    "a user's budget that is gone": (lambda world: world.objects["poddisruptionbudgets"].clear(), "web is gone"),
    "a pod twice": (double, "there are 2 pods of lonely"),
    "a Job that failed": (failed, "Job job has failed"),
}


def test_nothing_is_wrong_with_what_users_left() -> None:
    assert settled.problems(as_left(), model()) == []


def test_a_replacement_may_say_where_it_came_from() -> None:
    world = as_left()
    mark("pods", "labels", f"{PREFIX}migration-status", "completed")(world)
    mark("pods", "labels", f"{PREFIX}migrated-from")(world)
    assert settled.problems(world, model()) == []


def test_a_pod_without_a_controller_may_go_with_its_node_but_not_outlive_its_user() -> None:
    world = as_left()
    lonely = world.objects["pods"].pop()
    assert settled.problems(world, model()) == []
    world.objects["pods"].append(lonely)
    assert settled.problems(world, Model({"web": WEB}, {"n1": NODE})) == [
        "pod lonely is left of lonely, which was deleted"
    ]


@pytest.mark.parametrize(("leave", "says"), LEFT.values(), ids=LEFT.keys())
def test_what_is_left(leave: Callable[[World], None], says: str) -> None:
    world = as_left()
    leave(world)
    found = settled.problems(world, model())
    assert any(says in it for it in found), found

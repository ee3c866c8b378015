"""What the descheduler's account may do and what it does, from the apiserver's audit log: the same."""

import contextlib

import yaml

from testbed import objects, rights
from testbed.api import ApiError
from testbed.install import MANIFESTS
from testbed.rights import Right, Used
from testbed.waiting import eventually
from tests.integration.descheduler.moves import oracle, product
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import APP, Scene

HISTORY = {"perWorkload": 1, "total": 4}
BACKOFF = {"initial": "1s", "max": "1s"}

AHEAD: frozenset[Right] = frozenset(
    {
        ("list", "nodes.metrics.k8s.io"),
        ("list", "pods.metrics.k8s.io"),
    }
)
"""Used by ResourceOptimization, which is not enabled here."""


def granted() -> frozenset[Right]:
    """By the shipped manifest."""
    documents = list(yaml.safe_load_all((MANIFESTS / "descheduler" / "rbac.yaml").read_text()))
    return rights.granted(documents)[product.ACCOUNT]


def used(running: Product) -> frozenset[Right]:
    """By the processes, as far as the apiserver let them."""
    found = Used()
    found.take(oracle.requests(running.bed))
    return found.rights(product.ACCOUNT)


def move_one_of_each(on: Scene) -> None:
    """A pod of each kind of workload that is marked, and the only replica of each kind that can be doubled."""
    stateful = objects.stateful_set("db", replicas=2, terminationGracePeriodSeconds=1)
    on.kube.create("statefulsets", stateful, on.namespace)
    bare = objects.deployment("bare", replicas=1, terminationGracePeriodSeconds=1)
    bare["kind"] = "ReplicaSet"
    on.kube.create("replicasets", bare, on.namespace)
    single = objects.deployment("single", replicas=1, terminationGracePeriodSeconds=1)
    on.kube.create("deployments", single, on.namespace)
    apps = {APP: 1, "db": 2, "bare": 1, "single": 1}  # how many are Ready before one of them may go
    for app, least in apps.items():
        pods = eventually(
            lambda app=app: [  # type: ignore[misc]
                it for it in product.running_pods(on.kube, on.namespace, app) if objects.is_ready(it)
            ],
            until=lambda found, least=least: len(found) >= least,  # type: ignore[misc]
            what=f"pods of {app}",
        )
        product.ask_for(on.kube, on.namespace, pods[0]["metadata"]["name"], mode="")
    eventually(
        lambda: ends(on), until=lambda it: it == ["Completed"] * len(apps), timeout=90, what="one move of each"
    )


def ends(on: Scene) -> list[str]:
    return [it.get("status", {}).get("phase", "") for it in product.migrations(on.kube, on.namespace)]


def be_blocked(on: Scene) -> None:
    """The same Event again and again, which is one Event with a count."""
    on.kube.create("poddisruptionbudgets", objects.budget("none", app=APP, maxUnavailable=0), on.namespace)
    name = product.ask_for(on.kube, on.namespace, on.a_pod())
    eventually(
        lambda: on.kube.get("podmigrations", name, on.namespace).get("status", {}),
        until=lambda it: it.get("phase") == "Cancelled",
        timeout=90,
        what="a move that no budget allows",
    )
    on.kube.delete("poddisruptionbudgets", "none", on.namespace)


def test_every_right_is_used_and_every_use_is_a_right(running: Product, on: Scene) -> None:
    running.configure(history=HISTORY, backoff=BACKOFF)
    on.drain()
    eventually(on.is_drained, timeout=60, what="the drained node")
    on.return_node()
    assert on.left() == []
    be_blocked(on)
    leader = running.leader()
    running.end(leader)  # it sends what it has counted; whoever takes over looks for records nobody needs
    running.start(leader)
    eventually(lambda: len(ends(on)) <= HISTORY["total"], timeout=60, what="records that are forgotten")
    for name in (it["metadata"]["name"] for it in product.migrations(on.kube, on.namespace)):
        with contextlib.suppress(ApiError):  # more of them may be forgotten meanwhile
            on.kube.delete("podmigrations", name, on.namespace)
    move_one_of_each(on)
    forbidden = [it for it in oracle.requests(running.bed) if it.decision == "forbid"]
    assert forbidden == []
    eventually(lambda: granted() - used(running), until=lambda it: it == AHEAD, what="every right in use")
    assert used(running) <= granted()

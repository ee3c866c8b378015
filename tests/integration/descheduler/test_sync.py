"""The live state on a real apiserver: it becomes what a list says, and stays so."""

import queue
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from cluster import auth
from cluster.client import Client
from descheduler import listing, sync
from descheduler.state import ClusterState
from policy.settings import Settings
from testbed import objects
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually
from tests.unit.cluster.surroundings import World

Placed = dict[str, str]


@dataclass(slots=True)
class Watcher:
    """A live state that tells where the pods of one namespace are whenever it takes a turn."""

    namespace: str
    seen: "queue.SimpleQueue[Placed]" = field(default_factory=queue.SimpleQueue)
    last: Placed = field(default_factory=dict)

    def turn(self, state: ClusterState) -> float | None:
        self.seen.put({name: pod.node_name for (_, name), pod in state.by_namespace.get(self.namespace, {}).items()})
        return None

    def now(self) -> Placed:
        while not self.seen.empty():
            self.last = self.seen.get()
        return self.last


@pytest.fixture
def client(cluster: ControlPlane) -> Iterator[Client]:
    made = Client(auth.connect(cluster.kubeconfig), rate_limit=None)
    yield made
    made.close()


@pytest.fixture
def watcher(client: Client, namespace: str) -> Iterator[tuple[Watcher, sync.Live]]:
    made = Watcher(namespace)
    live = sync.Live(sync.sources(client), Settings(), made.turn, runtime=World().runtime)
    live.start()
    assert live.wait_synced(60)
    yield made, live
    live.stop()


def listed(client: Client, namespace: str) -> Placed:
    found = listing.gather(client, Settings()).state.by_namespace.get(namespace, {})
    return {name: pod.node_name for (_, name), pod in found.items()}


def test_a_server_without_migrations_is_synced(watcher: tuple[Watcher, sync.Live], kube: Api) -> None:
    _, live = watcher
    installed = any(
        it["metadata"]["name"].startswith("podmigrations.") for it in kube.list("customresourcedefinitions")
    )
    assert live.absent() == (() if installed else ("podmigrations",))
    assert live.problem() is None


def test_pods_come_and_go(
    watcher: tuple[Watcher, sync.Live], client: Client, kube: Api, namespace: str, nodes: Nodes
) -> None:
    seen, _ = watcher
    made = nodes.make(on_demand=1)
    kube.create("deployments", objects.deployment("web", replicas=3), namespace)
    eventually(
        lambda: list(seen.now().values()), until=lambda placed: placed == made * 3, what="three pods on the node"
    )
    assert seen.now() == listed(client, namespace)
    kube.patch("deployments", "web", {"spec": {"replicas": 1}}, namespace)
    eventually(lambda: len(seen.now()), until=lambda count: count == 1, what="one pod")
    assert seen.now() == listed(client, namespace)

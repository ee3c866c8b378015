"""The scene of the campaigns: a Deployment on one of two nodes, and moves that take it to the other and back."""

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policy import keys
from testbed import bed, objects
from testbed.api import Api, ApiError
from testbed.pytest_plugin import CONFINED, make_namespace, remove_namespace
from testbed.waiting import eventually
from tests.integration.descheduler.moves import oracle, product
from tests.integration.descheduler.moves.product import Product

REPLICAS: Final = 3
APP: Final = "web"
MAINTENANCE: Final = keys.under().maintenance


@dataclass(slots=True)
class Scene:
    """One namespace with two nodes of its own. `source` has the pods, `target` is empty."""

    kube: Api
    namespace: str
    source: str
    target: str

    def drain(self) -> None:
        """Ask for the source to be emptied, as whoever runs the cluster does."""
        self._node(self.source, {"metadata": {"labels": {MAINTENANCE: "true"}}, "spec": {"unschedulable": True}})

    def return_node(self) -> None:
        """The source is fit for use again, and is now where pods will go next."""
        self._node(self.source, {"metadata": {"labels": {MAINTENANCE: None}}, "spec": {"unschedulable": None}})
        self.source, self.target = self.target, self.source

    def is_drained(self) -> bool:
        """Every replica is Ready on the target."""
        pods = product.running_pods(self.kube, self.namespace, APP)
        there = [it for it in pods if it["spec"].get("nodeName") == self.target and objects.is_ready(it)]
        return len(there) == len(pods) == REPLICAS

    def a_pod(self) -> str:
        """One that could be moved, the same whenever it is asked."""
        return min(str(it["metadata"]["name"]) for it in product.running_pods(self.kube, self.namespace, APP))

    def left(self, timeout: float = 60.0) -> list[str]:
        """What is wrong when everything should be over."""
        return oracle.settled(self.kube, self.namespace, timeout=timeout)

    def _node(self, name: str, body: dict[str, object]) -> None:
        self.kube.patch("nodes", name, body)


@contextlib.contextmanager
def scene(running: Product, prefix: str = "scene") -> Iterator[Scene]:
    """Made for the time of the block."""
    kube, namespace = running.kube, f"{prefix}-{secrets.token_hex(3)}"
    made = [objects.node(f"{namespace}-{name}", labels={CONFINED: namespace}) for name in ("x", "y")]
    bed.add_nodes(kube, made)
    confine = {"scheduler.alpha.kubernetes.io/node-selector": f"{CONFINED}={namespace}"}
    make_namespace(kube, namespace, annotations=confine)
    first, second = (node["metadata"]["name"] for node in made)
    found = Scene(kube, namespace, first, second)
    kube.patch("nodes", second, {"spec": {"unschedulable": True}})
    web = objects.deployment(APP, replicas=REPLICAS, terminationGracePeriodSeconds=1)
    kube.create("deployments", web, namespace)
    eventually(
        lambda: [it for it in product.running_pods(kube, namespace) if objects.is_ready(it)],
        until=lambda pods: len(pods) == REPLICAS,
        timeout=90,
        what="the pods of the scene",
    )
    kube.patch("nodes", second, {"spec": {"unschedulable": None}})
    try:
        yield found
    finally:
        with contextlib.suppress(ApiError):  # a test may have removed it itself
            remove_namespace(kube, namespace)
        for node in (first, second):
            with contextlib.suppress(ApiError):
                kube.delete("nodes", node)

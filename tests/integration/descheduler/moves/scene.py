"""The scene of the campaigns: a Deployment on one of two nodes, and moves that take it to the other and back.

With everything there is also a single replica, which is doubled, and a pod without a controller, which is copied.
"""

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from policy import keys
from testbed import bed, cordons, objects
from testbed.api import Api, ApiError
from testbed.pytest_plugin import CONFINED, make_namespace, remove_namespace
from testbed.waiting import eventually
from tests.integration.descheduler.moves import oracle, product
from tests.integration.descheduler.moves.product import Product

REPLICAS: Final = 3
APP: Final = "web"
LONE: Final = "lone"
BARE: Final = "bare"
SLOW: Final = {f"{objects.PREFIX}ready-delay": "3s"}
"""So that there is time to call a move off before its new pod serves."""
MAINTENANCE: Final = keys.under().maintenance


@dataclass(slots=True)
class Scene:
    """One namespace with two nodes of its own. `source` has the pods, `target` is empty."""

    kube: Api
    namespace: str
    source: str
    target: str
    everything: bool = False

    @property
    def count(self) -> int:
        """Pods that there are while nothing moves."""
        return REPLICAS + 2 if self.everything else REPLICAS

    def drain(self) -> None:
        """Ask for the source to be emptied, as whoever runs the cluster does."""
        self._node(self.source, {"metadata": {"labels": {MAINTENANCE: "true"}}})

    def return_node(self) -> None:
        """The source is fit for use again, and is now where pods will go next."""
        self._node(self.source, {"metadata": {"labels": {MAINTENANCE: None}}})
        self.source, self.target = self.target, self.source

    def is_drained(self) -> bool:
        """Every replica is Ready on the target."""
        pods = product.running_pods(self.kube, self.namespace, "" if self.everything else APP)
        there = [it for it in pods if it["spec"].get("nodeName") == self.target and objects.is_ready(it)]
        return len(there) == len(pods) == self.count

    def a_pod(self, app: str = APP) -> str:
        """One that could be moved, the same whenever it is asked."""
        return min(str(it["metadata"]["name"]) for it in product.running_pods(self.kube, self.namespace, app))

    def stalled(self) -> list[str]:
        """Moves that are not over."""
        return [*oracle.under_way(product.migrations(self.kube, self.namespace))]

    def left(self, timeout: float = 60.0) -> list[str]:
        """What is wrong when everything should be over."""
        return oracle.settled(self._wrong, timeout=timeout)

    def _wrong(self) -> list[str]:
        nodes = (self.source, self.target)
        return [*oracle.problems(self.kube, self.namespace), *oracle.touched(self.kube, nodes)]

    def _node(self, name: str, body: dict[str, object]) -> None:
        self.kube.patch("nodes", name, body)


@contextlib.contextmanager
def scene(running: Product, prefix: str = "scene", *, everything: bool = False) -> Iterator[Scene]:
    """Made for the time of the block."""
    kube, namespace = running.kube, f"{prefix}-{secrets.token_hex(3)}"
    made = [objects.node(f"{namespace}-{name}", labels={CONFINED: namespace}) for name in ("x", "y")]
    bed.add_nodes(kube, made)
    confine = {"scheduler.alpha.kubernetes.io/node-selector": f"{CONFINED}={namespace}"}
    make_namespace(kube, namespace, annotations=confine)
    first, second = (node["metadata"]["name"] for node in made)
    found = Scene(kube, namespace, first, second, everything)
    cordons.cordon(kube, [second])
    web = objects.deployment(APP, replicas=REPLICAS, terminationGracePeriodSeconds=1)
    kube.create("deployments", web, namespace)
    if everything:
        lone = objects.deployment(LONE, annotations=SLOW, terminationGracePeriodSeconds=1)
        opted_in = {keys.under().rescheduling: "enabled"}
        bare = objects.pod(BARE, labels={"app": BARE}, annotations=SLOW | opted_in, terminationGracePeriodSeconds=1)
        kube.create("deployments", lone, namespace)
        kube.create("pods", bare, namespace)
    eventually(
        lambda: [it for it in product.running_pods(kube, namespace) if objects.is_ready(it)],
        until=lambda pods: len(pods) == found.count,
        timeout=90,
        what="the pods of the scene",
    )
    cordons.uncordon(kube, [second])
    try:
        yield found
    finally:
        with contextlib.suppress(ApiError):  # a test may have removed it itself
            remove_namespace(kube, namespace)
        for node in (first, second):
            with contextlib.suppress(ApiError):
                kube.delete("nodes", node)

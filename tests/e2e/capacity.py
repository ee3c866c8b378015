"""The whole product on nodes of both capacities, and what the tests of spot look at."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import bed, cordons, figures, install, objects, pytest_plugin
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.waiting import eventually

PREFIX: Final = "scheduler.alpha.kubernetes.io/"
SYSTEM: Final = "spotshift-system"
OWN_NODE: Final = "on-demand-0"
"""Where the pods of the product are counted; nothing else goes there."""
PATIENCE_SECONDS: Final = 150.0
"""Two cores may be shared with everything else."""
POLICY: Final[dict[str, Any]] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "reschedulingInterval": "1s",
    "limits": {"minPodAge": "0s"},
}


@contextmanager
def product(home: Path, binaries: Binaries, *, nodes: int, spot: int) -> Iterator[ControlPlane]:
    """Up and installed, the product on a node of its own, which is closed then."""
    running = bed.up(home, binaries, nodes=1, owner=os.getpid())
    try:
        install.install(running, tell=lambda _line: None)
        kube = running.api()
        eventually(
            lambda: [it["spec"].get("nodeName") for it in kube.list("pods", SYSTEM)],
            until=lambda found: found and all(found),
            what="a node for the product",
        )
        cordons.cordon(kube, [OWN_NODE])
        bed.add_nodes(kube, objects.pool("t-", on_demand=nodes, spot=spot))
        yield running
    finally:
        bed.down(home)


@contextmanager
def scene(running: ControlPlane) -> Iterator[Scene]:
    """A namespace of the test's own. Nothing is moved before the test says so; all nodes are open again after it."""
    made = Scene(running, f"spot-{secrets.token_hex(3)}")
    made.configure()
    try:
        yield made
    finally:
        made.configure(mode="observe")
        pytest_plugin.remove_namespace(made.kube, made.namespace)
        made.cordon(*(it["metadata"]["name"] for it in made.kube.list("nodes")), cordoned=False)
        made.cordon(OWN_NODE)


@dataclass
class Scene:
    """One test: its namespace, and what it sees in it."""

    running: ControlPlane
    namespace: str
    kube: Api = field(init=False)
    seen: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """Workload, strategy and phase by name of every PodMigration that was ever seen; they do not stay for ever."""

    def __post_init__(self) -> None:
        self.kube = self.running.api()
        pytest_plugin.make_namespace(self.kube, self.namespace)

    # ---- what a user does

    def configure(self, *strategies: str, **more: Any) -> None:
        """Other settings, in force when this returns."""
        before = self.measured("spotshift_settings_loads_total")
        text = yaml.safe_dump({**POLICY, "enabledStrategies": list(strategies), **more})
        self.kube.patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": text}}, SYSTEM)
        eventually(
            lambda: self.measured("spotshift_settings_loads_total"),
            until=lambda found: all(count > before[name] for name, count in found.items()),
            timeout=PATIENCE_SECONDS,
            what="the settings",
        )

    def scale(self, name: str, replicas: int) -> None:
        self.kube.patch("deployments", name, {"spec": {"replicas": replicas}}, self.namespace)

    def cordon(self, *names: str, cordoned: bool = True) -> None:
        (cordons.cordon if cordoned else cordons.uncordon)(self.kube, names)

    # ---- what is seen

    def pods(self, app: str = "") -> list[Object]:
        """Those that are not on their way out."""
        found = self.kube.list("pods", self.namespace, labels=f"app={app}" if app else "")
        return [it for it in found if "deletionTimestamp" not in it["metadata"]]

    def settle(self, app: str, count: int) -> list[Object]:
        """Wait until so many pods are there and Ready."""
        return eventually(
            lambda: self.pods(app),
            until=lambda pods: len(pods) == count and all(map(objects.is_ready, pods)),
            timeout=PATIENCE_SECONDS,
            what=f"{count} Ready pods",
        )

    def sides(self, app: str = "") -> Counter[str]:
        """Pods by the capacity of their node."""
        nodes = {it["metadata"]["name"]: it["metadata"]["labels"][objects.CAPACITY] for it in self.kube.list("nodes")}
        return Counter(nodes.get(it["spec"].get("nodeName", ""), "waiting") for it in self.pods(app))

    def nodes_of(self, app: str = "") -> Counter[str]:
        return Counter(it["spec"].get("nodeName", "") for it in self.pods(app))

    def moves(self) -> list[Object]:
        """All there are; each is remembered."""
        found = self.kube.list("podmigrations", self.namespace)
        for it in found:
            app = it["spec"]["podRef"]["name"].rsplit("-", 2)[0]
            phase = it.get("status", {}).get("phase", "")
            self.seen[it["metadata"]["name"]] = (app, it["spec"].get("strategy", ""), phase)
        return found

    def moved(self, app: str) -> Counter[str]:
        """Moves of a workload by strategy, all that ever were; not those that were called off before an eviction."""
        self.moves()
        return Counter(name for moved, name, phase in self.seen.values() if moved == app and phase != "Cancelled")

    def open_moves(self) -> list[str]:
        over = {"Completed", "Failed", "Cancelled"}
        return [it["metadata"]["name"] for it in self.moves() if it.get("status", {}).get("phase") not in over]

    def passes(self, more: int = 3) -> None:
        """Wait until whoever leads has looked so many times again, and nothing is under way."""

        def count() -> float:
            return sum(self.measured("spotshift_pass_seconds_count").values())

        wanted = count() + more
        eventually(
            lambda: (count(), self.open_moves()),
            until=lambda it: it[0] >= wanted and not it[1],
            timeout=PATIENCE_SECONDS,
            what="further passes without a move",
        )

    def measured(self, metric: str, deployment: str = "spotshift-descheduler") -> dict[str, float]:
        """A number of each process of a Deployment, over all labels."""
        return figures.measured(self.running, metric, deployment)

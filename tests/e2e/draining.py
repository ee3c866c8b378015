"""The product on a control plane of its own, and what the tests of drains look at."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from testbed import bed, cordons, install, kubelet, objects, process, pytest_plugin
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.pods import Pod
from testbed.waiting import eventually

PREFIX = "scheduler.alpha.kubernetes.io/"
LABEL = f"{PREFIX}maintenance"
STATUS, REMAINING, SINCE = (f"{PREFIX}maintenance-{word}" for word in ("status", "remaining", "since"))
OURS = (f"{PREFIX}cordoned-by", STATUS, REMAINING, SINCE)
SYSTEM = "spotshift-system"
POLICY: dict[str, Any] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    # Only drains move pods here, Jobs get two seconds, and a replacement that never becomes Ready is soon given up.
    "enabledStrategies": ["NodeMaintenance"],
    "migrations": {"readyTimeout": "20s"},
    "strategies": {"NodeMaintenance": {"jobTimeout": "2s"}},
}


@contextmanager
def product(home: Path, binaries: Binaries, *, nodes: int) -> Iterator[ControlPlane]:
    """Up, installed, with the settings of these tests."""
    running = bed.up(home, binaries, nodes=nodes, spot=0, owner=os.getpid())
    try:
        install.install(running, tell=lambda _line: None)
        configure(running.api(), POLICY)
        # A lease that was not there before is left alone for as long as it would last.
        eventually(lambda: leaders(running), until=lambda found: len(found) == 1, timeout=60, what="a leader")
        yield running
    finally:
        bed.down(home)


def configure(kube: Api, policy: dict[str, Any]) -> None:
    """Other settings. The next thing a test does takes longer than they take to be in force."""
    kube.patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": yaml.safe_dump(policy)}}, SYSTEM)


@dataclass
class Scene:
    """One test: its namespace, and what it sees in it."""

    running: ControlPlane
    namespace: str
    kube: Api = field(init=False)

    def __post_init__(self) -> None:
        self.kube = self.running.api()

    # ---- what a user does

    def create(self, resource: str, body: Object) -> None:
        self.kube.create(resource, body, self.namespace)

    def label(self, *names: str, value: str | None = "true") -> None:
        for name in names:
            self.kube.patch("nodes", name, {"metadata": {"labels": {LABEL: value}}})

    @contextmanager
    def only(self, node: str) -> Iterator[None]:
        """Whatever is created within lands on this node."""
        others = [it for it in self.node_names() if it != node]
        with cordons.cordoned(self.kube, others):
            yield

    def settle(self, count: int, *, ready: int | None = None) -> None:
        """Wait until so many pods are there and Ready."""
        wanted = count if ready is None else ready
        eventually(
            self.pods,
            until=lambda pods: len(pods) == count and sum(map(objects.is_ready, pods)) == wanted,
            timeout=60,
            what=f"{count} pods, {wanted} of them Ready",
        )

    # ---- what is seen

    def pods(self) -> list[Object]:
        return [it for it in self.kube.list("pods", self.namespace) if "deletionTimestamp" not in it["metadata"]]

    def apps_on(self, node: str) -> list[str]:
        return sorted(it["metadata"]["labels"]["app"] for it in self.pods() if it["spec"].get("nodeName") == node)

    def node(self, name: str) -> Object:
        return self.kube.get("nodes", name)

    def node_names(self) -> list[str]:
        return sorted(it["metadata"]["name"] for it in self.kube.list("nodes"))

    def note(self, name: str, key: str) -> str:
        return str(self.node(name)["metadata"]["annotations"].get(key, ""))

    def drained(self, name: str, *, timeout: float = 120) -> None:
        eventually(
            lambda: (self.note(name, STATUS), self.note(name, REMAINING)),
            until=lambda told: told[0] == "drained",
            timeout=timeout,
            what=f"{name} to be drained",
        )

    def restored(self, name: str, *, cordoned: bool = False) -> None:
        """As it was found, within seconds."""

        def found() -> tuple[bool, list[str]]:
            node = self.node(name)
            marks = [key for key in OURS if key in node["metadata"]["annotations"]]
            return bool(node["spec"].get("unschedulable")), marks

        eventually(found, until=lambda it: it == (cordoned, []), timeout=10, what=f"{name} as it was found")

    def budgets(self) -> list[str]:
        return [it["metadata"]["name"] for it in self.kube.list("poddisruptionbudgets", self.namespace)]

    def moves(self) -> list[Object]:
        return self.kube.list("podmigrations", self.namespace)

    def phases(self) -> set[str]:
        return {it.get("status", {}).get("phase", "") for it in self.moves()}

    def open_moves(self) -> list[str]:
        over = {"Completed", "Failed", "Cancelled"}
        return [it["metadata"]["name"] for it in self.moves() if it.get("status", {}).get("phase") not in over]

    def quiet(self) -> None:
        """Nothing is under way, and nothing of any move is left but its record."""
        eventually(self.open_moves, until=lambda it: not it, timeout=60, what="all moves to be over")
        eventually(
            self.budgets, until=lambda it: not any(map(is_temporary, it)), timeout=10, what="no budget of ours"
        )
        eventually(self.marked, until=lambda it: not it, timeout=15, what="no mark of a move under way")

    def marked(self) -> list[str]:
        """Pods and workloads that say that a move is under way."""
        under_way = [
            it["metadata"]["name"]
            for it in self.pods()
            if it["metadata"]["labels"].get(f"{PREFIX}migration-status") == "in-progress"
        ]
        workloads = [
            it["metadata"]["name"]
            for kind in ("deployments", "statefulsets")
            for it in self.kube.list(kind, self.namespace)
            if f"{PREFIX}moving" in it["metadata"].get("labels", {})
        ]
        return under_way + workloads


def is_temporary(name: str) -> bool:
    return name.endswith("-rescheduler-pdb")


@contextmanager
def scene(running: ControlPlane, namespace: str) -> Iterator[Scene]:
    """A namespace of the test's own; afterwards no node is labelled any more."""
    made = Scene(running, namespace)
    pytest_plugin.make_namespace(made.kube, namespace)
    try:
        yield made
    finally:
        made.label(*made.node_names(), value=None)
        pytest_plugin.remove_namespace(made.kube, namespace)


# ---- processes


def leaders(running: ControlPlane) -> list[tuple[Pod, str]]:
    """The pod and the name of every process that says it leads."""
    return [
        (pod, planned.name)
        for pod in kubelet.remembered(running)
        for planned in pod.processes
        if pod.deployment == "spotshift-descheduler" and "\nspotshift_leader 1.0" in _metrics(planned.ports["probes"])
    ]


def kill_leader(running: ControlPlane) -> None:
    """kill -9 for the process that leads, and start it again as a kubelet would."""
    ((pod, name),) = eventually(lambda: leaders(running), until=lambda it: len(it) == 1, what="one leader")
    for found, child in process.running(running.home):
        if found == name:
            child.kill()
            child.wait(timeout=5)
    install.start(running, pod)


def _metrics(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def reasons(note: str) -> dict[str, str]:
    """The pods named on a node, each with why it is still there."""
    lines = (line.partition(": ") for line in note.splitlines())
    return {pod.partition("/")[2]: why for pod, _, why in lines}

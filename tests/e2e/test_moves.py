"""The whole product moves pods: what it plans, what people see of a move, and what the examples promise."""

import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from testbed import bed, cordons, install, kubelet, objects
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.waiting import eventually

EXAMPLES = Path(__file__).parents[2] / "manifests" / "examples"
SYSTEM = "spotshift-system"
PREFIX = "scheduler.alpha.kubernetes.io/"
SETTINGS: dict[str, Any] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "reschedulingInterval": "1s",
    "limits": {"minPodAge": "0s"},
}
NODES = [f"on-demand-{number}" for number in range(4)]
PATIENCE_SECONDS = 120.0


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("moves") / "bed"
    running = bed.up(home, control_plane_binaries, nodes=len(NODES), owner=os.getpid())
    install.install(running, tell=lambda _: None)
    yield running
    bed.down(home)


@pytest.fixture
def kube(product: ControlPlane) -> Api:
    return product.api()


def configure(kube: Api, **more: Any) -> None:
    text = yaml.safe_dump({**SETTINGS, **more})
    kube.patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": text}}, SYSTEM)


def cordon(kube: Api, *, but: str, cordoned: bool) -> None:
    others = [name for name in NODES if name != but]
    (cordons.cordon if cordoned else cordons.uncordon)(kube, others)


def ready(kube: Api, namespace: str, count: int) -> list[Object]:
    return eventually(
        lambda: [pod for pod in kube.list("pods", namespace) if "deletionTimestamp" not in pod["metadata"]],
        until=lambda pods: len(pods) == count and all(map(objects.is_ready, pods)),
        timeout=PATIENCE_SECONDS,
        what=f"{count} Ready pods",
    )


def on_nodes(pods: list[Object]) -> Counter[str]:
    """Pods by node, those that have none yet under the empty name."""
    return Counter(pod["spec"].get("nodeName", "") for pod in pods)


def finished(kube: Api, namespace: str) -> list[Object]:
    """The records of all moves that were completed, once none is under way."""
    found = eventually(
        lambda: kube.list("podmigrations", namespace),
        until=lambda found: found and all(it.get("status", {}).get("finishedAt") for it in found),
        timeout=PATIENCE_SECONDS,
        what="moves that have ended",
    )
    return [it for it in found if it["status"]["phase"] == "Completed"]


def levelled(kube: Api, namespace: str, *, most: int) -> None:
    eventually(
        lambda: on_nodes(kube.list("pods", namespace)),
        until=lambda found: max(found.values()) <= most,
        timeout=PATIENCE_SECONDS,
        interval=0.5,
        what="an even spread",
    )


def measured(product: ControlPlane, line: str) -> float:
    """A number of whoever leads; the other one has none."""
    total = 0.0
    for pod in kubelet.remembered(product):
        for one in pod.processes:
            if pod.deployment == "spotshift-descheduler":
                answer = urllib3.request("GET", f"http://127.0.0.1:{one.ports['probes']}/metrics")
                total += sum(
                    map(float, re.findall(rf"^{re.escape(line)} (\S+)$", answer.data.decode(), re.MULTILINE))
                )
    return total


class Down:
    """The most pods of a namespace that were not Ready at once, from a watch."""

    def __init__(self, kube: Api, namespace: str, wanted: int) -> None:
        self._kube, self._namespace, self._wanted = kube, namespace, wanted
        self._ready = {pod["metadata"]["name"] for pod in kube.list("pods", namespace)}
        self.most = 0
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        with suppress(urllib3.exceptions.HTTPError):  # the control plane goes down before the watch has ended
            for event in self._kube.watch("pods", self._namespace, seconds=300):
                self._take(event["type"], event["object"])

    def _take(self, kind: str, pod: Object) -> None:
        up = kind != "DELETED" and objects.is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
        (self._ready.add if up else self._ready.discard)(pod["metadata"]["name"])
        self.most = max(self.most, self._wanted - len(self._ready))


def test_observe_plans_and_reports_and_enforce_shows_each_move(product: ControlPlane, kube: Api) -> None:
    kube.create("namespaces", {"metadata": {"name": "observed"}})
    configure(kube, mode="observe", enabledStrategies=["LoadBalancing"])
    cordon(kube, but=NODES[0], cordoned=True)
    kube.create("deployments", objects.deployment("web", replicas=6, cpu="800m"), "observed")
    before = {pod["metadata"]["uid"] for pod in ready(kube, "observed", 6)}
    cordon(kube, but=NODES[0], cordoned=False)
    proposals = 'spotshift_proposals_total{strategy="LoadBalancing"}'
    eventually(lambda: measured(product, proposals), until=lambda count: count > 5, timeout=60, what="proposals")
    assert measured(product, "spotshift_imbalance_ratio") > 2
    assert kube.list("podmigrations", "observed") == []
    assert {pod["metadata"]["uid"] for pod in kube.list("pods", "observed")} == before

    configure(kube, enabledStrategies=["LoadBalancing"], migrations={"hintPropagation": "4s"})
    shown = eventually(
        lambda: product.kubectl("describe", "deployment", "web", "-n", "observed"),
        until=lambda text: f"{PREFIX}moving=migration-" in text and "MoveStarted" in text,
        timeout=60,
        what="a move that the Deployment shows",
    )
    assert re.search(r"MoveStarted .* moving pod web-\S+ from on-demand-0 to on-demand-[123]", shown)
    levelled(kube, "observed", most=3)
    moves = finished(kube, "observed")
    assert all(it["status"]["onTarget"] for it in moves), moves
    assert PREFIX + "moving" not in eventually(
        lambda: kube.get("deployments", "web", "observed")["metadata"].get("labels", {}),
        until=lambda labels: PREFIX + "moving" not in labels,
    )
    name = moves[0]["metadata"]["name"]
    moved = moves[0]["spec"]["podRef"]["name"]
    for kind, subject in (("Pod", moved), ("Deployment", "web"), ("Node", NODES[0]), ("PodMigration", name)):
        told = eventually(
            lambda kind=kind, subject=subject: product.kubectl(  # type: ignore[misc]
                "get", "events", "-A", "--field-selector", f"involvedObject.kind={kind},involvedObject.name={subject}"
            ),
            until=lambda text: "MoveStarted" in text and "MoveCompleted" in text,
            what=f"Events on {kind} {subject}",
        )
        assert name in told
    kube.delete("deployments", "web", "observed")


def test_the_quick_test_is_levelled(product: ControlPlane, kube: Api) -> None:
    configure(kube)
    cordon(kube, but=NODES[1], cordoned=True)
    product.kubectl("apply", "-f", str(EXAMPLES / "quick-test.yaml"))
    namespace = "spotshift-quick-test"
    assert on_nodes(ready(kube, namespace, 12)) == {NODES[1]: 12}
    down = Down(kube, namespace, 12)
    cordon(kube, but=NODES[1], cordoned=False)
    levelled(kube, namespace, most=4)
    moves = finished(kube, namespace)
    ready(kube, namespace, 12)
    assert down.most == 1
    assert [it["status"]["onTarget"] for it in moves] == [True] * len(moves)
    product.kubectl("delete", "-f", str(EXAMPLES / "quick-test.yaml"))


def test_the_test_pods_leave_a_node_under_maintenance(product: ControlPlane, kube: Api) -> None:
    configure(kube, enabledStrategies=["NodeMaintenance"])
    product.kubectl("apply", "-f", str(EXAMPLES / "test-pods.yaml"))
    namespace = "spotshift-test-pods"
    node = max(on_nodes(ready(kube, namespace, 10)))
    down = Down(kube, namespace, 10)
    product.kubectl("label", "node", node, f"{PREFIX}maintenance=true")
    eventually(
        lambda: on_nodes(kube.list("pods", namespace)),
        until=lambda found: node not in found,
        timeout=PATIENCE_SECONDS,
        what="an empty node",
    )
    ready(kube, namespace, 10)
    assert 1 <= down.most <= 2
    product.kubectl("label", "node", node, f"{PREFIX}maintenance-")
    product.kubectl("delete", "-f", str(EXAMPLES / "test-pods.yaml"))


def test_a_node_that_is_used_too_much_is_relieved(product: ControlPlane, kube: Api) -> None:
    """By requests it is almost empty; metrics-server says that its pods use all of its eight cores."""
    kube.create("namespaces", {"metadata": {"name": "used"}})
    configure(kube, enabledStrategies=["ResourceOptimization"])
    cordon(kube, but=NODES[2], cordoned=True)
    busy = {f"{objects.PREFIX}usage-cpu": "2"}
    kube.create("deployments", objects.deployment("busy", replicas=4, annotations=busy), "used")
    assert on_nodes(ready(kube, "used", 4)) == {NODES[2]: 4}
    cordon(kube, but=NODES[2], cordoned=False)
    eventually(
        lambda: on_nodes(kube.list("pods", "used"))[NODES[2]],
        until=lambda count: count <= 3,  # 75 %; one or two go, as much as the mean held by then
        timeout=PATIENCE_SECONDS,
        what="relief",
    )
    (move, *_) = finished(kube, "used")
    assert re.search(r"has 1?\d\d % of its cpu .* used", move["spec"]["cause"]), move["spec"]["cause"]
    kube.delete("deployments", "busy", "used")

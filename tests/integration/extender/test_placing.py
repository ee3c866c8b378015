"""Where a real kube-scheduler puts pods when it asks the extender: prefers, avoids, falls back."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.extender import stage
from bench.extender.stage import Extender, placed
from testbed import objects
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.pytest_plugin import CONFINED, Nodes
from testbed.waiting import eventually
from tests.integration.extender.login import kubeconfig

PREFIX = "scheduler.alpha.kubernetes.io/"
EVERYTHING = [{"operator": "Exists"}]


@pytest.fixture(params=["names", "whole nodes"])
def asked(
    request: pytest.FixtureRequest, cluster: ControlPlane, extender: Extender, scheduler: str, tmp_path: Path
) -> Iterator[str]:
    """A scheduler of each form: one sends names, the other whole nodes and goes on with those that come back."""
    if request.param == "names":
        yield scheduler
        return
    name = f"{scheduler}-whole"
    with stage.scheduler(cluster, name, tmp_path / "whole", extender.port, nodeCacheCapable=False) as made:
        yield made


def make(kube: Api, namespace: str, scheduler: str, count: int, *, spot: str | None = None, **spec: Any) -> None:
    annotations = {f"{PREFIX}spot": spot} if spot else {}
    for number in range(count):
        pod = objects.pod(f"{spot or 'plain'}-{number}", annotations=annotations, schedulerName=scheduler, **spec)
        kube.create("pods", pod, namespace)


def until_out(extender: Extender, *names: str) -> None:
    """Wait until the extender has seen that these nodes go away; a watch takes a moment."""
    body = {"Pod": {}, "NodeNames": list(names)}
    eventually(lambda: extender.post("/filter", body)["NodeNames"], until=lambda left: not left, what="the signs")


def kinds(nodes: dict[str, str]) -> Counter[str]:
    return Counter("spot" if "-spot-" in node else "on-demand" for node in nodes.values())


def test_prefers_avoids_and_falls_back(kube: Api, namespace: str, nodes: Nodes, asked: str) -> None:
    nodes.make(on_demand=2, spot=2, pods="5")
    make(kube, namespace, asked, 6)
    assert kinds(placed(kube, namespace, 6)) == {"spot": 6}, "nobody says anything, so spot is preferred"
    make(kube, namespace, asked, 8, spot="avoid")
    assert kinds(placed(kube, namespace, 14)) == {"spot": 6, "on-demand": 8}, "on-demand has room for ten"
    make(kube, namespace, asked, 6, spot="prefer")
    assert kinds(placed(kube, namespace, 20)) == {"spot": 10, "on-demand": 10}, "all is full: both fell back"


def test_what_goes_away_gets_nothing(kube: Api, namespace: str, nodes: Nodes, extender: Extender, asked: str) -> None:
    """The pods tolerate everything, so it is the extender that keeps them away; the scheduler alone does not know."""
    drained, taken, left = nodes.make(on_demand=3)
    kube.patch("nodes", drained, {"metadata": {"labels": {f"{PREFIX}maintenance": "true"}}})
    taint = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
    kube.patch("nodes", taken, {"spec": {"taints": [taint]}})
    until_out(extender, drained, taken)
    make(kube, namespace, asked, 6, tolerations=EVERYTHING)
    assert set(placed(kube, namespace, 6).values()) == {left}


def test_when_all_nodes_go_away_a_pod_waits_and_is_told_why(
    kube: Api, namespace: str, nodes: Nodes, extender: Extender, scheduler: str
) -> None:
    (only,) = nodes.make(on_demand=1)
    kube.patch("nodes", only, {"metadata": {"labels": {f"{PREFIX}maintenance": "true"}}})
    until_out(extender, only)
    make(kube, namespace, scheduler, 1)

    def told() -> str:
        pod = kube.get("pods", "plain-0", namespace)
        return str(pod.get("status", {}).get("conditions", ({},))[0].get("message", ""))

    eventually(told, until=lambda it: "node is to be drained for maintenance" in it, what="the reason")
    agent = objects.daemon_set("agent", schedulerName=scheduler, nodeSelector={CONFINED: namespace})
    kube.create("daemonsets", agent, namespace)
    assert set(placed(kube, namespace, 1).values()) == {only}, "a DaemonSet belongs there"
    kube.patch("nodes", only, {"metadata": {"labels": {f"{PREFIX}maintenance": None}}})
    assert set(placed(kube, namespace, 2).values()) == {only}


def test_a_number_on_the_nodes_counts(
    cluster: ControlPlane, kube: Api, namespace: str, account: str, nodes: Nodes, tmp_path: Path
) -> None:
    far, near = nodes.make(on_demand=2)
    for node, latency in ((far, "180"), (near, "5")):
        kube.patch("nodes", node, {"metadata": {"annotations": {"example.org/latency": latency}}})
    settings = "extender: {metric: {annotation: example.org/latency, worst: 200}}"
    with (
        stage.extender(cluster, kubeconfig(cluster, account), tmp_path / "extender", settings=settings) as it,
        stage.scheduler(cluster, f"near-{namespace}", tmp_path / "scheduler", it.port) as scheduler,
    ):
        make(kube, namespace, scheduler, 5)
        assert set(placed(kube, namespace, 5).values()) == {near}

"""What a test can tell the simulated kubelets to do."""

import time

import pytest

from testbed import objects
from testbed.api import Api, Object
from testbed.layout import VANISHED
from testbed.objects import PREFIX
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually, patient

pytestmark = pytest.mark.apart


def pod_when(kube: Api, name: str, namespace: str, what: str, until: object) -> Object:
    assert callable(until)
    return eventually(lambda: kube.get("pods", name, namespace), until=until, what=what)


def test_ready_delay(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    created = time.monotonic()
    kube.create("pods", objects.pod("late", annotations={f"{PREFIX}ready-delay": "4s"}), namespace)
    started = pod_when(kube, "late", namespace, "an address", lambda pod: pod["status"].get("podIP"))
    assert not objects.is_ready(started)
    pod_when(kube, "late", namespace, "Ready", objects.is_ready)
    assert 4.0 <= time.monotonic() - created <= patient(9.0)


def test_never_ready_and_back(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    kube.create("pods", objects.pod("sick", annotations={f"{PREFIX}ready": "false"}), namespace)
    running = pod_when(kube, "sick", namespace, "Running", lambda pod: pod["status"]["phase"] == "Running")
    assert not objects.is_ready(running)
    kube.patch("pods", "sick", {"metadata": {"annotations": {f"{PREFIX}ready": None}}}, namespace)
    pod_when(kube, "sick", namespace, "Ready", objects.is_ready)
    kube.patch("pods", "sick", {"metadata": {"annotations": {f"{PREFIX}ready": "false"}}}, namespace)
    pod_when(kube, "sick", namespace, "not Ready", lambda pod: not objects.is_ready(pod))


def test_readiness_gate_counts(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    gate = "example.com/load-balancer"
    kube.create("pods", objects.pod("gated", readinessGates=[{"conditionType": gate}]), namespace)
    running = pod_when(kube, "gated", namespace, "Running", lambda pod: pod["status"]["phase"] == "Running")
    assert not objects.is_ready(running)
    condition = {"type": gate, "status": "True"}
    patch = {"status": {"conditions": [condition]}}
    kind = "application/strategic-merge-patch+json"
    kube.patch("pods", "gated", patch, namespace, kind=kind, subresource="status")
    pod_when(kube, "gated", namespace, "Ready", objects.is_ready)


def test_crash_loop(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    kube.create("pods", objects.pod("broken", annotations={f"{PREFIX}crash-after": "1s"}), namespace)
    pod = pod_when(
        kube,
        "broken",
        namespace,
        "the crash",
        lambda pod: pod["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) > 0,
    )
    status = pod["status"]["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert not objects.is_ready(pod)


def test_crash_of_a_pod_that_may_not_restart(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    crash = {f"{PREFIX}crash-after": "1s"}
    kube.create("pods", objects.pod("once", annotations=crash, restartPolicy="Never"), namespace)
    pod_when(kube, "once", namespace, "Failed", lambda pod: pod["status"]["phase"] == "Failed")


def test_node_goes_not_ready_and_comes_back(kube: Api, namespace: str, nodes: Nodes) -> None:
    (name,) = nodes.make(on_demand=1)
    kube.patch("nodes", name, {"metadata": {"annotations": {f"{PREFIX}ready": "false"}}})
    node = eventually(
        lambda: kube.get("nodes", name),
        until=lambda node: (
            "node.kubernetes.io/not-ready" in {taint["key"] for taint in node["spec"].get("taints", ())}
        ),
        what="the taint of the node lifecycle controller",
    )
    assert not objects.is_ready(node)
    kube.patch("nodes", name, {"metadata": {"annotations": {f"{PREFIX}ready": None}}})
    eventually(
        lambda: kube.get("nodes", name), until=lambda node: objects.is_ready(node) and not node["spec"].get("taints")
    )


def test_nodes_carry_zone_capacity_and_taints(kube: Api, namespace: str, nodes: Nodes) -> None:
    taint = {"key": "example.com/spot", "effect": "NoSchedule"}
    (name,) = nodes.make(spot=1, cpu="2", memory="4Gi", pods="7", taints=[taint])
    node = kube.get("nodes", name)
    assert node["metadata"]["labels"][objects.CAPACITY] == "spot"
    assert node["metadata"]["labels"][objects.ZONE] == "zone-a"
    assert node["status"]["allocatable"]["cpu"] == "2"
    assert node["status"]["allocatable"]["pods"] == "7"
    kube.create("pods", objects.pod("kept-out"), namespace)
    pending = eventually(
        lambda: kube.get("pods", "kept-out", namespace),
        until=lambda pod: pod["status"].get("conditions"),
        what="a verdict",
    )
    assert pending["status"]["conditions"][0]["reason"] == "Unschedulable"


def test_a_node_that_vanished(kube: Api, namespace: str, nodes: Nodes) -> None:
    """The real node controller sees the lease run out, and nobody there ends a pod."""
    (gone,) = nodes.make(on_demand=1)
    kube.create("pods", objects.pod("stranded"), namespace)
    pod_when(kube, "stranded", namespace, "Ready", objects.is_ready)
    kube.patch("nodes", gone, {"metadata": {"labels": {VANISHED: "true"}}})

    def readiness() -> str:
        conditions = kube.get("nodes", gone)["status"]["conditions"]
        return next(str(condition["status"]) for condition in conditions if condition["type"] == "Ready")

    eventually(readiness, until=lambda status: status == "Unknown", timeout=120, what="Unknown")
    eventually(
        lambda: {taint["key"] for taint in kube.get("nodes", gone)["spec"].get("taints", ())},
        until=lambda taints: "node.kubernetes.io/unreachable" in taints,
    )
    kube.delete("pods", "stranded", namespace, gracePeriodSeconds=1)
    nodes.make(on_demand=1)
    kube.create("pods", objects.pod("elsewhere"), namespace)
    kube.delete(
        "pods", pod_when(kube, "elsewhere", namespace, "Ready", objects.is_ready)["metadata"]["name"], namespace
    )
    eventually(
        lambda: [pod["metadata"]["name"] for pod in kube.list("pods", namespace)],
        until=lambda names: names == ["stranded"],
        what="the end of the pod on the node that is there",
    )
    kube.patch("nodes", gone, {"metadata": {"labels": {VANISHED: None}}})
    eventually(readiness, until=lambda status: status == "True", timeout=60, what="the node back")

"""The test bed is a real Kubernetes: controllers, scheduler, admission, eviction, metrics, audit."""

import json
import time
from typing import Any

import psutil
import pytest

from testbed import access, cordons, objects
from testbed.api import Api, ApiError, Object
from testbed.bed import ControlPlane
from testbed.objects import PREFIX
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually, patient

pytestmark = pytest.mark.apart


def ready_pods(kube: Api, namespace: str, count: int, *, timeout: float = 60.0) -> list[Object]:
    return eventually(
        lambda: [pod for pod in kube.list("pods", namespace) if objects.is_ready(pod)],
        until=lambda pods: len(pods) == count,
        timeout=timeout,
        what=f"{count} Ready pods in {namespace}",
    )


def gone(kube: Api, name: str, namespace: str, *, timeout: float = 30.0) -> None:
    eventually(
        lambda: [pod["metadata"]["name"] for pod in kube.list("pods", namespace)],
        until=lambda names: name not in names,
        timeout=timeout,
        what=f"the end of pod {name}",
    )


def test_deployment_of_50_on_10_nodes(kube: Api, namespace: str, nodes: Nodes) -> None:
    made = nodes.make(on_demand=5, spot=5)
    kube.create("deployments", objects.deployment("web", replicas=50), namespace)
    pods = ready_pods(kube, namespace, 50)
    assert {pod["spec"]["nodeName"] for pod in pods} == set(made), "the scheduler spreads over all nodes"
    status = eventually(
        lambda: kube.get("deployments", "web", namespace)["status"], until=lambda s: s.get("availableReplicas") == 50
    )
    assert status["readyReplicas"] == 50


def let_ready(kube: Api, namespace: str, count: int) -> list[Object]:
    """Have the pods there are become Ready, which these do not by themselves."""

    def told() -> list[Object]:
        pods = kube.list("pods", namespace)
        for pod in pods:
            change = {"metadata": {"annotations": {f"{PREFIX}ready": None}}}
            kube.patch("pods", pod["metadata"]["name"], change, namespace)
        return [pod for pod in pods if objects.is_ready(pod)]

    return eventually(told, until=lambda pods: len(pods) == count, timeout=60, what=f"{count} Ready pods")


def test_budget_is_enforced_by_the_eviction_api(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=2)
    held = {f"{PREFIX}ready": "false"}  # so that no replacement gives the budget room again
    kube.create("deployments", objects.deployment("web", replicas=2, annotations=held), namespace)
    first, second = let_ready(kube, namespace, 2)
    kube.create("poddisruptionbudgets", objects.budget("web", app="web", minAvailable=1), namespace)
    eventually(
        lambda: kube.get("poddisruptionbudgets", "web", namespace)["status"],
        until=lambda status: status["disruptionsAllowed"] == 1,
    )
    assert kube.evict(first["metadata"]["name"], namespace)["status"] == "Success"
    with pytest.raises(ApiError) as refusal:
        kube.evict(second["metadata"]["name"], namespace)
    assert refusal.value.status == 429
    assert refusal.value.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    gone(kube, first["metadata"]["name"], namespace)
    let_ready(kube, namespace, 2)


@pytest.mark.parametrize(
    ("stop_delay", "at_least", "at_most"),
    [
        pytest.param("60s", 10.0, 14.0, id="killed at the end"),
        pytest.param("3s", 3.0, 7.0, id="stops earlier by itself"),
    ],
)
def test_grace_period_of_ten_seconds_is_honoured(
    kube: Api, namespace: str, nodes: Nodes, stop_delay: str, at_least: float, at_most: float
) -> None:
    nodes.make(on_demand=1)
    annotations = {f"{PREFIX}stop-delay": stop_delay}
    kube.create("pods", objects.pod("slow", annotations=annotations, terminationGracePeriodSeconds=10), namespace)
    ready_pods(kube, namespace, 1)
    asked = time.monotonic()
    kube.delete("pods", "slow", namespace)
    gone(kube, "slow", namespace)
    assert at_least <= time.monotonic() - asked <= patient(at_most)


def test_changing_a_pod_does_not_lengthen_its_grace_period(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    annotations = {f"{PREFIX}stop-delay": "60s"}
    kube.create("pods", objects.pod("slow", annotations=annotations, terminationGracePeriodSeconds=6), namespace)
    ready_pods(kube, namespace, 1)
    asked = time.monotonic()
    kube.delete("pods", "slow", namespace)
    changes = 0

    def change_until_gone() -> bool:
        nonlocal changes
        try:
            kube.patch("pods", "slow", {"metadata": {"labels": {"changed": str(changes)}}}, namespace)
        except ApiError as gone:
            return gone.status == 404
        changes += 1
        return False

    eventually(change_until_gone, interval=1, what="the end of the pod")
    assert changes >= 4
    assert time.monotonic() - asked >= 6.0
    assert changes <= patient(10), "about one change a second, so it ended with its grace period"


def test_pod_with_a_finalizer_stays_until_it_is_removed(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    pod = objects.pod("kept", terminationGracePeriodSeconds=1)
    pod["metadata"]["finalizers"] = ["example.com/keep"]
    kube.create("pods", pod, namespace)
    ready_pods(kube, namespace, 1)
    kube.delete("pods", "kept", namespace)
    stopped = eventually(
        lambda: kube.get("pods", "kept", namespace),
        until=lambda pod: pod["metadata"]["deletionGracePeriodSeconds"] == 0,
    )
    assert stopped["status"]["phase"] == "Failed", "its containers are stopped, as on a real node"
    assert stopped["metadata"]["finalizers"] == ["example.com/keep"]
    kube.patch("pods", "kept", {"metadata": {"finalizers": None}}, namespace)
    gone(kube, "kept", namespace)


def test_kubectl_top_shows_the_annotated_usage(
    cluster: ControlPlane, kube: Api, namespace: str, nodes: Nodes
) -> None:
    (name,) = nodes.make(on_demand=1)
    usage = {f"{PREFIX}usage-cpu": "1500m", f"{PREFIX}usage-memory": "2Gi"}
    kube.create("pods", objects.pod("busy", annotations=usage), namespace)
    ready_pods(kube, namespace, 1)

    def top() -> list[str]:
        row = cluster.kubectl("top", "pods", "-n", namespace, "--no-headers").split()
        assert row[:1] == ["busy"]
        return row

    def measured() -> list[str]:
        try:
            return top()
        except RuntimeError as not_yet:
            raise AssertionError(str(not_yet)) from None

    _, cpu, memory = eventually(measured, timeout=90, interval=1, what="kubectl top pods")
    assert 1400 <= int(cpu.removesuffix("m")) <= 1600
    assert memory == "2048Mi"
    node_row = eventually(
        lambda: cluster.kubectl("top", "nodes", "--no-headers"),
        until=lambda text: name in text,
        timeout=60,
        interval=1,
    )
    row = next(line.split() for line in node_row.splitlines() if line.startswith(name))
    assert 1400 <= int(row[1].removesuffix("m")) <= 1600


def test_horizontal_autoscaler_scales_on_measured_usage(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=2)
    usage = {f"{PREFIX}usage-cpu": "400m"}
    kube.create("deployments", objects.deployment("web", replicas=1, cpu="200m", annotations=usage), namespace)
    ready_pods(kube, namespace, 1)
    target: Object = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    target["resource"]["target"]["averageUtilization"] = 100
    spec: dict[str, Any] = {"minReplicas": 1, "maxReplicas": 3, "metrics": [target]}
    spec["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
    kube.create("horizontalpodautoscalers", {**autoscaler, "spec": spec}, namespace)
    eventually(
        lambda: kube.get("deployments", "web", namespace)["spec"]["replicas"],
        until=lambda replicas: replicas > 1,
        timeout=120,
        interval=1,
        what="the autoscaler's decision",
    )


def test_stateful_set_starts_in_order_and_keeps_names(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    delay = {f"{PREFIX}ready-delay": "2s"}
    kube.create("statefulsets", objects.stateful_set("db", replicas=3, annotations=delay), namespace)
    pods = {pod["metadata"]["name"]: pod for pod in ready_pods(kube, namespace, 3)}
    assert sorted(pods) == ["db-0", "db-1", "db-2"]
    started = [pods[f"db-{index}"]["metadata"]["creationTimestamp"] for index in range(3)]
    assert started == sorted(set(started)), "each waits until the one before is Ready, which takes two seconds"
    kube.evict("db-1", namespace)
    eventually(
        lambda: kube.get("pods", "db-1", namespace),
        until=lambda pod: pod["metadata"]["uid"] != pods["db-1"]["metadata"]["uid"] and objects.is_ready(pod),
        what="db-1 again",
    )


def test_jobs_complete_and_fail(kube: Api, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    kube.create("jobs", objects.job("good", completions=2), namespace)
    crash = {f"{PREFIX}crash-after": "1s"}
    bad = objects.job("bad", annotations=crash)
    bad["spec"]["backoffLimit"] = 0
    kube.create("jobs", bad, namespace)

    def conditions(name: str) -> list[str]:
        return [condition["type"] for condition in kube.get("jobs", name, namespace)["status"].get("conditions", ())]

    eventually(lambda: "Complete" in conditions("good"), what="the end of job good")
    eventually(lambda: "Failed" in conditions("bad"), what="the failure of job bad")


def test_audit_log_tells_who_did_what(cluster: ControlPlane, kube: Api, namespace: str) -> None:
    login = access.kubeconfig(cluster, "default", namespace)
    user = f"system:serviceaccount:{namespace}:default"
    with pytest.raises(RuntimeError, match="Forbidden"):
        cluster.kubectl(f"--kubeconfig={login}", "get", "pods", "-n", namespace)
    lines = eventually(
        lambda: [json.loads(line) for line in cluster.layout.audit_log.read_text().splitlines() if user in line],
        until=lambda events: any(
            event["objectRef"]["resource"] == "pods" for event in events if "objectRef" in event
        ),
    )
    event = next(event for event in lines if event.get("objectRef", {}).get("resource") == "pods")
    assert (event["verb"], event["responseStatus"]["code"], event["user"]["username"]) == ("list", 403, user)
    assert "requestObject" not in event


def refusal(kube: Api, pod: Object, namespace: str) -> str:
    """Why a pod is not admitted; admission hears of namespaces and quotas in its own time."""
    try:
        kube.create("pods", pod, namespace, dry_run=True)
    except ApiError as refused:
        return str(refused)
    return ""


def test_admission_is_that_of_a_normal_cluster(kube: Api, namespace: str, nodes: Nodes) -> None:
    kube.patch(
        "namespaces", namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    )
    eventually(
        lambda: refusal(kube, objects.pod("loose"), namespace),
        until=lambda told: "violates PodSecurity" in told,
        what="PodSecurity",
    )
    kube.patch("namespaces", namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": None}}})
    limit = {"type": "Container", "default": {"cpu": "300m"}}
    kube.create(
        "limitranges",
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [limit]}},
        namespace,
    )
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    made = eventually(
        lambda: kube.create("pods", objects.pod("limited"), namespace, dry_run=True),
        until=lambda pod: "limits" in pod["spec"]["containers"][0]["resources"],
        what="the default of the LimitRange",
    )
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "300m"}
    assert made["spec"]["priority"] == 0
    assert made["spec"]["tolerations"], "the default tolerations are injected"
    assert made["spec"]["volumes"][0]["name"].startswith("kube-api-access-"), "and the token volume"
    kube.create("resourcequotas", quota, namespace)

    eventually(
        lambda: refusal(kube, objects.pod("over"), namespace),
        until=lambda told: "exceeded quota" in told,
        what="the quota",
    )


def test_an_apiserver_does_not_take_all_memory(cluster: ControlPlane) -> None:
    pid = cluster.status()["kube-apiserver"]
    assert psutil.Process(pid).environ()["GOMEMLIMIT"].endswith("GiB")


def test_the_scheduler_knows_of_a_cordon(kube: Api, namespace: str, nodes: Nodes) -> None:
    first, second, third = nodes.make(on_demand=3)
    with cordons.cordoned(kube, [first, third]):
        kube.create("deployments", objects.deployment("web", replicas=6), namespace)
        assert {it["spec"]["nodeName"] for it in ready_pods(kube, namespace, 6)} == {second}
    assert not any(kube.get("nodes", it)["spec"].get("unschedulable") for it in (first, second, third))
    assert not [it for it in kube.list("pods", cordons.NAMESPACE) if first in str(it["spec"])]

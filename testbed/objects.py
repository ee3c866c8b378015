"""Builders for the objects that demos and tests put into a cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.api import Object
from testbed.pins import versions

PREFIX = "testbed.spotshift.dev/"
"""Annotations that tell a simulated kubelet how to behave: see config/kwok.yaml."""

CAPACITY = "node.kubernetes.io/capacity"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b", "zone-c")


def node(
    name: str,
    *,
    spot: bool = False,
    zone: str = ZONES[0],
    cpu: str = "8",
    memory: str = "32Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Object:
    """A node whose kubelet kwok simulates; it becomes Ready by itself."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi"}
    blank = ("bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "machineID", "osImage")
    info = {**dict.fromkeys((*blank, "systemUUID"), ""), "architecture": "amd64", "operatingSystem": "linux"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                ZONE: zone,
                CAPACITY: "spot" if spot else "on-demand",
                **(labels or {}),
            },
            "annotations": {
                "kwok.x-k8s.io/node": "fake",
                "metrics.k8s.io/resource-metrics-path": f"/metrics/nodes/{name}/metrics/resource",
                **(annotations or {}),
            },
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {
            "capacity": room,
            "allocatable": room,
            "nodeInfo": {**info, "kubeletVersion": f"v{versions()['kubernetes']}"},
        },
    }


def pool(prefix: str, *, on_demand: int, spot: int, **options: Any) -> list[Object]:
    """Nodes of both capacity types, spread over the zones."""
    kinds = [("on-demand", False, on_demand), ("spot", True, spot)]
    return [
        node(f"{prefix}{label}-{index}", spot=is_spot, zone=ZONES[index % len(ZONES)], **options)
        for label, is_spot, count in kinds
        for index in range(count)
    ]


def pod_spec(*, cpu: str = "100m", memory: str = "64Mi", **spec: Any) -> Object:
    """One container with requests; anything else of a pod's spec by name."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}


def pod(name: str, *, annotations: Mapping[str, str] | None = None, **options: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}, "annotations": dict(annotations or {})},
        "spec": pod_spec(**options),
    }


def deployment(
    name: str, *, replicas: int = 1, annotations: Mapping[str, str] | None = None, **options: Any
) -> Object:
    """A Deployment; `annotations` go to its pods."""
    return _workload("Deployment", name, replicas, annotations, options)


def stateful_set(
    name: str, *, replicas: int = 1, annotations: Mapping[str, str] | None = None, **options: Any
) -> Object:
    """A StatefulSet without volumes; `annotations` go to its pods."""
    workload = _workload("StatefulSet", name, replicas, annotations, options)
    workload["spec"]["serviceName"] = name
    return workload


def daemon_set(name: str, *, annotations: Mapping[str, str] | None = None, **options: Any) -> Object:
    """A DaemonSet; `annotations` go to its pods."""
    workload = _workload("DaemonSet", name, 1, annotations, options)
    del workload["spec"]["replicas"]
    return workload


def job(name: str, *, completions: int = 1, annotations: Mapping[str, str] | None = None, **options: Any) -> Object:
    template = _template(name, annotations, {"restartPolicy": "Never", **options})
    spec = {"completions": completions, "parallelism": completions, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def budget(name: str, *, app: str, **spec: Any) -> Object:
    """A PodDisruptionBudget for the pods of one workload built here."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def _workload(
    kind: str, name: str, replicas: int, annotations: Mapping[str, str] | None, options: Mapping[str, Any]
) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": _template(name, annotations, options),
        },
    }


def _template(name: str, annotations: Mapping[str, str] | None, options: Mapping[str, Any]) -> Object:
    metadata = {"labels": {"app": name}, "annotations": dict(annotations or {})}
    return {"metadata": metadata, "spec": pod_spec(**options)}


def is_ready(obj: Mapping[str, Any]) -> bool:
    """The Ready condition of a pod or node is True."""
    conditions = obj.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

"""Builders: objects as the API sends them, decoded as the product decodes them, and a state made of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cluster.decode import Decoders
from cluster.objects import (
    CSINode,
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    Job,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodMigration,
    PriorityClass,
    ReplicaSet,
    StatefulSet,
    StorageClass,
)
from descheduler.state import ClusterState
from policy.settings import Settings

Json = dict[str, Any]

TYPES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        CSINode,
        DaemonSet,
        Deployment,
        HorizontalPodAutoscaler,
        Job,
        Namespace,
        Node,
        PersistentVolume,
        PersistentVolumeClaim,
        Pod,
        PodDisruptionBudget,
        PodMigration,
        PriorityClass,
        ReplicaSet,
        StatefulSet,
        StorageClass,
    )
}
LONG_AGO = "2026-01-01T00:00:00Z"
_DECODERS = Decoders()


def decode(item: Json) -> Any:
    """The typed object of a JSON one, by its kind."""
    return _DECODERS.of(TYPES[item["kind"]]).decode(msgspec.json.encode(item))


def merged(base: Json, more: Mapping[str, Any]) -> Json:
    """`more` laid over `base`, mapping by mapping; other values replace."""
    made = dict(base)
    for key, value in more.items():
        known = made.get(key)
        made[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return made


def meta(name: str, namespace: str = "", **more: Any) -> Json:
    """Metadata with a UID that follows from the name."""
    base = {"name": name, "uid": f"uid-{namespace}-{name}", "resourceVersion": "1", "creationTimestamp": LONG_AGO}
    return {**base, **({"namespace": namespace} if namespace else {}), **more}


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    spot: bool | None = None,
    zone: str = "",
    ready: bool = True,
    unschedulable: bool = False,
    extended: Mapping[str, str] | None = None,
) -> Node:
    """A node."""
    capacity = {} if spot is None else {"node.kubernetes.io/capacity": "spot" if spot else "on-demand"}
    zoned = {"topology.kubernetes.io/zone": zone} if zone else {}
    room = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(extended or {})}
    made: Node = decode(
        {
            "kind": "Node",
            "metadata": meta(
                name,
                labels={"kubernetes.io/hostname": name, **zoned, **capacity, **(labels or {})},
                annotations=dict(annotations or {}),
            ),
            "spec": {"taints": list(taints), **({"unschedulable": True} if unschedulable else {})},
            "status": {
                "allocatable": room,
                "capacity": room,
                "conditions": [
                    {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": LONG_AGO}
                ],
            },
        }
    )
    return made


def owner(kind: str, name: str, namespace: str = "default") -> Json:
    """A controlling owner reference."""
    api = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{namespace}-{name}", "controller": True}


def pod(
    name: str,
    *,
    on: str = "",
    namespace: str = "default",
    of: Json | None = None,
    cpu: str = "",
    memory: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    ready: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Pod:
    """A pod, Running and Ready if it is on a node. `of` is its owner."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    containers = [{"name": "main", "resources": {"requests": requests}}]
    running: Json = {"phase": "Pending"}
    if on:
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": LONG_AGO}
        running = {"phase": "Running", "startTime": LONG_AGO, "conditions": [condition]}
    made: Pod = decode(
        {
            "kind": "Pod",
            "metadata": merged(
                meta(
                    name,
                    namespace,
                    labels=dict(labels or {}),
                    annotations=dict(annotations or {}),
                    ownerReferences=[of] if of else [],
                ),
                metadata or {},
            ),
            "spec": merged({"nodeName": on, "containers": containers}, spec or {}),
            "status": merged(running, status or {}),
        }
    )
    return made


def thing(kind: str, name: str, namespace: str = "default", **more: Any) -> Any:
    """Any other object; `metadata` in `more` is laid over the usual one."""
    return decode(merged({"kind": kind, "metadata": meta(name, namespace)}, more))


def budget(name: str, *, allowed: int, labels: Mapping[str, str], namespace: str = "default", **more: Any) -> Any:
    """A disruption budget that selects pods by labels, as its controller has counted it."""
    base = {
        "spec": {"selector": {"matchLabels": dict(labels)}, "maxUnavailable": 1},
        "status": {"disruptionsAllowed": allowed, "observedGeneration": 1},
        "metadata": {"generation": 1},
    }
    return thing("PodDisruptionBudget", name, namespace, **merged(base, more))


def state(*objects: Any, settings: Settings | None = None) -> ClusterState:
    """A state that has heard of these."""
    made = ClusterState(settings or Settings())
    for item in objects:
        made.apply(None, item)
    return made

"""A large cluster as the API tells it: nodes, ReplicaSets and pods, so evenly laid out that nothing is to be done.

Pure: the same numbers give the same cluster. Every second node is spot; every second template asks to avoid spot and
is on the others. Pods are those of `bench.pods`, each on the node of its capacity that was least full.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from bench import pods
from bench.decode import PODS_PER_TEMPLATE
from bench.pods import Object
from policy import keys
from policy.values import Spot

PODS_PER_NODE = 30
"""As in 5,000 nodes with 150,000 pods, the largest cluster that Kubernetes supports."""
NODE_CPU, NODE_MEMORY, NODE_PODS = "48", "192Gi", "110"
PAGE = 500
ZONES = "abc"


def node_name(number: int) -> str:
    return f"ip-10-0-{number}.eu-central-1.compute.internal"


def node(number: int, *, version: int = 1, labels: dict[str, str] | None = None, beat: str = pods.BORN) -> Object:
    """A node; `beat` is when its kubelet was last heard."""
    name = node_name(number)
    room = {"cpu": NODE_CPU, "memory": NODE_MEMORY, "pods": NODE_PODS, "ephemeral-storage": "200Gi"}
    kinds = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"00000000-0000-4000-9000-{number:012d}",
            "resourceVersion": str(version),
            "creationTimestamp": pods.BORN,
            "labels": {
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/capacity": "on-demand" if number % 2 else "spot",
                "topology.kubernetes.io/zone": f"eu-central-1{ZONES[number % len(ZONES)]}",
                **(labels or {}),
            },
        },
        "spec": {"podCIDR": f"10.{number >> 8 & 255}.{number & 255}.0/24"},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [
                {"type": kind, "status": status, "lastHeartbeatTime": beat, "lastTransitionTime": pods.BORN}
                for kind, status in kinds.items()
            ],
        },
    }


def replica_set(
    template: int, replicas: int, *, version: int = 1, missing: int = 0, of_deployment: bool = False
) -> Object:
    """The owner of the pods of one template, so many of which are not Ready."""
    made = _workload("ReplicaSet", template, replicas, version=version, missing=missing)
    made["metadata"] |= {"name": f"{_app(template)}-7c9d8b6f5", "uid": f"00000000-0000-4000-8000-{template:012d}"}
    if of_deployment:
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": _app(template), "uid": _deployment(template)}
        made["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return made


def deployment(template: int, replicas: int, *, version: int = 1, missing: int = 0) -> Object:
    """The owner of that ReplicaSet."""
    return _workload("Deployment", template, replicas, version=version, missing=missing)


def budget(template: int, replicas: int, *, version: int = 1, missing: int = 0) -> Object:
    """One pod of the template may be away."""
    status = {
        "currentHealthy": replicas - missing,
        "desiredHealthy": replicas - 1,
        "expectedPods": replicas,
        "disruptionsAllowed": max(1 - missing, 0),
        "observedGeneration": 1,
    }
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(template, f"00000000-0000-4000-b000-{template:012d}", version),
        "spec": {"maxUnavailable": 1, "selector": _selector(template)},
        "status": status,
    }


def _workload(kind: str, template: int, replicas: int, *, version: int, missing: int) -> Object:
    status = {"replicas": replicas, "readyReplicas": replicas - missing, "observedGeneration": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": _metadata(template, _deployment(template), version),
        "spec": {"replicas": replicas, "selector": _selector(template)},
        "status": status,
    }


def _metadata(template: int, uid: str, version: int) -> Object:
    return {
        "name": _app(template),
        "namespace": f"team-{template % 40}",
        "uid": uid,
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": pods.BORN,
    }


def _selector(template: int) -> Object:
    return {"matchLabels": {"app.kubernetes.io/name": _app(template)}}


def _app(template: int) -> str:
    return f"service-{template}"


def _deployment(template: int) -> str:
    return f"00000000-0000-4000-a000-{template:012d}"


def templates(count: int) -> int:
    """How many templates so many pods have."""
    return max(1, count // PODS_PER_TEMPLATE)


def pod(template: int, number: int, on: str, *, version: int = 1) -> Object:
    """The same pod whenever it is asked for."""
    made = pods.pod(template, number, random.Random(number))
    made["spec"]["nodeName"] = on
    made["metadata"]["resourceVersion"] = str(version)
    if template % 2:
        made["metadata"]["annotations"][keys.under().spot] = Spot.AVOID.value
    return made


def placed(nodes: int, count: int) -> Iterator[Object]:
    """The pods, each on the node of its capacity that holds least so far."""
    loads = [(0, number) for number in range(0, nodes, 2)], [(0, number) for number in range(1, nodes, 2)]
    for number in range(count):
        template = number % templates(count)
        load = loads[template % 2]
        held, at = heapq.heappop(load)
        made = pod(template, number, node_name(at))
        heapq.heappush(load, (held + _milli(made), at))
        yield made


def _milli(pod: Object) -> int:
    return sum(int(it["resources"]["requests"]["cpu"][:-1]) for it in pod["spec"]["containers"])


def pages(items: Iterator[Object]) -> Iterator[bytes]:
    """A list in pages, each of them one line."""
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == PAGE:
            yield _page(batch)
            batch = []
    if batch:
        yield _page(batch)


def _page(items: list[Any]) -> bytes:
    return msgspec.json.encode({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items})

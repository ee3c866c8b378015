"""Puts worlds into a cluster and asks both sides: the real kube-scheduler, and our own fit.

Nodes have no kubelets, and only the apiserver and the scheduler run: what other controllers would do to claims and
taints would blur the question.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cluster.decode import Decoders
from cluster.objects import (
    CSINode,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from descheduler.fit import Fitter, Misfit
from descheduler.picture import Picture
from descheduler.state import ClusterState
from policy.settings import Settings
from testbed.api import Api, ApiError, path
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.integration.cluster.campaign_bed import control_plane
from tests.integration.descheduler.worlds import Made, Object, World, container

IDLE: Final = ("kwok", "kube-controller-manager", "metrics-server")
LISTED: Final[dict[str, type[Any]]] = {
    "namespaces": Namespace,
    "nodes": Node,
    "pods": Pod,
    "persistentvolumes": PersistentVolume,
    "persistentvolumeclaims": PersistentVolumeClaim,
    "storageclasses": StorageClass,
    "csinodes": CSINode,
}
CONNECTIONS: Final = 12
DECIDED_WITHIN_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What both said about one pod and one node."""

    world: str
    kind: str
    bound: bool
    said: str
    """The scheduler's own words."""
    fits: bool
    misfits: tuple[Misfit, ...]

    @property
    def agreed(self) -> bool:
        """Both the same, and both of our own answers too."""
        return self.bound == self.fits == (not self.misfits)


@contextlib.contextmanager
def scheduler_alone(own: Path, home: Path | None = None) -> Iterator[ControlPlane]:
    """A control plane in which nothing happens but scheduling: the one in `home`, or one of its own."""
    with control_plane(home, own) as bed:
        for name in IDLE:
            bed.stop(name)
        for body in RUNTIME_CLASSES:
            with contextlib.suppress(ApiError):
                bed.api().create("runtimeclasses", body)
        yield bed


RUNTIME_CLASSES: Final[tuple[Object, ...]] = (
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "heavy"},
        "handler": "heavy",
        "overhead": {"podFixed": {"cpu": "250m"}},
    },
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "placed"},
        "handler": "placed",
        "scheduling": {"nodeSelector": {"kubernetes.io/os": "plan9"}},
    },
)


def ask(kube: Api, worlds: Sequence[World], namespace: str) -> list[Answer]:
    """One round: build all worlds, ask about all pods, take the worlds away again."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        _build(kube, worlds, namespace, pool)
        _await_sight(kube, namespace)
        decoders = Decoders()
        fitter = Fitter(Picture(_state(kube, decoders)))
        pods = list(pool.map(lambda it: kube.create("pods", it.pod, namespace), worlds))
        ours = [_ours(fitter, _pod(decoders, pod), world.target) for pod, world in zip(pods, worlds, strict=True)]
        try:
            theirs = _decided(kube, worlds, namespace)
        finally:
            _clear(kube, worlds, namespace, pool)
    return [
        Answer(world.name, world.kind, bound, said, fits, misfits)
        for world, (fits, misfits), (bound, said) in zip(worlds, ours, theirs, strict=True)
    ]


# ---- building


def _build(kube: Api, worlds: Sequence[World], namespace: str, pool: ThreadPoolExecutor) -> None:
    made = [it for world in worlds for it in world.made]
    spaces = [it.body["metadata"] for it in made if it.resource == "namespaces"]
    list(pool.map(lambda it: _namespace(kube, it), [{"name": namespace}, *spaces]))
    list(pool.map(lambda it: _node(kube, it), [it for world in worlds for it in world.nodes]))
    for resource in ("storageclasses", "csinodes", "persistentvolumes", "persistentvolumeclaims", "pods"):
        list(pool.map(lambda it: _make(kube, it), [it for it in made if it.resource == resource]))


def _namespace(kube: Api, metadata: Object) -> None:
    kube.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    kube.create("serviceaccounts", account, metadata["name"])


def _node(kube: Api, body: Object) -> None:
    """Admission taints every new node as not ready, and nobody is there to take that away."""
    kube.create("nodes", body)
    kube.patch("nodes", body["metadata"]["name"], {"spec": {"taints": body["spec"]["taints"]}})


def _make(kube: Api, made: Made) -> None:
    name = made.body["metadata"]["name"]
    kube.create(made.resource, made.body, made.namespace)
    if made.status is not None:
        kube.patch(made.resource, name, {"status": made.status}, made.namespace, subresource="status")
    if made.deleted:
        kube.delete(made.resource, name, made.namespace)


def _await_sight(kube: Api, namespace: str) -> None:
    """Returns when the scheduler has seen what was made last: a pod that needs all of it finds its place."""
    node = World("sentinel", "", namespace, rng=None)  # type: ignore[arg-type]  # nothing is left to chance
    node.node(labels={"sentinel": namespace})
    _node(kube, {**node.nodes[0], "metadata": {**node.nodes[0]["metadata"], "name": f"{namespace}-sentinel"}})
    first: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "sentinel-0", "labels": {"sentinel": namespace}},
        "spec": {"nodeName": f"{namespace}-sentinel", "containers": [container()]},
    }
    kube.create("pods", first, namespace)
    near = {"topologyKey": "sentinel", "labelSelector": {"matchLabels": {"sentinel": namespace}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    second = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "sentinel-1"},
        "spec": {"containers": [container()], "affinity": affinity},
    }
    kube.create("pods", second, namespace)
    eventually(
        lambda: kube.get("pods", "sentinel-1", namespace),
        until=lambda pod: pod["spec"].get("nodeName"),
        timeout=60,
        what="the scheduler's view of the round",
    )


def _clear(kube: Api, worlds: Sequence[World], namespace: str, pool: ThreadPoolExecutor) -> None:
    """Nodes and pods only: what is left of storage has no effect without them."""
    spaces = [it.body["metadata"]["name"] for w in worlds for it in w.made if it.resource == "namespaces"]
    now = {"kind": "DeleteOptions", "gracePeriodSeconds": 0}
    list(pool.map(lambda it: kube.request("DELETE", path("pods", None, it), body=now), [namespace, *spaces]))
    kube.request("DELETE", path("nodes"), body=now)


# ---- asking us


def _state(kube: Api, decoders: Decoders) -> ClusterState:
    """As the product builds it, from what the API says."""
    state = ClusterState(Settings())
    for resource, kind in LISTED.items():
        decoder = decoders.of(kind)
        for item in kube.list(resource):
            state.apply(None, decoder.decode(json.dumps(item).encode()))
    return state


def _pod(decoders: Decoders, pod: Object) -> Pod:
    return decoders.of(Pod).decode(json.dumps(pod).encode())


def _ours(fitter: Fitter, pod: Pod, target: str) -> tuple[bool, tuple[Misfit, ...]]:
    return fitter.fits(pod, target), fitter.misfits(pod, target)


# ---- asking the scheduler


def _decided(kube: Api, worlds: Sequence[World], namespace: str) -> list[tuple[bool, str]]:
    def look() -> list[tuple[bool, str] | None]:
        pods = {it["metadata"]["name"]: it for it in kube.list("pods", namespace)}
        return [_verdict(pods[world.pod["metadata"]["name"]], world.target) for world in worlds]

    found = eventually(
        look,
        until=lambda verdicts: all(it is not None for it in verdicts),
        timeout=DECIDED_WITHIN_SECONDS,
        interval=0.5,
        what="a decision about every pod",
    )
    return [it for it in found if it is not None]


def _verdict(pod: Object, target: str) -> tuple[bool, str] | None:
    """A pod whose volumes wait to be provisioned stays nominated: the scheduler has chosen, others have to act."""
    node = pod["spec"].get("nodeName") or pod["status"].get("nominatedNodeName")
    if node:
        if node != target:
            raise AssertionError(f"{pod['metadata']['name']} went to {node}, which it must not")
        return True, "bound"
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return False, condition.get("message", condition["reason"])
    return None

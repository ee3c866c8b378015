"""A world: a pod, the node it is held to, and everything around them that one question of fit is about.

Worlds live side by side in one cluster. Nodes, labels, topology keys and classes carry the world's name, so that none
can reach into another.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Object = dict[str, Any]

GPU = "example.com/gpu"
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "20Gi", GPU: "4"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Made(NamedTuple):
    """An object of a world, and what has to be done with it once it is there."""

    resource: str
    body: Object
    namespace: str | None = None
    status: Object | None = None
    """To be laid over its status, which creating does not take."""
    deleted: bool = False
    """Asked to go, and held by its grace period or a finalizer."""


@dataclass(slots=True)
class World:
    """Built up by one maker of worlds. `rng` decides everything that is left open."""

    name: str
    kind: str
    namespace: str
    rng: random.Random
    nodes: list[Object] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    pod: Object = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The node in question."""
        return f"{self.name}-target"

    def key(self, word: str) -> str:
        """A label key that no other world has."""
        return f"{self.name}.test/{word}"

    def value(self, word: str) -> str:
        """A label value that no other world has."""
        return f"{self.name}-{word}"

    def chance(self, share: float = 0.5) -> bool:
        """Toss a coin."""
        return self.rng.random() < share

    # ---- building

    def node(
        self,
        word: str = "target",
        *,
        labels: Mapping[str, str] | None = None,
        room: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        unschedulable: bool = False,
    ) -> str:
        """A node without a kubelet; its status is what it says."""
        name = self.value(word)
        offered = {**ROOM, **(room or {})}
        self.nodes.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
                "spec": {"taints": [dict(it) for it in taints], "unschedulable": unschedulable},
                "status": {
                    "capacity": offered,
                    "allocatable": offered,
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
        return name

    def neighbour(
        self,
        word: str,
        on: str,
        *,
        labels: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        status: Object | None = None,
        deleted: bool = False,
    ) -> None:
        """A pod that is on a node already; nobody asked the scheduler about it."""
        body = _pod(self.value(word), labels, {"nodeName": on, **(spec or {})})
        self.made.append(Made("pods", body, namespace or self.namespace, status, deleted))

    def incoming(
        self, *, labels: Mapping[str, str] | None = None, spec: Mapping[str, Any] | None = None, pinned: bool = True
    ) -> None:
        """The pod in question, held to the target by the field that spread constraints and others leave alone."""
        self.pod = _pod(self.value("pod"), labels, {**(spec or {})})
        if pinned:
            pin(self.pod["spec"], self.target)

    def add(self, resource: str, body: Object, *, namespaced: bool = False, **more: Any) -> None:
        """Any other object."""
        self.made.append(Made(resource, body, self.namespace if namespaced else None, **more))


def _pod(name: str, labels: Mapping[str, str] | None, spec: Mapping[str, Any]) -> Object:
    complete: Object = {
        "automountServiceAccountToken": False,
        "containers": [container()],
        "terminationGracePeriodSeconds": 3600,
        **spec,
    }
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": complete}


def container(name: str = "main", *, always: bool = False, ports: Sequence[Object] = (), **requests: str) -> Object:
    """A container; `gpu` and `ephemeral_storage` stand for the names the API has for them."""
    named = {{"gpu": GPU, "ephemeral_storage": "ephemeral-storage"}.get(key, key): it for key, it in requests.items()}
    limits = {GPU: named[GPU]} if GPU in named else {}
    made: Object = {"name": name, "image": "none", "resources": {"requests": named, "limits": limits}}
    if ports:
        made["ports"] = list(ports)
    if always:
        made["restartPolicy"] = "Always"
    return made


def pin(spec: Object, node: str) -> None:
    """Add the name to every term: terms are alternatives, what is in one is joined."""
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms = affinity.setdefault(REQUIRED, {"nodeSelectorTerms": [{}]})["nodeSelectorTerms"]
    for term in terms:
        term.setdefault("matchFields", []).append({"key": "metadata.name", "operator": "In", "values": [node]})

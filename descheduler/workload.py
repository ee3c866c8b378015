"""Who a pod belongs to: its direct owner, and the workload at the top that people know by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cluster.objects import DaemonSet, Deployment, Job, OwnerReference, ReplicaSet, StatefulSet

Controller = Deployment | ReplicaSet | StatefulSet | DaemonSet | Job

SCALED: Final = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds that keep a number of pods alive and so replace one that is evicted."""

WATCHED: Final[Mapping[str, str]] = {
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "Job": "batch",
}
"""Kinds whose objects are seen, with their API group: other projects have kinds of the same names."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The controller at the top of the chain of owners."""

    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str = ""
    object: Controller | None = None
    """None for kinds we do not watch, or not seen yet."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and UID: of one that is not known, the UID is only what somebody wrote on a pod."""
        return self.namespace, self.uid

    @property
    def replicas(self) -> int | None:
        """How many pods are wanted; None where the kind does not say or is not known."""
        return self.object.spec.replicas if isinstance(self.object, Deployment | ReplicaSet | StatefulSet) else None

    @property
    def text(self) -> str:
        """For people: `Deployment shop/web`."""
        return f"{self.kind} {self.namespace}/{self.name}"


def is_watched(kind: str, api_version: str) -> bool:
    """Whether one that exists is seen."""
    return api_version.partition("/")[0] == WATCHED.get(kind)


def known(kind: str, api_version: str, item: Controller) -> Workload:
    """A workload that is watched."""
    meta = item.metadata
    return Workload(kind, meta.namespace, meta.name, meta.uid, api_version, item, meta.labels, meta.annotations)


def unknown(owner: OwnerReference, namespace: str) -> Workload:
    """A workload of which there is only the reference of its pods."""
    return Workload(owner.kind, namespace, owner.name, owner.uid, owner.api_version)

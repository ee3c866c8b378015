"""Every typed object and its decoders under one name, and the small objects that need no module of their own."""

from __future__ import annotations

from datetime import datetime

from cluster.decode import Decoder, Decoders, Page
from cluster.meta import (
    Condition,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
    Part,
    PartialObjectMetadata,
    micro_time,
)
from cluster.migration import PodMigration
from cluster.node import Node, NodeMetrics, PodMetrics, Taint
from cluster.pod import Container, Pod, PodSpec, PodStatus, Resources, Volume
from cluster.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from cluster.workload import (
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    Job,
    PodDisruptionBudget,
    ReplicaSet,
    Scale,
    StatefulSet,
)


class NamespaceStatus(Part, frozen=True):
    """Active or Terminating."""

    phase: str = ""


class Namespace(Part, frozen=True):
    """A namespace."""

    metadata: ObjectMeta = ObjectMeta()
    status: NamespaceStatus = NamespaceStatus()


class PriorityClass(Part, frozen=True):
    """A class of priority."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class LeaseSpec(Part, frozen=True):
    """Who holds the lease, since when, for how long. Written times go through `micro_time`."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Part, frozen=True):
    """A lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


__all__ = [
    "CSINode",
    "Condition",
    "Container",
    "DaemonSet",
    "Decoder",
    "Decoders",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Job",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Lease",
    "LeaseSpec",
    "Namespace",
    "Node",
    "NodeMetrics",
    "ObjectMeta",
    "OwnerReference",
    "Page",
    "Part",
    "PartialObjectMetadata",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodMetrics",
    "PodMigration",
    "PodSpec",
    "PodStatus",
    "PriorityClass",
    "ReplicaSet",
    "Resources",
    "Scale",
    "StatefulSet",
    "StorageClass",
    "Taint",
    "Volume",
    "micro_time",
]

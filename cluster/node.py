"""A node as scheduler and descheduler see it, and what the metrics API says about nodes and pods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import field

from cluster.meta import Condition, ObjectMeta, Part


class Taint(Part, frozen=True):
    """What keeps pods off the node."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Part, frozen=True):
    """What is wanted of the node."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = field(default="", name="providerID")


class NodeStatus(Part, frozen=True):
    """What the node has; images are left out, they are half of the object."""

    allocatable: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(Part, frozen=True):
    """One node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodeMetrics(Part, frozen=True):
    """Measured usage of a node over a window that ends at `timestamp`."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: datetime | None = None
    window: str = ""
    usage: Mapping[str, str] = {}


class ContainerMetrics(Part, frozen=True):
    """Measured usage of a container."""

    name: str = ""
    usage: Mapping[str, str] = {}


class PodMetrics(Part, frozen=True):
    """Measured usage of a pod's containers."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: datetime | None = None
    window: str = ""
    containers: tuple[ContainerMetrics, ...] = ()

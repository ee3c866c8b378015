"""The shallow form of a pod: unique parts typed, large shared parts left as raw bytes.

Field names and defaults are those of `cluster.pod`, because the shared part of a form, encoded again, is decoded as a
PodSpec or PodStatus; a test holds the two together.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Raw, field

from cluster.meta import Present
from cluster.pod import ContainerState, Disk


class Wire(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """Base of the shallow form: mutable, so that unique parts can be taken out before it becomes a key."""


class ClaimWire(Wire):
    """A claim; its name is unique in a StatefulSet."""

    claim_name: str = ""


class ContainerWire(Wire):
    """A container."""

    name: str = ""
    resources: Raw = Raw()
    ports: Raw = Raw()
    restart_policy: str = ""


class VolumeWire(Wire):
    """A volume; the names of token volumes are random."""

    name: str = ""
    persistent_volume_claim: ClaimWire | None = None
    ephemeral: Present | None = None
    host_path: Present | None = None
    empty_dir: Raw = Raw()
    csi: Present | None = None
    nfs: Present | None = None
    iscsi: Disk | None = None
    rbd: Disk | None = None
    gce_persistent_disk: Disk | None = None
    aws_elastic_block_store: Disk | None = None


class SpecWire(Wire):
    """A spec: first what differs between siblings, then what they share."""

    node_name: str = ""
    hostname: str = ""
    containers: list[ContainerWire] = []
    init_containers: list[ContainerWire] = []
    overhead: Raw = Raw()
    resources: Raw = Raw()
    node_selector: Raw = Raw()
    affinity: Raw = Raw()
    tolerations: Raw = Raw()
    topology_spread_constraints: Raw = Raw()
    volumes: list[VolumeWire] = []
    resource_claims: Raw = Raw()
    scheduling_gates: Raw = Raw()
    readiness_gates: Raw = Raw()
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    termination_grace_period_seconds: int = 30
    runtime_class_name: str = ""
    restart_policy: str = "Always"
    host_network: bool = False
    subdomain: str = ""


class ConditionWire(Wire):
    """A condition with the one time that is read."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None


class ContainerStatusWire(Wire):
    """A container status."""

    name: str = ""
    ready: bool = False
    started: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    allocated_resources: Raw = Raw()
    resources: Raw = Raw()


class StatusWire(Wire):
    """A status; the times differ between siblings."""

    phase: str = ""
    reason: str = ""
    qos_class: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: list[ConditionWire] = []
    container_statuses: list[ContainerStatusWire] = []
    init_container_statuses: list[ContainerStatusWire] = []
    resources: Raw = Raw()
    allocated_resources: Raw = Raw()


class MetaWire(Wire):
    """Metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Raw = Raw()
    annotations: Raw = Raw()
    owner_references: list[Raw] = []
    finalizers: tuple[str, ...] = ()


class PodWire(Wire):
    """A pod as it comes, one level deep."""

    metadata: MetaWire = field(default_factory=MetaWire)
    spec: SpecWire = field(default_factory=SpecWire)
    status: StatusWire = field(default_factory=StatusWire)

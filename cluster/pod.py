"""A pod, cut in two: what it shares with its siblings, and what is its own.

`spec` and `status` hold what pods of one template have in common, so that after interning thousands of pods point to
one object. What differs from sibling to sibling is a field of the pod itself: the node, the host name and volume
claims a StatefulSet numbers, and the two times of the status that anybody asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import field

from cluster.affinity import Affinity, Toleration, TopologySpreadConstraint
from cluster.meta import ObjectMeta, Part, Present


class Resources(Part, frozen=True):
    """Requests and limits as the quantities' own text; `policy.quantities` turns them into numbers."""

    requests: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}


class ContainerPort(Part, frozen=True):
    """A port; only those with a host port matter to the scheduler."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Part, frozen=True):
    """A container or init container; an init container with restartPolicy Always is a sidecar."""

    name: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class EmptyDir(Part, frozen=True):
    """Scratch space that is lost with the pod."""

    medium: str = ""
    size_limit: str = ""


class Disk(Part, frozen=True):
    """A disk named in the pod itself, in the words of its four kinds. What is equal may not be mounted twice on a
    node, unless all mount it to read.
    """

    pd_name: str = ""
    volume_id: str = field(default="", name="volumeID")
    iqn: str = ""
    pool: str = ""
    image: str = ""
    monitors: tuple[str, ...] = ()
    read_only: bool = False


class Volume(Part, frozen=True):
    """What kind of volume, at most one of these. The name is kept where somebody refers to it: the API derives a
    claim's name from that of a generic ephemeral volume, and annotations list local ones (emptyDir, hostPath).

    Claim names are in `Pod.claims`. Of kinds without meaning for a move (secret, configMap, projected) nothing is
    kept: all fields are None.
    """

    name: str = ""
    persistent_volume_claim: Present | None = None
    ephemeral: Present | None = None
    host_path: Present | None = None
    empty_dir: EmptyDir | None = None
    csi: Present | None = None
    nfs: Present | None = None
    iscsi: Disk | None = None
    rbd: Disk | None = None
    gce_persistent_disk: Disk | None = None
    aws_elastic_block_store: Disk | None = field(default=None, name="awsElasticBlockStore")


class ResourceClaim(Part, frozen=True):
    """A device claim of dynamic resource allocation."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class SchedulingGate(Part, frozen=True):
    """While any is present the scheduler leaves the pod alone."""

    name: str = ""


class ReadinessGate(Part, frozen=True):
    """A condition that readiness waits for."""

    condition_type: str = ""


class PodSpec(Part, frozen=True, gc=True, weakref=True):
    """Everything of a spec that a scheduler or a descheduler reads and that siblings share."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Mapping[str, str] = {}
    resources: Resources = Resources()
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    termination_grace_period_seconds: int = 30
    runtime_class_name: str = ""
    restart_policy: str = "Always"
    host_network: bool = False
    subdomain: str = ""


class PodCondition(Part, frozen=True):
    """A condition without its times; those of Ready and of the start are fields of the pod."""

    type: str = ""
    status: str = ""
    reason: str = ""


class Waiting(Part, frozen=True):
    """Why a container does not run yet, such as CrashLoopBackOff."""

    reason: str = ""


class Terminated(Part, frozen=True):
    """How a container ended."""

    reason: str = ""
    exit_code: int = 0


class ContainerState(Part, frozen=True):
    """Exactly one of these, or none before the kubelet has spoken."""

    waiting: Waiting | None = None
    running: Present | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True):
    """What the kubelet says about a container; resources are those it really has after an in-place resize."""

    name: str = ""
    ready: bool = False
    started: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    allocated_resources: Mapping[str, str] = {}
    resources: Resources | None = None


class PodStatus(Part, frozen=True, gc=True, weakref=True):
    """What siblings in the same condition share."""

    phase: str = ""
    reason: str = ""
    qos_class: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: Resources | None = None
    """What the pod as a whole has, where its spec asks for the pod as a whole."""
    allocated_resources: Mapping[str, str] = {}

    def condition(self, type: str) -> PodCondition | None:  # noqa: A002 - the API's word
        """The condition of this type."""
        return next((found for found in self.conditions if found.type == type), None)


class Pod(Part, frozen=True):
    """One pod. Made by `intern.Interner`, because its fields are not laid out as on the wire."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    node_name: str = ""
    hostname: str = ""
    claims: tuple[str, ...] = ()
    """Names of the PersistentVolumeClaims it mounts, those of generic ephemeral volumes included."""
    start_time: datetime | None = None
    ready_since: datetime | None = None
    """When Ready last changed to True; None while the pod is not Ready."""

    @property
    def ready(self) -> bool:
        """Whether the Ready condition is True."""
        return self.ready_since is not None or self._says_ready()

    @property
    def terminal(self) -> bool:
        """Succeeded or Failed: it holds no resources any more."""
        return self.status.phase in {"Succeeded", "Failed"}

    def _says_ready(self) -> bool:
        found = self.status.condition("Ready")
        return found is not None and found.status == "True"

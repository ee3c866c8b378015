"""Claims, volumes, classes and per-node limits: what decides where a pod with storage can go."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from cluster.affinity import NodeSelector
from cluster.meta import LabelSelector, ObjectMeta, Part
from cluster.pod import Resources


class ClaimSpec(Part, frozen=True):
    """What is wanted. A None class means the default class, an empty one none at all."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    selector: LabelSelector | None = None
    resources: Resources = Resources()


class ClaimStatus(Part, frozen=True):
    """Pending, Bound or Lost."""

    phase: str = ""


class PersistentVolumeClaim(Part, frozen=True):
    """A claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeNodeAffinity(Part, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class ObjectReference(Part, frozen=True):
    """An object by name and UID."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(Part, frozen=True):
    """A volume of a CSI driver, counted against the driver's limit on each node."""

    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(Part, frozen=True):
    """What the volume is and where it can be used."""

    access_modes: tuple[str, ...] = ()
    capacity: Mapping[str, str] = {}
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    csi: CsiSource | None = None


class PersistentVolume(Part, frozen=True):
    """A volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeSpec = VolumeSpec()
    status: ClaimStatus = ClaimStatus()


class TopologyLabelRequirement(Part, frozen=True):
    """Values a node label may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Part, frozen=True):
    """Labels that must all match."""

    match_label_expressions: tuple[TopologyLabelRequirement, ...] = ()


class StorageClass(Part, frozen=True):
    """How volumes of a class come into being; WaitForFirstConsumer lets the pod's node decide."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class DriverAllocatable(Part, frozen=True):
    """How many volumes a driver can attach on the node; None is no limit."""

    count: int | None = None


class CsiDriver(Part, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: DriverAllocatable = DriverAllocatable()


class CsiNodeSpec(Part, frozen=True):
    """The drivers of a node."""

    drivers: tuple[CsiDriver, ...] = ()


class CSINode(Part, frozen=True):
    """What CSI drivers say about a node; it has the node's name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CsiNodeSpec = CsiNodeSpec()

"""Claims and volumes: where they can be reached, how many a node takes, who uses them.   Pure.

Not known here and so not checked: how much a driver can still provision (CSIStorageCapacity), and volumes of in-tree
plugins behind a CSI driver, which count against its limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cluster.objects import Node, PersistentVolume, PersistentVolumeClaim, Pod
from cluster.pod import Disk
from cluster.storage import CsiSource
from descheduler.fit import node_rules, provisioning
from descheduler.fit.misfit import FitCode, Misfit
from descheduler.fit.provisioning import Unbound
from descheduler.picture import Picture
from descheduler.state import ClusterState

BOUND: Final = "pv.kubernetes.io/bind-completed"
ZONE_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of volumes that bind them to a place, each with the label of today."""
ZONE_SEPARATOR: Final = "__"
DISKS: Final = ("gce_persistent_disk", "aws_elastic_block_store", "iscsi", "rbd")
ONE_POD: Final = "ReadWriteOncePod"


@dataclass(slots=True)
class Needs:
    """What the claims of one pod ask of a node, looked up once."""

    broken: list[Misfit] = field(default_factory=list)
    """What stands against every node."""
    volumes: list[PersistentVolume] = field(default_factory=list)
    unbound: list[Unbound] = field(default_factory=list)
    """To be bound or provisioned where the pod goes."""
    zones: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    exclusive: list[str] = field(default_factory=list)
    """Claims that only one pod may use."""
    attached: dict[tuple[str, str], str] = field(default_factory=dict)
    """Volumes that take up an attachment, with their driver."""
    disks: tuple[tuple[str, Disk], ...] = ()
    users: tuple[int, tuple[Misfit, ...]] = (-1, ())
    """Who uses the exclusive claims, after so many changes of the picture: the same wherever the pod goes."""


def needs(state: ClusterState, pod: Pod) -> Needs | None:
    """None for a pod without storage that matters."""
    disks = _disks(pod)
    if not pod.claims and not disks:
        return None
    found = Needs(disks=disks)
    for name, ephemeral in _claims(pod):
        claim = state.claims.get((pod.metadata.namespace, name))
        broken = _broken(name, claim)
        if claim is None or broken:
            found.broken.append(Misfit(FitCode.VOLUME_CLAIM, broken))
            continue
        # The replacement of a running pod gets a claim of its own, made like the one that is there.
        _claim(state, claim, found, fresh=ephemeral and bool(pod.node_name), ephemeral=ephemeral)
    return found


def misfits(picture: Picture, pod: Pod, needed: Needs, node: Node) -> Iterator[Misfit]:
    """Every reason on this side."""
    yield from needed.broken
    yield from _placed(needed, node)
    yield from _zoned(needed, node.metadata.labels)
    yield from _limited(picture, needed, node.metadata.name)
    yield from _used(picture, pod, needed, node.metadata.name)


# ---- looking up


def _claims(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Names of the claims, and whether they come and go with the pod."""
    backed = [it for it in pod.spec.volumes if it.persistent_volume_claim is not None or it.ephemeral is not None]
    for name, volume in zip(pod.claims, backed, strict=False):
        yield name, volume.ephemeral is not None


def _broken(name: str, claim: PersistentVolumeClaim | None) -> str:
    if claim is None:
        return f"claim {name} does not exist"
    if claim.status.phase == "Lost":
        return f"claim {name} has lost its volume"
    if claim.metadata.deletion_timestamp is not None:
        return f"claim {name} is being deleted"
    return ""


def _claim(state: ClusterState, claim: PersistentVolumeClaim, found: Needs, *, fresh: bool, ephemeral: bool) -> None:
    if ONE_POD in claim.spec.access_modes and not ephemeral:
        found.exclusive.append(claim.metadata.name)
    if claim.spec.volume_name and not fresh:
        _bound(state, claim, found, zoned=not ephemeral)
    else:
        sent = None if fresh else claim.metadata.annotations.get(provisioning.SELECTED_NODE)
        _unbound(state, claim, found, sent=sent)


def _bound(state: ClusterState, claim: PersistentVolumeClaim, found: Needs, *, zoned: bool) -> None:
    name = claim.metadata.name
    volume = state.volumes.get(claim.spec.volume_name)
    if BOUND not in claim.metadata.annotations:
        found.broken.append(Misfit(FitCode.VOLUME_CLAIM, f"claim {name} is not bound yet"))
    elif volume is None:
        found.broken.append(Misfit(FitCode.VOLUME_CLAIM, f"volume {claim.spec.volume_name} does not exist"))
    else:
        found.volumes.append(volume)
        if zoned:
            found.zones.extend(_zones(volume))
    _attach(state, claim, found.attached)


def _unbound(state: ClusterState, claim: PersistentVolumeClaim, found: Needs, *, sent: str | None) -> None:
    kind = state.storage_classes.get(class_name(claim))
    if kind is None or kind.volume_binding_mode != "WaitForFirstConsumer":
        found.broken.append(Misfit(FitCode.VOLUME_CLAIM, f"claim {claim.metadata.name} is not bound yet"))
        return
    found.unbound.append(provisioning.unbound(state, claim, kind, sent))
    _attach(state, claim, found.attached)


def class_name(claim: PersistentVolumeClaim) -> str:
    """Of the claim's StorageClass; an annotation from old days goes before the field."""
    old = claim.metadata.annotations.get("volume.beta.kubernetes.io/storage-class")
    return claim.spec.storage_class_name or "" if old is None else old


def _attach(state: ClusterState, claim: PersistentVolumeClaim, attached: dict[tuple[str, str], str]) -> None:
    """A volume that is not there yet counts by the name of its claim."""
    volume = state.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        source: CsiSource | None = volume.spec.csi
        if source is not None and source.driver and source.volume_handle:
            attached[source.driver, source.volume_handle] = source.driver
        return
    kind = state.storage_classes.get(class_name(claim))
    if kind is not None and kind.provisioner:
        attached[kind.provisioner, "/".join(claim.metadata.key)] = kind.provisioner


def _zones(volume: PersistentVolume) -> Iterator[tuple[str, frozenset[str]]]:
    for key, value in volume.metadata.labels.items():
        if key in ZONE_LABELS:
            yield key, frozenset(value.split(ZONE_SEPARATOR))


def _disks(pod: Pod) -> tuple[tuple[str, Disk], ...]:
    """Disks named in the pod itself, each with its kind."""
    return tuple(
        (kind, disk) for volume in pod.spec.volumes for kind in DISKS if (disk := getattr(volume, kind)) is not None
    )


# ---- asking


def _placed(needed: Needs, node: Node) -> Iterator[Misfit]:
    for volume in needed.volumes:
        affinity = volume.spec.node_affinity
        required = None if affinity is None else affinity.required
        if required is not None and not node_rules.matches(required, node.metadata.labels, ""):
            yield Misfit(FitCode.VOLUME_AFFINITY, f"volume {volume.metadata.name} cannot be reached from the node")
    if needed.unbound:
        yield from provisioning.misfits(needed.unbound, node)


def _zoned(needed: Needs, labels: Mapping[str, str]) -> Iterator[Misfit]:
    """A node without any zone or region label is in a cluster without zones."""
    if not needed.zones or not any(key in labels for key in ZONE_LABELS):
        return
    for key, values in needed.zones:
        value = labels.get(key, labels.get(ZONE_LABELS[key]))
        if value not in values:
            yield Misfit(FitCode.VOLUME_ZONE, f"a volume is in {key}={','.join(sorted(values))}, the node is not")


def _limited(picture: Picture, needed: Needs, name: str) -> Iterator[Misfit]:
    known = picture.state.csi_nodes.get(name) if needed.attached else None
    if known is None:
        return
    limits = {it.name: it.allocatable.count for it in known.spec.drivers if it.allocatable.count is not None}
    if not limits.keys() & set(needed.attached.values()):
        return
    there = _attached(picture, name)
    for driver, limit in limits.items():
        more = sum(1 for key, it in needed.attached.items() if it == driver and key not in there)
        taken = sum(1 for it in there.values() if it == driver)
        if more and taken + more > limit:
            yield Misfit(FitCode.VOLUME_LIMIT, f"{driver} can attach {limit} volumes, {taken} are attached")


def _attached(picture: Picture, name: str) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for pod in picture.pods_on(name):
        for claimed in pod.claims:
            claim = picture.state.claims.get((pod.metadata.namespace, claimed))
            if claim is not None:
                _attach(picture.state, claim, found)
    return found


def _used(picture: Picture, pod: Pod, needed: Needs, name: str) -> Iterator[Misfit]:
    if needed.exclusive:
        if needed.users[0] != picture.bookings:
            needed.users = picture.bookings, tuple(_users(picture, pod.metadata.namespace, set(needed.exclusive)))
        yield from needed.users[1]
    if needed.disks:
        for other in picture.pods_on(name):
            if any(_clash(one, two) for one in needed.disks for two in _disks(other)):
                yield Misfit(FitCode.VOLUME_IN_USE, f"pod {other.metadata.name} has the same disk")


def _users(picture: Picture, namespace: str, wanted: set[str]) -> Iterator[Misfit]:
    for other, _ in picture.placed(namespace):
        if other.claims and wanted.intersection(other.claims):
            yield Misfit(FitCode.VOLUME_IN_USE, f"pod {other.metadata.name} has a claim that only one pod may use")


def _clash(one: tuple[str, Disk], two: tuple[str, Disk]) -> bool:
    """The same disk, by the parts that name it, and not both only read it. Elastic block stores take one pod only."""
    kind, disk = one
    if kind != two[0] or (disk.read_only and two[1].read_only and kind != "aws_elastic_block_store"):
        return False
    other = two[1]
    if kind == "rbd":
        named = (disk.pool, disk.image) == (other.pool, other.image)
        return named and not set(disk.monitors).isdisjoint(other.monitors)
    return (disk.pd_name, disk.volume_id, disk.iqn) == (other.pd_name, other.volume_id, other.iqn)

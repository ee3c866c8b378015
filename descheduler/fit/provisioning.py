"""Claims that are bound where their first pod goes: a volume that is there, or one to be provisioned.   Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from cluster.objects import Node, PersistentVolume, PersistentVolumeClaim, StorageClass
from descheduler import selectors
from descheduler.fit import node_rules
from descheduler.fit.misfit import FitCode, Misfit
from descheduler.state import ClusterState
from policy import quantities

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node that the scheduler has chosen for it."""
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class Unbound(NamedTuple):
    """A claim without a volume."""

    claim: PersistentVolumeClaim
    kind: StorageClass
    sent: str | None
    """The node that the scheduler has chosen for it already."""
    volumes: tuple[PersistentVolume, ...] = ()
    """Those that could be bound to it on some node, the smallest first."""


def unbound(state: ClusterState, claim: PersistentVolumeClaim, kind: StorageClass, sent: str | None) -> Unbound:
    """With all that does not depend on the node: there are thousands of either."""
    suiting = () if sent else (it for it in state.volumes.values() if _suits(it, claim, kind))
    return Unbound(claim, kind, sent, tuple(sorted(suiting, key=lambda it: _size(it.spec.capacity))))


def misfits(claims: Sequence[Unbound], node: Node) -> Iterator[Misfit]:
    """Claims that can neither get a volume that is there nor a new one. The smallest chooses first."""
    chosen: set[str] = set()
    for claim, kind, sent, volumes in sorted(claims, key=lambda it: _size(it.claim.spec.resources.requests)):
        if sent is not None and sent != node.metadata.name:
            yield Misfit(FitCode.VOLUME_AFFINITY, f"claim {claim.metadata.name} was sent to node {sent}")
            continue
        volume = _volume(volumes, node, chosen)
        if volume is not None:
            chosen.add(volume.metadata.name)
        elif not _provisioned(kind, node):
            text = f"no volume of class {kind.metadata.name} for claim {claim.metadata.name} can be had on the node"
            yield Misfit(FitCode.VOLUME_AFFINITY, text)


def _provisioned(kind: StorageClass, node: Node) -> bool:
    """Whether a volume can be made for the node. Terms are alternatives, and an empty one allows nothing."""
    if kind.provisioner in {"", NO_PROVISIONER}:
        return False
    if not kind.allowed_topologies:
        return True
    labels = node.metadata.labels
    return any(
        term.match_label_expressions
        and all(labels.get(rule.key) in rule.values for rule in term.match_label_expressions)
        for term in kind.allowed_topologies
    )


def _volume(volumes: Iterable[PersistentVolume], node: Node, chosen: set[str]) -> PersistentVolume | None:
    """The smallest volume that will do. Volumes made for this very claim are bound by others, and soon."""
    return next((it for it in volumes if it.metadata.name not in chosen and _is_reached(it, node)), None)


def _is_reached(volume: PersistentVolume, node: Node) -> bool:
    affinity = None if volume.spec.node_affinity is None else volume.spec.node_affinity.required
    return affinity is None or node_rules.matches(affinity, node.metadata.labels, "")


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim, kind: StorageClass) -> bool:
    spec = volume.spec
    return (
        spec.storage_class_name == kind.metadata.name
        and spec.claim_ref is None
        and volume.status.phase == "Available"
        and volume.metadata.deletion_timestamp is None
        and spec.volume_mode == claim.spec.volume_mode
        and set(claim.spec.access_modes) <= set(spec.access_modes)
        and _size(spec.capacity) >= _size(claim.spec.resources.requests)
        and (claim.spec.selector is None or selectors.matches(claim.spec.selector, volume.metadata.labels))
    )


def _size(amounts: Mapping[str, str]) -> int:
    return quantities.value(amounts.get("storage", "0"))

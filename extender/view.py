"""What the extender knows of the cluster while it answers: one immutable value, swapped whole by the watches.

Reads only. `parts` makes it from objects; nothing in here asks the API server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cluster.node import Node
from policy import capacity, signals
from policy import keys as policy_keys
from policy.capacity import CapacityType
from policy.keys import Keys
from policy.settings import Settings
from policy.settings_extender import NodeMetric
from policy.signal_table import Kind
from policy.signals import NodeSigns

# What a node with several signs counts as: the first of these that it carries.
_WORST_FIRST: Final = (Kind.INTERRUPTION, Kind.MAINTENANCE, Kind.REBALANCE, Kind.AVOID)
_UNKNOWN_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What matters of one node, whatever the pod. The defaults stand for a node that is too new to be known."""

    capacity: CapacityType = CapacityType.UNKNOWN
    sign: Kind | None = None
    """The worst thing that is announced for it."""
    metric: float = _UNKNOWN_SHARE
    """Share of the score that the number in its annotation earns."""
    version: str = ""
    """The resourceVersion that all of this was read from."""


NEW: Final = NodeFacts()


@dataclass(frozen=True, slots=True)
class Metadata:
    """Labels and annotations of a namespace."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An open move that has no replacement yet, and has a target."""

    key: tuple[str, str]
    """Namespace and name of the PodMigration."""
    id: str
    """As it stands in the label of pods."""
    owner_kind: str
    """Kind of the pod's controller; empty for a pod that has none and is copied by the migrator."""
    pod_name: str
    pod_uid: str
    target: str
    started: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The cluster as of now."""

    settings: Settings
    keys: Keys
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    """By name."""
    loads: Mapping[str, float] = field(default_factory=dict)
    """Largest share that requests take of a node's cpu, memory or pods, by name."""
    namespaces: Mapping[str, Metadata] = field(default_factory=dict)
    """By name."""
    moves: Mapping[tuple[str, str], tuple[Move, ...]] = field(default_factory=dict)
    """By namespace and UID of the controller, oldest first."""


def empty(settings: Settings) -> View:
    """A view of nothing yet: every node passes, and all score alike."""
    return View(settings=settings, keys=policy_keys.under(settings.label_prefix))


def facts(node: Node, settings: Settings, keys: Keys, now: datetime) -> NodeFacts:
    """What matters of a node."""
    return NodeFacts(
        capacity.capacity_type(node.metadata.labels, settings.capacity.all_labels()),
        _sign(node, settings, keys, now),
        share(node.metadata.annotations.get(settings.extender.metric.annotation), settings.extender.metric),
        node.metadata.resource_version,
    )


def share(text: str | None, metric: NodeMetric) -> float:
    """How good a number is: 1 at the best and beyond, 0 at the worst and beyond; half for none."""
    try:
        value = float(text or "")
    except ValueError:
        return _UNKNOWN_SHARE
    found = (value - metric.worst) / (metric.best - metric.worst)
    return min(1.0, max(0.0, found)) if found == found else _UNKNOWN_SHARE  # noqa: PLR0124 - not a number


def _sign(node: Node, settings: Settings, keys: Keys, now: datetime) -> Kind | None:
    if node.metadata.deletion_timestamp is not None:
        return Kind.INTERRUPTION
    signs = NodeSigns(
        labels=node.metadata.labels,
        annotations=node.metadata.annotations,
        taints=node.spec.taints,
        conditions=node.status.conditions,
        unschedulable=node.spec.unschedulable,
    )
    found = {it.kind for it in signals.read(signs, keys=keys, now=now, table=settings.signals.all_rows())}
    return next((kind for kind in _WORST_FIRST if kind in found), None)

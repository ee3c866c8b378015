"""What the webhook knows of the cluster while it answers: one immutable value, swapped whole by the watches.

Reads only; `counts` alone is asked and not held. `derive` makes its parts from objects; nothing in here asks the API
server.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from policy import keys as policy_keys
from policy import placement
from policy.capacity import CapacityLabel
from policy.keys import Keys
from policy.settings import Settings
from webhook.counts import NOBODY, Counts
from webhook.pod import OwnerReference

OWN_NAMESPACE: Final = "spotshift-system"
WATCHED_KINDS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "Job", "CronJob")
"""Kinds of workloads whose metadata is watched; an owner of another kind is not a miss of the view."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Labels and annotations, as far as they are ours."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def silent(self) -> bool:
        """Whether nothing of ours is said."""
        return not self.labels and not self.annotations


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload object: who it is, who made it, and our keys on it."""

    uid: str
    kind: str
    namespace: str
    name: str
    owner: OwnerReference | None = None
    metadata: Metadata = field(default_factory=Metadata)


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass."""

    name: str
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityInUse:
    """A label by which nodes of this cluster tell their capacity, and the rules that tell the two sides apart."""

    key: str
    is_spot: tuple[Mapping[str, Any], ...]
    """Node selector rules that hold on its spot nodes."""
    not_spot: tuple[Mapping[str, Any], ...]
    """Rules that hold on all others, also on nodes without the label: not every platform labels on-demand."""
    spot_nodes: int = 0
    on_demand_nodes: int = 0


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node that exists."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """An open move that has no replacement yet. Its values are fit for labels and annotations."""

    id: str
    owner_kind: str
    """Kind of the pod's controller; empty for a pod that has none and is copied by the migrator."""
    pod_name: str
    pod_uid: str
    source: str
    target: str
    """Empty where the plan left the choice to the scheduler."""
    strategy: str
    started: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The cluster as of now."""

    settings: Settings
    keys: Keys
    unsaid: placement.Decision
    """The intent of a pod where neither it nor its workload nor its namespace says anything: the usual case."""
    own_namespace: str = OWN_NAMESPACE
    namespaces: Mapping[str, Metadata] = field(default_factory=dict)
    """By name. A namespace that is missing here is not known, which is not the same as one without labels."""
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    """By UID."""
    workload_names: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """UID by namespace, kind and name."""
    classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    """By name."""
    capacity: tuple[CapacityInUse, ...] = ()
    """In the order of the capacity table."""
    spot_taints: tuple[Taint, ...] = ()
    """Sorted."""
    hostnames: Mapping[str, str] = field(default_factory=dict)
    """Hostname label by node name, only where the two differ."""
    spot_nodes: frozenset[str] = frozenset()
    """Names."""
    counts: Counts = NOBODY
    """Pods of workloads with a mix."""
    migrations: Mapping[tuple[str, str], tuple[Migration, ...]] = field(default_factory=dict)
    """By namespace and UID of the controller, oldest first."""

    @property
    def capacity_table(self) -> tuple[CapacityLabel, ...]:
        """The labels that tell capacity, in use or not."""
        return self.settings.capacity.all_labels()


def empty(settings: Settings) -> View:
    """A view of nothing yet; `dataclasses.replace` puts the parts in."""
    ours = policy_keys.under(settings.label_prefix)
    nobody = placement.Subject(namespace_name="", pod=Metadata())
    return View(settings=settings, keys=ours, unsaid=placement.decide(nobody, keys=ours, settings=settings))


@dataclass(frozen=True, slots=True)
class Found:
    """What stands above a pod."""

    metadata: Metadata | None
    complete: bool = True
    """False if a part of the chain should be in the view and is not yet."""


def workload_of(view: View, namespace: str, owner: OwnerReference | None) -> Found:
    """The workload level of a pod's intent.

    Of a ReplicaSet with a Deployment the Deployment alone counts, for the controller copies annotations down
    and leaves them there when they are taken away. A Job's own keys count before those of its CronJob.
    """
    if owner is None:
        return Found(None)
    own = _look_up(view, namespace, owner)
    if own is None:
        return _by_convention(view, namespace, owner)
    above = own.owner
    if above is None or above.kind not in WATCHED_KINDS:
        return Found(own.metadata)
    top = _look_up(view, namespace, above)
    if top is None:
        return Found(own.metadata, complete=False)
    return Found(top.metadata if own.kind == "ReplicaSet" else _layered(own.metadata, top.metadata))


def _look_up(view: View, namespace: str, owner: OwnerReference) -> Workload | None:
    """Owner references are what the creator of a pod wrote: they reach no other namespace."""
    found = view.workloads.get(owner.uid)
    return found if found is not None and found.namespace == namespace else None


def _by_convention(view: View, namespace: str, owner: OwnerReference) -> Found:
    """A ReplicaSet and its first pods are milliseconds apart, the Deployment is older: its name leads to it."""
    above = {"ReplicaSet": "Deployment", "Job": "CronJob"}.get(owner.kind)
    uid = view.workload_names.get((namespace, above or "", owner.name.rpartition("-")[0]))
    found = view.workloads.get(uid or "")
    if found is not None:
        # A Job may have keys of its own; a ReplicaSet has none that its Deployment does not have.
        return Found(found.metadata, complete=owner.kind == "ReplicaSet")
    return Found(None, complete=owner.kind not in WATCHED_KINDS)


def _layered(near: Metadata, far: Metadata) -> Metadata:
    said = {*near.labels, *near.annotations}
    return Metadata(
        {**{key: value for key, value in far.labels.items() if key not in said}, **near.labels},
        {**{key: value for key, value in far.annotations.items() if key not in said}, **near.annotations},
    )

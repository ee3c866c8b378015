"""The cluster as last heard, indexed for planning.   One writer; keeps what it is told and decides nothing.

Every change costs about the same however large the cluster is: sums per node are kept, and pods are found by node,
namespace, owner and the few other ways in which the planner asks. Pods that have ended are not kept, but for those
that still carry the marks of a move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from cluster.objects import (
    CSINode,
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    Job,
    Namespace,
    Node,
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodMigration,
    PriorityClass,
    ReplicaSet,
    StatefulSet,
    StorageClass,
)
from descheduler import demand, differing, selectors, signs, workload
from descheduler.mix_index import MixIndex
from descheduler.moving import Moving
from descheduler.node_state import Key, NodeState
from descheduler.repelling import Repelling
from descheduler.roster import Roster
from descheduler.workload import Controller, Workload
from policy import capacity, keys, signals
from policy.settings import Settings
from policy.signals import Signal

T = TypeVar("T")
G = TypeVar("G", str, Key)


class Pods(Mapping[Key, Pod]):
    """All pods by key, found through the index by namespace: an index of its own would cost 10 MB at 150,000 pods."""

    __slots__ = ("_by_namespace",)

    def __init__(self, by_namespace: dict[str, dict[Key, Pod]]) -> None:
        self._by_namespace = by_namespace

    def __getitem__(self, key: Key) -> Pod:
        return self._by_namespace[key[0]][key]

    def __iter__(self) -> Iterator[Key]:
        for pods in self._by_namespace.values():
            yield from pods

    def __len__(self) -> int:
        return sum(map(len, self._by_namespace.values()))


class ClusterState:
    """Everything the planner reads. `nodes`, `pods` and the other indexes are for reading only."""

    def __init__(self, settings: Settings) -> None:
        self._labels = settings.capacity.all_labels()
        self.keys = keys.under(settings.label_prefix)
        """What marks are called by the settings that the state was made for."""
        self._rows = settings.signals.all_rows()
        self.nodes: dict[str, NodeState] = {}
        """By name; a node that has only pods so far has no `node`."""
        self.roster = Roster(self.nodes)
        """What every pass asks about all of them."""
        self.by_namespace: dict[str, dict[Key, Pod]] = {}
        self.pods: Mapping[Key, Pod] = Pods(self.by_namespace)
        """All that have not ended, on a node or not."""
        self.pending: dict[Key, Pod] = {}
        """Those without a node."""
        self.going: dict[Key, Pod] = {}
        """Those on a node that are being deleted."""
        self.ended: dict[Key, Pod] = {}
        """Those that have ended and carry the marks of a move: nobody plans with them, and the marks have to go."""
        self.by_owner: dict[Key, dict[Key, Pod]] = {}
        """By namespace and UID of the controlling owner: who creates a pod may write the UID of somebody else's."""
        self.repelling = Repelling()
        """On a node, with required anti-affinity: they keep others away."""
        self.mixing = MixIndex(self.keys)
        """Who asks for a mix of spot and on-demand."""
        self.namespaces: dict[str, Namespace] = {}
        self.controllers: dict[str, Workload] = {}
        """Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs by UID. For one that a reference names ask
        `controller`."""
        self.replica_sets: dict[str, set[str]] = {}
        """UIDs of ReplicaSets by UID of their Deployment."""
        self.budgets: dict[str, dict[Key, PodDisruptionBudget]] = {}
        """By namespace."""
        self.autoscalers: dict[Key, HorizontalPodAutoscaler] = {}
        self.claims: dict[Key, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.storage_classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.priority_classes: dict[str, PriorityClass] = {}
        self.migrations: dict[Key, PodMigration] = {}
        """Open and finished; finished ones are the memory."""
        self.changes = 0
        """Grows with every change; a plan made at the same number is the same plan."""
        self._moving: tuple[int, Moving] | None = None

    # ---- reading

    def owner(self, pod: Pod) -> OwnerReference | None:
        """The controlling owner, if the pod has one."""
        return pod.metadata.controller

    def workload(self, pod: Pod) -> Workload | None:
        """The controller that people scale and annotate: for a ReplicaSet what stands above it, usually a Deployment,
        for everything else the owner itself. None for a pod on its own.
        """
        owner = pod.metadata.controller
        if owner is None:
            return None
        direct = self._controlled_by(owner, pod.metadata.namespace)
        if not isinstance(direct.object, ReplicaSet):
            return direct
        above = direct.object.metadata.controller
        return direct if above is None else self._controlled_by(above, pod.metadata.namespace)

    def _controlled_by(self, owner: OwnerReference, namespace: str) -> Workload:
        return self.controller(namespace, owner.uid) or workload.unknown(owner, namespace)

    def controller(self, namespace: str, uid: str) -> Workload | None:
        """What a reference from this namespace names. An owner reference is what the creator of a pod wrote, and what
        a migration has noted comes from one: it reaches no other namespace.
        """
        found = self.controllers.get(uid)
        return found if found is not None and found.namespace == namespace else None

    def moved(self, migration: PodMigration) -> Key | None:
        """Key of the workload that a migration is about: as noted when it was taken up, else by the pod."""
        namespace, resolved = migration.metadata.namespace, migration.status.resolved
        if resolved is not None and resolved.workload is not None:
            return namespace, resolved.workload.uid
        pod = self.pods.get((namespace, migration.spec.pod_ref.name))
        found = self.workload(pod) if pod is not None else None
        return found.key if found is not None else None

    def siblings(self, found: Workload) -> Iterator[tuple[Key, Pod]]:
        """Pods of a workload, all of its ReplicaSets included."""
        for uid in (found.uid, *sorted(self.replica_sets.get(found.uid, ()))):
            yield from self.by_owner.get((found.namespace, uid), {}).items()

    def budgets_of(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The disruption budgets that select the pod."""
        labels = pod.metadata.labels
        found = self.budgets.get(pod.metadata.namespace, {}).values()
        return tuple(budget for budget in found if selectors.matches(budget.spec.selector, labels))

    @property
    def moving(self) -> Moving:
        """Moves under way, found by what they are about."""
        known = self._moving
        if known is None or known[0] != self.changes:
            known = self._moving = self.changes, Moving(self.migrations.values())
        return known[1]

    def open_migrations(self) -> Iterator[PodMigration]:
        """Moves under way."""
        return iter(self.moving.open)

    # ---- writing, by one thread

    def apply(self, old: Any, new: Any, key: Key | None = None) -> None:
        """One change as a reflector reports it: `old` is what was told last, None if new; `new` None if deleted.

        `key` is the one under which the reflector's store keeps the object: a pod then has one key and not two.
        """
        self.changes += 1
        item = new if new is not None else old
        if type(item) is Pod:
            self._pod(new, key or item.metadata.key)
        else:
            _APPLY[type(item)](self, old, new)

    def _pod(self, new: Pod | None, key: Key) -> None:
        if new is not None and not new.terminal:
            demand.held(new)  # one that cannot be counted is refused before anything has changed
        known = self.pods.get(key)  # not what is said to be old: told twice must count once
        if known is not None and new is not None and _stays(known, new):
            self._refresh(new, key)
            return
        if known is not None:
            self._drop(known, key)
        self.ended.pop(key, None)
        if new is not None and new.terminal:
            if not {self.keys.migration_id, self.keys.migration_status}.isdisjoint(new.metadata.labels):
                self.ended[key] = new
        elif new is not None:
            self._keep(new, key)

    def _refresh(self, pod: Pod, key: Key) -> None:
        self.mixing.pod(key, pod.metadata.annotations)
        self.by_namespace[key[0]][key] = pod
        owner = pod.metadata.controller
        if owner is not None:
            self.by_owner[key[0], owner.uid][key] = pod
        if not pod.node_name:
            self.pending[key] = pod
            return
        if pod.metadata.deletion_timestamp is not None:
            self.going[key] = pod
        if self.nodes[pod.node_name].refresh(key, pod):
            self.roster.changed(pod.node_name)
        self.roster.heard(pod.node_name, key)

    def _keep(self, pod: Pod, key: Key) -> None:
        self.mixing.pod(key, pod.metadata.annotations)
        self.by_namespace.setdefault(key[0], {})[key] = pod
        owner = pod.metadata.controller
        if owner is not None:
            self.by_owner.setdefault((key[0], owner.uid), {})[key] = pod
        if not pod.node_name:
            self.pending[key] = pod
            return
        if pod.metadata.deletion_timestamp is not None:
            self.going[key] = pod
        self._node_state(pod.node_name).add(key, pod)
        self.roster.changed(pod.node_name)
        self.roster.heard(pod.node_name, key)
        self.repelling.add(pod)

    def _drop(self, pod: Pod, key: Key) -> None:
        self.mixing.pod(key, None)
        self.pending.pop(key, None)
        self.going.pop(key, None)
        _discard(self.by_namespace, key[0], key)
        owner = pod.metadata.controller
        if owner is not None:
            _discard(self.by_owner, (key[0], owner.uid), key)
        if pod.node_name:
            self._node_state(pod.node_name).remove(key)
            self.roster.changed(pod.node_name)
            self.roster.heard(pod.node_name, key)
            self.repelling.remove(pod)
            self._forget_node(pod.node_name)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            known = self._node_state(new.metadata.name)
            if known.node is not None and not differing.differ(known.node, new):
                known.node = new
                return
            kind = capacity.capacity_type(new.metadata.labels, self._labels)
            known.describe(new, kind, self._signals(new))
            self.roster.described(new.metadata.name)
        elif old is not None:
            self._node_state(old.metadata.name).describe(None, capacity.CapacityType.UNKNOWN)
            self.roster.described(old.metadata.name)
            self._forget_node(old.metadata.name)

    def _signals(self, node: Node) -> tuple[Signal, ...]:
        """Read once per change of a node and not in every plan: the table has some fifty rows."""
        return signals.standing(signs.of(node), keys=self.keys, table=self._rows)

    def _node_state(self, name: str) -> NodeState:
        found = self.nodes.get(name)
        if found is None:
            found = self.nodes[name] = NodeState(name)
        return found

    def _forget_node(self, name: str) -> None:
        found = self.nodes[name]
        if found.node is None and not found.pods:
            del self.nodes[name]

    def _namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self.namespaces[new.metadata.name] = new
            self.mixing.namespace(new.metadata.name, new.metadata.annotations)
        elif old is not None:
            self.namespaces.pop(old.metadata.name, None)
            self.mixing.namespace(old.metadata.name, None)
        for item in _speaking_anew(old, new):
            self._hear(self.by_namespace.get(item.metadata.name, {}))

    def _controller(self, old: Controller | None, new: Controller | None) -> None:
        if old is not None:
            self.controllers.pop(old.metadata.uid, None)
            self.mixing.controller(old.metadata.uid, None)
            self._unlink(old)
        if new is not None:
            kind = type(new).__name__
            api_version = "batch/v1" if kind == "Job" else "apps/v1"
            self.controllers[new.metadata.uid] = workload.known(kind, api_version, new)
            self.mixing.controller(new.metadata.uid, new.metadata.annotations)
            self._link(new)
        for item in _speaking_anew(old, new):
            for uid in (item.metadata.uid, *self.replica_sets.get(item.metadata.uid, ())):
                self._hear(self.by_owner.get((item.metadata.namespace, uid), {}))

    def _hear(self, pods: Mapping[Key, Pod]) -> None:
        """Somebody who speaks for these pods says something else."""
        for key, pod in pods.items():
            self.roster.heard(pod.node_name, key)

    def _link(self, item: Controller) -> None:
        above = item.metadata.controller
        if above is not None and isinstance(item, ReplicaSet):
            self.replica_sets.setdefault(above.uid, set()).add(item.metadata.uid)

    def _unlink(self, item: Controller) -> None:
        above = item.metadata.controller
        if above is None or not isinstance(item, ReplicaSet):
            return
        known = self.replica_sets.get(above.uid, set())
        known.discard(item.metadata.uid)
        if not known:
            self.replica_sets.pop(above.uid, None)

    def _budget(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        if old is not None:
            _discard(self.budgets, old.metadata.namespace, old.metadata.key)
        if new is not None:
            self.budgets.setdefault(new.metadata.namespace, {})[new.metadata.key] = new


def _discard(index: dict[G, dict[Key, T]], group: G, key: Key) -> None:
    """Take an entry out, and its group with the last one, so that names long gone leave nothing."""
    found = index.get(group)
    if found is not None:
        found.pop(key, None)
        if not found:
            del index[group]


def _speaking_anew(old: Any, new: Any) -> tuple[Any, ...]:
    """Who may now say something else about pods: nobody, if all that has changed is a status."""
    if old is not None and new is not None and old.metadata.uid == new.metadata.uid:
        before, after = old.metadata, new.metadata
        if (before.labels, before.annotations, before.owner_references) == (
            after.labels,
            after.annotations,
            after.owner_references,
        ):
            return ()
    return tuple(it for it in (old, new) if it is not None)


def _stays(old: Pod, new: Pod) -> bool:
    """Whether the pod belongs in the indexes in which it is: most changes are of a status."""
    return (
        old.node_name == new.node_name
        and old.spec is new.spec
        and old.metadata.controller is new.metadata.controller
        and not new.terminal
    )


def _by_key(index: str) -> Callable[[ClusterState, Any, Any], None]:
    return _into(index, lambda item: item.metadata.key)


def _by_name(index: str) -> Callable[[ClusterState, Any, Any], None]:
    return _into(index, lambda item: item.metadata.name)


def _into(index: str, key: Callable[[Any], Any]) -> Callable[[ClusterState, Any, Any], None]:
    def apply(state: ClusterState, old: Any, new: Any) -> None:
        known = getattr(state, index)
        if new is not None:
            known[key(new)] = new
        else:
            known.pop(key(old), None)

    return apply


_APPLY: Final[dict[type, Callable[[ClusterState, Any, Any], None]]] = {
    Node: ClusterState._node,  # noqa: SLF001 - the table of this module
    Deployment: ClusterState._controller,  # noqa: SLF001
    ReplicaSet: ClusterState._controller,  # noqa: SLF001
    StatefulSet: ClusterState._controller,  # noqa: SLF001
    DaemonSet: ClusterState._controller,  # noqa: SLF001
    Job: ClusterState._controller,  # noqa: SLF001
    PodDisruptionBudget: ClusterState._budget,  # noqa: SLF001
    Namespace: ClusterState._namespace,  # noqa: SLF001
    HorizontalPodAutoscaler: _by_key("autoscalers"),
    PersistentVolumeClaim: _by_key("claims"),
    PersistentVolume: _by_name("volumes"),
    StorageClass: _by_name("storage_classes"),
    CSINode: _by_name("csi_nodes"),
    PriorityClass: _by_name("priority_classes"),
    PodMigration: _by_key("migrations"),
}

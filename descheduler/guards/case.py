"""What the guards look at: the context of one pass, and one pod in it.   Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from cluster.meta import ObjectMeta
from cluster.objects import Pod, PodMigration
from descheduler import interruption, memory, scaling
from descheduler.node_state import Key, NodeState
from descheduler.state import ClusterState
from descheduler.workload import Workload
from policy import mix, placement, values, windows
from policy.capacity import CapacityType
from policy.keys import Keys
from policy.mix import Mix
from policy.placement import Decision, Metadata
from policy.settings import Settings
from policy.values import Side, Spot


@dataclass(frozen=True)
class Context:
    """One pass. Make a new one for the next: what is worked out once here holds only while the state stands still."""

    state: ClusterState
    settings: Settings
    keys: Keys
    now: datetime
    cooldowns: Mapping[str, datetime]
    """Until when a workload rests, by its subject in `memory`."""

    @cached_property
    def window_is_open(self) -> bool:
        """Whether voluntary moves may start now."""
        return windows.is_open(self.settings.windows, self.now)

    @cached_property
    def next_window(self) -> datetime | None:
        """When that changes."""
        return windows.next_change(self.settings.windows, self.now)

    @cached_property
    def moving(self) -> Mapping[Key, PodMigration]:
        """Open migrations by the pod they move and by the pod that takes its place."""
        return {key: found for found in self.state.open_migrations() for key in _pods_of(found)}

    @cached_property
    def moves_of(self) -> Mapping[Key, tuple[Key, ...]]:
        """Pods that are moving, by key of their workload."""
        found: dict[Key, tuple[Key, ...]] = {}
        for key, migration in self.moving.items():
            workload = self.state.moved(migration)
            if workload is not None:
                found[workload] = (*found.get(workload, ()), key)
        return found

    @cached_property
    def autoscalers(self) -> Mapping[scaling.Autoscaled, str]:
        """Names of autoscalers by what they scale."""
        return scaling.autoscalers(self.state)

    @cached_property
    def losses(self) -> Mapping[str, interruption.Loss]:
        """Nodes that are being lost, by name."""
        return interruption.find(self)

    @cached_property
    def rests(self) -> Mapping[str, memory.Rest]:
        """What rests, as in `cooldowns`, with the move after which it does."""
        return memory.rests(self.state.migrations.values(), self.settings, self.now)

    @cached_property
    def copies(self) -> Mapping[str, str]:
        """Copies that serve though their move ended without them, by UID of the original."""
        found = {}
        for it in self.state.migrations.values():
            name = (it.status.intent or {}).get("copy", "") if it.status.phase in {"Failed", "Cancelled"} else ""
            pod = self.state.pods.get((it.metadata.namespace, name))
            if pod is not None and pod.ready and pod.metadata.deletion_timestamp is None:
                found[pod.metadata.annotations.get(self.keys.original_pod, "")] = name
        return found

    @cached_property
    def decisions(self) -> dict[tuple[int, int, str, str], Decision]:
        """For the guards: intents by identity of labels and annotations, owner and namespace; filled as asked for."""
        return {}

    @cached_property
    def unready(self) -> dict[str, tuple[Key, ...]]:
        """For the guards: pods that are not Ready, by UID of their StatefulSet; filled likewise."""
        return {}

    @cached_property
    def suited(self) -> dict[int, tuple[str, ...]]:
        """For the guards: the first two nodes that a spec selects, by identity of the spec; filled likewise."""
        return {}

    @cached_property
    def leaving(self) -> dict[tuple[str, str], dict[str, Pod]]:
        """For the guards: pods that Jobs are about to lose, by namespace and UID of the Job, and by their own UID;
        filled likewise, and by the planner with what it moves.
        """
        return {}

    def says(self, found: Metadata) -> bool:
        """Whether an object says anything about its pods; most do not."""
        return self.keys.rescheduling in found.labels or not self.words.isdisjoint(found.annotations)

    @cached_property
    def words(self) -> frozenset[str]:
        """The annotations in which that is said."""
        ours = self.keys
        return frozenset((ours.spot, ours.tier, ours.rescheduling, ours.spot_percentage, ours.min_on_demand))

    def unsaid(self, namespace: str) -> Decision:
        """What holds where nobody says anything: the same for all but the excluded namespaces."""
        return self._excluded if namespace in self.settings.excluded_namespaces else self._usual

    @cached_property
    def _usual(self) -> Decision:
        nobody = placement.Subject(namespace_name="", pod=ObjectMeta())
        return placement.decide(nobody, keys=self.keys, settings=self.settings)

    @cached_property
    def _excluded(self) -> Decision:
        nobody = placement.Subject(namespace_name=self.settings.excluded_namespaces[0], pod=ObjectMeta())
        return placement.decide(nobody, keys=self.keys, settings=self.settings)


class Case:
    """One pod, with what several guards ask about it worked out at most once."""

    def __init__(self, pod: Pod, context: Context) -> None:
        self.pod = pod
        self.context = context

    @cached_property
    def workload(self) -> Workload | None:
        """The controller at the top."""
        return self.context.state.workload(self.pod)

    @cached_property
    def node(self) -> NodeState | None:
        """Where it runs."""
        return self.context.state.nodes.get(self.pod.node_name)

    @cached_property
    def decision(self) -> Decision:
        """What pod, workload, namespace and settings say; the same for pods that share all of these."""
        meta, owner = self.pod.metadata, self.pod.metadata.controller
        key = (id(meta.labels), id(meta.annotations), owner.uid if owner is not None else "", meta.namespace)
        known = self.context.decisions.get(key)
        if known is None:
            known = self.context.decisions[key] = self._decide()
        return known

    def _decide(self) -> Decision:
        name = self.pod.metadata.namespace
        namespace = self.context.state.namespaces.get(name)
        above = namespace.metadata if namespace is not None else None
        workload = self.annotated
        if not any(self.context.says(it) for it in (self.pod.metadata, workload, above) if it is not None):
            return self.context.unsaid(name)
        subject = placement.Subject(namespace_name=name, pod=self.pod.metadata, workload=workload, namespace=above)
        return placement.decide(subject, keys=self.context.keys, settings=self.context.settings)

    @property
    def mix(self) -> Mix | None:
        """What its workload asks for, if that is a mix; a pod on its own has no others to be mixed with."""
        return None if self.pod.metadata.controller is None else mix.of(self.decision.intent)

    @property
    def spot(self) -> Spot:
        """Where it should run. A pod of a mix belongs where it is, whoever moves it: only who looks at the whole mix
        may take it to the other side.
        """
        if self.mix is None:
            return self.decision.intent.spot
        here = self.node
        known = here is not None and here.node is not None
        chosen = mix.chosen(self.pod.metadata.annotations, self.context.keys)
        on_spot = here.capacity is CapacityType.SPOT if here is not None and known else chosen is Side.SPOT
        return Spot.PREFER if on_spot else Spot.AVOID

    @property
    def since(self) -> datetime | None:
        """When the pod started, or was made if the kubelet has not said."""
        return values.plausible(self.pod.start_time) or self.pod.metadata.creation_timestamp

    @property
    def annotated(self) -> Workload | None:
        """The object on which people annotate a workload: of a ReplicaSet with something unknown above it, itself."""
        owner, top = self.pod.metadata.controller, self.workload
        if owner is None or top is None or top.object is not None:
            return top
        return self.context.state.controller(top.namespace, owner.uid) or top


def _pods_of(migration: PodMigration) -> Iterator[Key]:
    namespace, replacement = migration.metadata.namespace, migration.status.replacement
    yield namespace, migration.spec.pod_ref.name
    if replacement is not None and replacement.name:
        yield namespace, replacement.name

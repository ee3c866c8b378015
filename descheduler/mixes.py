"""Workloads that ask for a mix of spot and on-demand, and how far off it they are.   Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from cluster.objects import Pod
from descheduler.guards.case import Case, Context
from descheduler.node_state import Key
from descheduler.workload import Workload
from policy.capacity import CapacityType
from policy.mix import Mix

OF_NODES: Final = frozenset({"DaemonSet", "Node"})
"""Owners whose pods go with their nodes: there is nothing to mix, whatever the settings ask for."""


@dataclass(frozen=True)
class Mixed:
    """One workload with a mix. Pods on their way out are not among its pods."""

    workload: Workload
    mix: Mix
    on_spot: tuple[Pod, ...]
    elsewhere: tuple[Pod, ...]
    waiting: int
    """Pods without a node."""

    @cached_property
    def replicas(self) -> int:
        """What the mix is taken of. While pods are still to come or to go, the larger number: both sides are allowed
        more then, and only what is too much in any case is corrected.
        """
        there = len(self.on_spot) + len(self.elsewhere) + self.waiting
        return max(there, self.workload.replicas or 0)

    @property
    def over_on_spot(self) -> int:
        """Pods on spot beyond what the mix allows."""
        return max(0, len(self.on_spot) - self.mix.spot(self.replicas))

    @property
    def over_elsewhere(self) -> int:
        """Pods elsewhere beyond what the mix asks for."""
        return max(0, len(self.elsewhere) - self.mix.on_demand(self.replicas))

    @property
    def too_few_on_demand(self) -> bool:
        """Whether fewer than `min-on-demand` are there, however the rest is shared."""
        return self.replicas - len(self.on_spot) < min(self.mix.min_on_demand, self.replicas)


def find(context: Context) -> Iterator[Mixed]:
    """All of them, in the order of their names. One whose pods have different owners is being rolled out: what goes
    and what comes is decided pod by pod at admission, and is looked at when it is over.
    """
    found: dict[Key, tuple[Workload, Mix]] = {}
    for pods in _may_ask(context):
        pod = next(iter(pods.values()))
        workload = context.state.workload(pod)
        if workload is not None and workload.key not in found and workload.kind not in OF_NODES:
            wanted = Case(pod, context).mix
            if wanted is not None:
                found[workload.key] = (workload, wanted)
    for workload, wanted in sorted(found.values(), key=lambda it: by_name(it[0])):
        there = settled(workload, context)
        if there:
            yield _mixed(workload, wanted, there, context)


def by_name(workload: Workload) -> tuple[str, str, str]:
    """The order in which workloads are taken."""
    return workload.namespace, workload.kind, workload.name


def settled(workload: Workload, context: Context) -> list[Pod]:
    """Its pods that are not on their way out; none while it is being rolled out."""
    there = [pod for _, pod in context.state.siblings(workload) if pod.metadata.deletion_timestamp is None]
    return there if len({owner(pod) for pod in there}) == 1 else []


def is_on_spot(pod: Pod, context: Context) -> bool:
    """Whether its node is spot. A node that does not tell its capacity is not."""
    node = context.state.nodes.get(pod.node_name)
    return node is not None and node.capacity is CapacityType.SPOT


def _mixed(workload: Workload, wanted: Mix, pods: Sequence[Pod], context: Context) -> Mixed:
    placed = [pod for pod in pods if pod.node_name]
    return Mixed(
        workload,
        wanted,
        tuple(pod for pod in placed if is_on_spot(pod, context)),
        tuple(pod for pod in placed if not is_on_spot(pod, context)),
        len(pods) - len(placed),
    )


def _may_ask(context: Context) -> Iterable[Mapping[Key, Pod]]:
    """The pods of each owner of which somebody may have asked for a mix. Most owners in a cluster ask for nothing."""
    state, asked, defaults = context.state, context.state.mixing.mixed, context.settings.placement
    if defaults.spot_percentage is not None or defaults.min_on_demand is not None:
        return state.by_owner.values()
    owners: set[Key] = set()
    for above in asked.controllers:
        namespace = state.controllers[above].namespace
        owners |= {(namespace, uid) for uid in (above, *state.replica_sets.get(above, ()))}
    owners |= {(key[0], owner(state.pods[key])) for key in asked.pods}
    owners |= {(name, owner(pod)) for name in asked.namespaces for pod in state.by_namespace.get(name, {}).values()}
    return [state.by_owner[key] for key in owners if key in state.by_owner]


def owner(pod: Pod) -> str:
    """UID of its controller; empty for a pod on its own."""
    return pod.metadata.controller.uid if pod.metadata.controller is not None else ""

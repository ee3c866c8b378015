"""How much nodes and pods use, measured or by requests, and how much more a node may.   Pure.

The mean of measurements trails what moves have changed: a node that was just relieved still looks full, and one that
has just taken a pod still looks empty. So a node is settled only when all of the mean was measured since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler import demand, memory, places
from descheduler.moving import is_open
from descheduler.node_state import NodeState
from descheduler.picture import Picture
from descheduler.state import ClusterState
from descheduler.usage import Measured, Usage

ROUNDING: Final = 1e-6
"""Percent that count as left beyond what is: what just fits must not seem too much."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """How much nodes use, in percent, as a picture changes."""

    now: datetime
    usage: Usage | None
    """Measurements; None where nothing measures, and requests stand for usage."""
    max_age: timedelta
    """Older measurements are not used."""
    requests_stand_in: bool
    """Whether requests can be trusted then."""
    most_cpu: float
    """Percent of its cpu that a node is to use at most."""
    most_memory: float
    changed: Mapping[str, datetime] = field(default_factory=dict)
    """By node: when the last pod was moved off it or onto it; now if that has not ended."""

    def shares(self, picture: Picture, name: str) -> tuple[float, float]:
        """Cpu and memory of a node, without the pods that leave and with those that come."""
        node = picture.state.nodes[name]
        used = self.node(node)
        cpu, memory = used.cpu, used.memory
        for key in picture.departed.get(name, ()):
            gone = self.pod(node.pods[key], node)
            cpu, memory = cpu - gone.cpu, memory - gone.memory
        for pod in picture.arrived.get(name, {}).values():
            come = self.pod(pod, picture.state.nodes.get(pod.node_name))
            cpu, memory = cpu + come.cpu, memory + come.memory
        return shares_of(Measured(cpu, memory), node)

    def is_below(self, cpu: float, memory: float) -> bool:
        """Whether a node with these shares is used little enough, as a source and as a target."""
        return cpu <= self.most_cpu and memory <= self.most_memory

    def left(self, picture: Picture, node: NodeState) -> Measured | None:
        """What pods that come to a node may use there; None if nothing."""
        cpu, memory = self.shares(picture, node.name)
        if not self.is_below(cpu, memory):
            return None
        return Measured(
            (self.most_cpu - cpu + ROUNDING) * node.allocatable.get(demand.CPU, 0) / 100,
            (self.most_memory - memory + ROUNDING) * node.allocatable.get(demand.MEMORY, 0) / 100,
        )

    def fresh(self, name: str) -> bool:
        """Whether the last measurement of a node can be trusted. Requests are always fresh, if they may stand in."""
        if self.usage is None:
            return self.requests_stand_in
        age = self.usage.age(name, self.now)
        return age is not None and age <= self.max_age

    def measured(self, name: str) -> bool:
        """Whether a node was ever measured; requests stand for the usage of others."""
        return self.usage is not None and self.usage.node(name) is not None

    def settled(self, name: str) -> bool:
        """Whether the mean of a node shows what moves have left there. Requests do so at once."""
        at = self.changed.get(name)
        if at is None or self.usage is None:
            return True
        since = self.usage.since(name)
        return since is not None and since > at

    def node(self, node: NodeState) -> Measured:
        """What a node uses."""
        found = None if self.usage is None else self.usage.node(node.name)
        return Measured(node.nominal_cpu, node.nominal_memory) if found is None else found

    def pod(self, pod: Pod, on: NodeState | None) -> Measured:
        """What a pod uses; where pods are not measured, its part of what its node uses, by requests."""
        found = None if self.usage is None else self.usage.pod(pod.metadata.key)
        if found is not None:
            return found
        held = demand.held(pod)
        if on is None or self.usage is None:
            return Measured(held.nominal_cpu, held.nominal_memory)
        used = self.node(on)
        return Measured(
            used.cpu * held.nominal_cpu / (on.nominal_cpu or 1),
            used.memory * held.nominal_memory / (on.nominal_memory or 1),
        )


def changes(state: ClusterState, now: datetime) -> Mapping[str, datetime]:
    """By node: when a move last changed what is used there."""
    found: dict[str, datetime] = {}
    for migration in state.migrations.values():
        status, at = migration.status, _changed_at(migration, state, now)
        if at is None or status.resolved is None:
            continue
        landed = status.replacement.node if status.replacement is not None else ""
        for name in (status.resolved.source_node, landed or status.resolved.target_node):
            found[name] = max(at, found.get(name, at))
    return found


def _changed_at(migration: PodMigration, state: ClusterState, now: datetime) -> datetime | None:
    """None: the pod is where it was. Of one that is about to leave, the picture knows."""
    status, ref = migration.status, migration.spec.pod_ref
    if is_open(migration):
        pod = state.pods.get((migration.metadata.namespace, ref.name))
        gone = pod is None or (ref.uid and ref.uid != pod.metadata.uid)
        return now if gone or status.replacement is not None else None
    return memory.ended(migration) if memory.went(migration) else None


def shares_of(used: Measured, node: NodeState) -> tuple[float, float]:
    """Cpu and memory in percent of what the node can give."""
    offered = node.allocatable
    return (
        places.share_of(used.cpu, offered.get(demand.CPU, 0)),
        places.share_of(used.memory, offered.get(demand.MEMORY, 0)),
    )

"""The cluster with some pods moved: what it will look like when the moves of a plan have been made.   Pure.

An overlay on the state, which stays as it is. Everything that asks whether a pod fits asks a picture, so that no
room is promised twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.objects import Pod
from descheduler import demand
from descheduler.demand import Amounts, Demand
from descheduler.node_state import Key, NodeState, share
from descheduler.state import ClusterState


@dataclass(slots=True)
class Used:
    """What pods hold on one node."""

    cpu: int = 0
    memory: int = 0
    storage: int = 0
    pods: int = 0
    nominal_cpu: int = 0
    nominal_memory: int = 0
    extended: Amounts = field(default_factory=dict)

    def count(self, asked: Demand, sign: int) -> None:
        """Add (1) or take away (-1) what one pod holds."""
        self.cpu += sign * asked.cpu
        self.memory += sign * asked.memory
        self.storage += sign * asked.storage
        self.pods += sign
        self.nominal_cpu += sign * asked.nominal_cpu
        self.nominal_memory += sign * asked.nominal_memory
        for name, amount in asked.extended.items():
            self.extended[name] = self.extended.get(name, 0) + sign * amount


class Change(NamedTuple):
    """A pod that came to a node or left it."""

    pod: Pod
    node: str
    sign: int
    """1 it is there, -1 it is not."""
    replacement: bool
    """The pod stands in for one that is not there yet."""


class Picture:
    """A pod that is placed counts on its new node with what its replacement will ask."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.departed: dict[str, set[Key]] = {}
        """Pods that will have left, by node."""
        self.arrived: dict[str, dict[Key, Pod]] = {}
        """Pods that will have come, by node. The pod is the one that leaves, standing in for its replacement."""
        self.changes: list[Change] = []
        """Everything that was taken and put, and undone again, in order; who keeps counts can catch up with it."""
        self.repelling: list[Change] = []
        """Those among them of pods that may keep others away; all that most pods have to know of the others."""
        self._used: dict[str, Used] = {}
        self._again: Counter[tuple[str, Key, int]] = Counter()
        """How often a pod was taken (-1) from a node it had left, or put (1) where it had come already."""

    # ---- reading

    @property
    def bookings(self) -> int:
        """Grows with every change; what was computed at the same number still holds."""
        return len(self.changes)

    def used(self, name: str) -> Used:
        """What will be held on a node. Do not change it."""
        return self._used.get(name) or used_now(self.state.nodes[name])

    @property
    def touched(self) -> Collection[str]:
        """Nodes that a move touches, or has touched; the state says all about the others."""
        return self._used.keys()

    def booked(self, name: str) -> Used | None:
        """What will be held on a node; None while no move touches it, and the state says all. Do not change it."""
        return self._used.get(name)

    def pods_on(self, name: str) -> Iterator[Pod]:
        """The pods that will be on a node."""
        gone = self.departed.get(name, ())
        yield from (pod for key, pod in self.state.nodes[name].pods.items() if key not in gone)
        yield from self.arrived.get(name, {}).values()

    def placed(self, namespace: str) -> Iterator[tuple[Pod, str]]:
        """The pods of a namespace that will be on a node, each with that node."""
        for key, pod in self.state.by_namespace.get(namespace, {}).items():
            if pod.node_name and key not in self.departed.get(pod.node_name, ()):
                yield pod, pod.node_name
        if self.arrived:
            for name, pods in self.arrived.items():
                yield from ((pod, name) for key, pod in pods.items() if key[0] == namespace)

    def shares(self, name: str) -> tuple[float, float, float]:
        """Cpu, memory and pods in percent of what the node can give; see NodeState.shares."""
        node = self.state.nodes[name]
        held = self._used.get(name)
        if held is None:
            return node.shares()
        offered = node.allocatable
        return (
            share(held.nominal_cpu, offered.get(demand.CPU, 0)),
            share(held.nominal_memory, offered.get(demand.MEMORY, 0)),
            share(held.pods, offered.get(demand.PODS, 0)),
        )

    def load(self, name: str) -> float:
        """The largest of the shares."""
        return max(self.shares(name)) if name in self._used else self.state.nodes[name].load()

    # ---- changing

    def take(self, pod: Pod) -> None:
        """The pod will leave its node. Once: who takes it again frees nothing more, until that is undone."""
        gone = self.departed.setdefault(pod.node_name, set())
        if pod.metadata.key in gone:
            self._again[pod.node_name, pod.metadata.key, -1] += 1
            return
        gone.add(pod.metadata.key)
        self._own(pod.node_name).count(demand.held(pod), -1)
        self._record(Change(pod, pod.node_name, -1, replacement=False))

    def put(self, pod: Pod, name: str) -> None:
        """A replacement of the pod, or the pending pod itself, will come to a node. Once, as for `take`."""
        there = self.arrived.setdefault(name, {})
        if pod.metadata.key in there:
            self._again[name, pod.metadata.key, 1] += 1
            return
        there[pod.metadata.key] = pod
        self._own(name).count(demand.of(pod.spec), 1)
        self._record(Change(pod, name, 1, replacement=True))

    def untake(self, pod: Pod) -> None:
        """Undo `take`."""
        if self._is_again(pod.node_name, pod.metadata.key, -1):
            return
        self.departed[pod.node_name].discard(pod.metadata.key)
        self._own(pod.node_name).count(demand.held(pod), 1)
        self._record(Change(pod, pod.node_name, 1, replacement=False))

    def unput(self, pod: Pod, name: str) -> None:
        """Undo `put`."""
        if self._is_again(name, pod.metadata.key, 1):
            return
        del self.arrived[name][pod.metadata.key]
        self._own(name).count(demand.of(pod.spec), -1)
        self._record(Change(pod, name, -1, replacement=True))

    def _is_again(self, name: str, key: Key, sign: int) -> bool:
        """Whether what is undone was done more than once, so that it still holds."""
        if not self._again[name, key, sign]:
            return False
        self._again[name, key, sign] -= 1
        return True

    def _record(self, change: Change) -> None:
        self.changes.append(change)
        affinity = change.pod.spec.affinity
        if affinity is not None and affinity.pod_anti_affinity is not None:
            self.repelling.append(change)

    def _own(self, name: str) -> Used:
        found = self._used.get(name)
        if found is None:
            found = self._used[name] = used_now(self.state.nodes[name])
        return found


def used_now(node: NodeState) -> Used:
    """What is held on the node as the cluster is, in a copy."""
    return Used(
        node.cpu,
        node.memory,
        node.storage,
        len(node.pods),
        node.nominal_cpu,
        node.nominal_memory,
        dict(node.extended),
    )

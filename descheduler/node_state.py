"""One node as the planner sees it: what it has, what its pods hold, and how full that makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cluster.objects import Node, Pod
from descheduler import demand
from descheduler.demand import Amounts, Demand
from policy.capacity import CapacityType
from policy.signals import Signal

Key = tuple[str, str]
"""Namespace and name."""

HUNDRED: Final = 100.0


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """How full a node is, in percent, before and after a plan."""

    name: str
    capacity: CapacityType
    before: float
    after: float


class NodeState:
    """Sums are kept as pods come and go, so reading the load of a node costs nothing.

    A node may be known by its pods alone (`node` is None): the two watches are not in step, and a pod can outlive
    its node for a while. Such a node has no room.
    """

    __slots__ = (
        "_level",
        "_shares",
        "allocatable",
        "capacity",
        "cpu",
        "extended",
        "memory",
        "name",
        "node",
        "nominal_cpu",
        "nominal_memory",
        "open",
        "pods",
        "ready",
        "signals",
        "storage",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.capacity = CapacityType.UNKNOWN
        self.allocatable: Amounts = {}
        self.pods: dict[Key, Pod] = {}
        self.cpu = self.memory = self.storage = 0
        self.nominal_cpu = self.nominal_memory = 0
        self.extended: Amounts = {}
        self._shares: tuple[float, float, float] | None = None
        self._level: NodeLoad | None = None
        self.ready = False
        """Whether the kubelet says so."""
        self.signals: tuple[Signal, ...] = ()
        """Its signs of maintenance and interruption; what each asks depends on the time."""
        self.open = False
        """Whether a pod may be sent there at all: known, Ready, not cordoned, not going, without any sign."""

    # ---- reading

    @property
    def signed(self) -> bool:
        """Whether it carries any sign."""
        return bool(self.signals)

    def signals_at(self, now: datetime) -> tuple[Signal, ...]:
        """What its signs ask at this time."""
        return tuple(it.at(now) for it in self.signals)

    def load(self) -> float:
        """The largest of the shares of cpu, memory and pods, in percent of what the node can give."""
        return max(self.shares())

    def shares(self) -> tuple[float, float, float]:
        """Cpu, memory and pods asked for, in percent; containers that ask for nothing count as the scheduler
        counts them when it compares nodes. Worked out once per change: every plan asks every node, several times.
        """
        found = self._shares
        if found is None:
            offered = self.allocatable
            found = self._shares = (
                share(self.nominal_cpu, offered.get(demand.CPU, 0)),
                share(self.nominal_memory, offered.get(demand.MEMORY, 0)),
                share(len(self.pods), offered.get(demand.PODS, 0)),
            )
        return found

    def level(self) -> NodeLoad:
        """How full it is, for a plan that does not change that; made once per change."""
        found = self._level
        if found is None:
            load = self.load()
            found = self._level = NodeLoad(self.name, self.capacity, load, load)
        return found

    # ---- for the one writer

    def describe(self, node: Node | None, capacity: CapacityType, signals: Sequence[Signal] = ()) -> None:
        """The node object was added, changed or removed."""
        self.allocatable = demand.amounts(node.status.allocatable) if node is not None else {}
        self._shares = self._level = None
        self.node = node
        self.capacity = capacity
        self.ready = node is not None and _says_ready(node)
        self.signals = tuple(signals)
        self.open = self.ready and not self.signals and node is not None and not _leaving(node)

    def add(self, key: Key, pod: Pod) -> None:
        """The pod runs here now."""
        self.pods[key] = pod
        self._count(demand.held(pod), 1)

    def refresh(self, key: Key, pod: Pod) -> bool:
        """The pod that runs here has changed; the sums only if it holds something else now, which is the answer."""
        before, after = demand.held(self.pods[key]), demand.held(pod)
        self.pods[key] = pod
        if before is after:
            return False
        self._count(before, -1)
        self._count(after, 1)
        return True

    def remove(self, key: Key) -> None:
        """The pod does not run here any more."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._count(demand.held(pod), -1)

    def _count(self, held: Demand, sign: int) -> None:
        self._shares = self._level = None
        self.cpu += sign * held.cpu
        self.memory += sign * held.memory
        self.storage += sign * held.storage
        self.nominal_cpu += sign * held.nominal_cpu
        self.nominal_memory += sign * held.nominal_memory
        for name, amount in held.extended.items():
            self.extended[name] = self.extended.get(name, 0) + sign * amount


def _says_ready(node: Node) -> bool:
    return any(it.type == "Ready" and it.status == "True" for it in node.status.conditions)


def _leaving(node: Node) -> bool:
    return node.spec.unschedulable or node.metadata.deletion_timestamp is not None


def share(used: int, allocatable: int) -> float:
    """In percent. A node that offers nothing is full, whatever it holds: nothing can go there."""
    return HUNDRED * used / allocatable if allocatable > 0 else (HUNDRED if used == 0 else float("inf"))

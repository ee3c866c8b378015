"""What nodes and pods really use, averaged over the last measurements.   Values; `measure` in a shell fills them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from cluster.objects import NodeMetrics, PodMetrics
from descheduler import demand
from descheduler.node_state import Key

SAMPLES: Final = 5
"""Measurements that are averaged. metrics-server takes one every 15 seconds, so a spike of seconds moves nothing."""


class Measured(NamedTuple):
    """Cpu in thousandths, memory in bytes."""

    cpu: float = 0.0
    memory: float = 0.0


class Usage(Protocol):
    """The seam between strategies and whoever measures."""

    def age(self, name: str, now: datetime) -> timedelta | None:
        """How old the newest measurement of a node is; None if there is none."""

    def since(self, name: str) -> datetime | None:
        """When the oldest of the measurements was taken that are averaged for a node; None if there is none."""

    def node(self, name: str) -> Measured | None:
        """What a node uses."""

    def pod(self, key: Key) -> Measured | None:
        """What a pod uses; None where only nodes are measured."""


@dataclass(slots=True)
class _Series:
    times: deque[datetime] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    values: deque[Measured] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    mean: Measured | None = None
    """Worked out when one is added: every plan asks it of every node."""

    @property
    def at(self) -> datetime | None:
        return self.times[-1] if self.times else None

    def add(self, at: datetime, value: Measured) -> None:
        self.times.append(at)
        self.values.append(value)
        count = len(self.values)
        self.mean = Measured(sum(it.cpu for it in self.values) / count, sum(it.memory for it in self.values) / count)


class Samples:
    """The last measurements, in the shapes of the metrics API whoever took them."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Series] = {}
        self._pods: dict[Key, Measured] = {}

    def age(self, name: str, now: datetime) -> timedelta | None:
        """How old the newest measurement of a node is."""
        found = self._nodes.get(name)
        return None if found is None or found.at is None else now - found.at

    def since(self, name: str) -> datetime | None:
        """When the oldest measurement in the mean was taken."""
        found = self._nodes.get(name)
        return found.times[0] if found is not None and found.times else None

    def node(self, name: str) -> Measured | None:
        """The mean over the last measurements."""
        found = self._nodes.get(name)
        return None if found is None else found.mean

    def pod(self, key: Key) -> Measured | None:
        """The last measurement: it only ranks the pods of a node that is over its threshold."""
        return self._pods.get(key)

    def add_nodes(self, metrics: Iterable[NodeMetrics]) -> None:
        """One answer of the metrics API. The same measurement read twice counts once; nodes that left are dropped."""
        seen = {it.metadata.name: it for it in metrics}
        self._nodes = {name: self._nodes.get(name, _Series()) for name in seen}
        for name, item in seen.items():
            series = self._nodes[name]
            if item.timestamp is not None and (series.at is None or item.timestamp > series.at):
                series.add(item.timestamp, measured(item.usage))

    def set_pods(self, metrics: Iterable[PodMetrics]) -> None:
        """What pods used last, in place of what was known."""
        self._pods = {it.metadata.key: _total(measured(part.usage) for part in it.containers) for it in metrics}


def measured(texts: Mapping[str, str]) -> Measured:
    """Usage as the API writes it."""
    found = demand.amounts(texts)
    return Measured(found.get(demand.CPU, 0), found.get(demand.MEMORY, 0))


def _total(parts: Iterable[Measured]) -> Measured:
    cpu = memory = 0.0
    for part in parts:
        cpu, memory = cpu + part.cpu, memory + part.memory
    return Measured(cpu, memory)

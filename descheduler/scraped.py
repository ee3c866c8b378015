"""What nodes and pods use, from the series of the kubelets as Prometheus keeps them.   Queries, and what they mean.

Written for what clusters really have: `/metrics/cadvisor`, with `/metrics/resource` beside it or not, scraped once or
twice, with the root cgroup or without. docs/strategies.md tells which labels that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from cluster.node import ContainerMetrics
from cluster.objects import NodeMetrics, ObjectMeta, PodMetrics
from cluster.prometheus import Sample
from descheduler import demand

_CPU: Final = "container_cpu_usage_seconds_total"
_MEMORY: Final = "container_memory_working_set_bytes"
_OF_PODS: Final = 'pod!="",container!="",container!="POD"'
"""Neither the cgroup of the whole pod nor its pause container, which would count everything twice."""
_OF_NODE: Final = 'id="/"'
"""The root cgroup: pods and everything else that runs there."""
_TOTAL: Final = 'cpu=~"total|"'
"""/metrics/resource does not write the label."""
_LAST_TWO: Final = "irate({}[2m])"
"""Between the last two samples, as metrics-server does it: `Samples` makes the mean, and a pod that has left must not
weigh on its node for longer. Two minutes hold two samples of scrapes a minute apart."""
_PODS: Final = "sum by (namespace, pod, node, instance) (max by (namespace, pod, container, node, instance) ({}))"
"""The largest of each container and not their sum: a kubelet that is scraped twice uses nothing twice."""
_NODES: Final = "max by (node, instance) ({})"

NODE_CPU: Final = _NODES.format(_LAST_TWO.format(f"{_CPU}{{{_OF_NODE},{_TOTAL}}}"))
NODE_MEMORY: Final = _NODES.format(f"{_MEMORY}{{{_OF_NODE}}}")
POD_CPU: Final = _PODS.format(_LAST_TWO.format(f"{_CPU}{{{_OF_PODS},{_TOTAL}}}"))
POD_MEMORY: Final = _PODS.format(f"{_MEMORY}{{{_OF_PODS}}}")
TAKEN_AT: Final = _NODES.format(f"timestamp({_MEMORY})")
"""When a node was last heard of. The time of an answer is always now, however old its samples are."""
QUERIES: Final = (NODE_CPU, NODE_MEMORY, POD_CPU, POD_MEMORY, TAKEN_AT)

LARGEST: Final = float(1 << 60)
"""Of memory in bytes and cpu in billionths; what is larger was not measured."""

K = TypeVar("K", bound=Hashable)
Place = tuple[str, str, str]
"""Node, namespace and name of a pod; the same name is on two nodes while a StatefulSet moves it."""


@dataclass(frozen=True, slots=True)
class Scraped:
    """In the shapes of metrics.k8s.io."""

    nodes: tuple[NodeMetrics, ...]
    pods: tuple[PodMetrics, ...]


@dataclass(frozen=True, slots=True)
class Used:
    """Cpu in cores, memory in bytes."""

    cpu: float
    memory: float

    def __add__(self, more: Used) -> Used:
        return Used(self.cpu + more.cpu, self.memory + more.memory)

    @property
    def quantities(self) -> dict[str, str]:
        """As the metrics API writes them."""
        return {demand.CPU: f"{round(self.cpu * 1e9)}n", demand.MEMORY: f"{round(self.memory)}"}

    @property
    def sane(self) -> bool:
        """Whether it can be an amount at all."""
        return self.cpu * 1e9 <= LARGEST and self.memory <= LARGEST


def read(query: Callable[[str], Iterable[Sample]]) -> Scraped:
    """Ask for everything. A node or pod of which anything is missing is left out."""
    answers = {it: tuple(query(it)) for it in QUERIES}
    times = {name: at for name, value in _by_node(answers[TAKEN_AT]).items() if (at := _time(value)) is not None}
    pods = _both(_by_place(answers[POD_CPU]), _by_place(answers[POD_MEMORY]))
    nodes = _summed(pods) | _both(_by_node(answers[NODE_CPU]), _by_node(answers[NODE_MEMORY]))
    return Scraped(
        tuple(_node(name, used, times[name]) for name, used in nodes.items() if name in times),
        tuple(_pod(place, used, times[place[0]]) for place, used in pods.items() if place[0] in times),
    )


def _summed(pods: Mapping[Place, Used]) -> dict[str, Used]:
    """For nodes without a root cgroup: kube-prometheus-stack drops it, unless told otherwise."""
    found: dict[str, Used] = {}
    for (node, _, _), used in pods.items():
        found[node] = found[node] + used if node in found else used
    return found


def _by_node(samples: Iterable[Sample]) -> dict[str, float]:
    found: dict[str, float] = {}
    for it in samples:
        if name := _name(it):
            found[name] = max(it.value, found.get(name, 0.0))
    return found


def _by_place(samples: Iterable[Sample]) -> dict[Place, float]:
    found: dict[Place, float] = {}
    for it in samples:
        place = (_name(it), it.labels.get("namespace", ""), it.labels.get("pod", ""))
        if all(place):
            found[place] = max(it.value, found.get(place, 0.0))
    return found


def _name(sample: Sample) -> str:
    """Of the node: the operator's monitors write `node`; plain node discovery has its name as `instance`."""
    return sample.labels.get("node") or sample.labels.get("instance", "")


def _both(cpu: Mapping[K, float], memory: Mapping[K, float]) -> dict[K, Used]:
    pairs = ((key, Used(cpu[key], memory[key])) for key in cpu.keys() & memory.keys())
    return {key: used for key, used in pairs if used.sane}


def _time(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _node(name: str, used: Used, at: datetime) -> NodeMetrics:
    return NodeMetrics(metadata=ObjectMeta(name=name), timestamp=at, usage=used.quantities)


def _pod(place: Place, used: Used, at: datetime) -> PodMetrics:
    """Its containers as one: nobody looks at them alone."""
    _, namespace, name = place
    whole = ContainerMetrics(usage=used.quantities)
    return PodMetrics(metadata=ObjectMeta(name=name, namespace=namespace), timestamp=at, containers=(whole,))

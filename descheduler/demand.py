"""What a pod asks of a node, counted as kube-scheduler counts it.   Pure.

Two questions that differ: what a pod *holds* where it runs (after an in-place resize the larger of what is asked and
what was given), and what its replacement will *ask* (its spec alone).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cluster.objects import Container, Pod, PodSpec, PodStatus
from descheduler.memo import Memo
from policy import quantities

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

NOMINAL_CPU_MILLI: Final = 100
NOMINAL_MEMORY_BYTES: Final = 200 * 1024 * 1024
"""What kube-scheduler assumes for a container that asks for nothing, when it compares how full nodes are."""

Amounts = dict[str, int]


class HostPort(NamedTuple):
    """A port of the node itself, which only one pod can have."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class Demand:
    """Exact amounts: milli-cpu, bytes, counts."""

    cpu: int = 0
    memory: int = 0
    storage: int = 0
    extended: Mapping[str, int] = field(default_factory=dict)
    """Everything else by resource name: devices, huge pages."""
    nominal_cpu: int = 0
    """With 100m for each container that asks for none."""
    nominal_memory: int = 0
    """With 200Mi for each container that asks for none."""
    ports: tuple[HostPort, ...] = ()


def of(spec: PodSpec) -> Demand:
    """What a pod with this spec asks of the node it goes to."""
    return _ASKED.of(spec)


def held(pod: Pod) -> Demand:
    """What the pod takes up on the node it is on."""
    by_spec = _HELD.of(pod.status)
    if by_spec is None:
        return _ASKED.of(pod.spec)
    known = by_spec.get(id(pod.spec))
    if known is None:
        # The spec is kept beside the value, so that its identity stays taken while the entry exists.
        known = by_spec[id(pod.spec)] = (pod.spec, _demand(pod.spec, _allocated(pod.status)))
    return known[1]


def _demand(spec: PodSpec, allocated: Mapping[str, Amounts]) -> Demand:
    exact = _total(spec, allocated, {})
    nominal = _total(spec, allocated, _nominal(spec))
    extended = {name: amount for name, amount in exact.items() if name not in {CPU, MEMORY, STORAGE, PODS} and amount}
    return Demand(
        cpu=exact.get(CPU, 0),
        memory=exact.get(MEMORY, 0),
        storage=exact.get(STORAGE, 0),
        extended=extended,
        nominal_cpu=nominal.get(CPU, 0),
        nominal_memory=nominal.get(MEMORY, 0),
        ports=tuple(_host_ports(spec)),
    )


def _total(spec: PodSpec, allocated: Mapping[str, Amounts], missing: Amounts) -> Amounts:
    """Containers run together with sidecars; init containers run one at a time beside the sidecars before them."""
    running: Amounts = {}
    for container in spec.containers:
        _add(running, _asked(container, allocated, missing))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        asked = _asked(container, allocated, missing)
        if container.restart_policy == "Always":
            _add(sidecars, asked)
            _add(running, asked)
            _raise(peak, sidecars)
        else:
            _raise(peak, _sum(sidecars, asked))
    _raise(running, peak)
    running.update(amounts(spec.resources.requests))  # set for the pod as a whole, these count instead
    _add(running, amounts(spec.overhead))
    return running


def _asked(container: Container, allocated: Mapping[str, Amounts], missing: Amounts) -> Amounts:
    asked = amounts(container.resources.requests)
    _raise(asked, allocated.get(container.name, {}))
    for name, amount in missing.items():
        asked.setdefault(name, amount)
    return asked


def _nominal(spec: PodSpec) -> Amounts:
    """No assumption is needed for what the pod as a whole asks for."""
    assumed = {CPU: NOMINAL_CPU_MILLI, MEMORY: NOMINAL_MEMORY_BYTES}
    return {name: amount for name, amount in assumed.items() if name not in spec.resources.requests}


def amounts(texts: Mapping[str, str]) -> Amounts:
    """Quantities as numbers: thousandths for cpu, whole units for everything else."""
    return {name: quantities.milli(text) if name == CPU else quantities.value(text) for name, text in texts.items()}


def _allocated(status: PodStatus) -> dict[str, Amounts]:
    statuses = status.container_statuses + status.init_container_statuses
    return {it.name: amounts(it.allocated_resources) for it in statuses if it.allocated_resources}


def _host_ports(spec: PodSpec) -> Iterable[HostPort]:
    sidecars = (it for it in spec.init_containers if it.restart_policy == "Always")
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    total = dict(one)
    _add(total, other)
    return total


def _raise(total: Amounts, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)


def _by_spec(status: PodStatus) -> dict[int, tuple[PodSpec, Demand]] | None:
    return {} if _allocated(status) else None


_ASKED: Memo[PodSpec, Demand] = Memo(lambda spec: _demand(spec, {}))
_HELD: Memo[PodStatus, dict[int, tuple[PodSpec, Demand]] | None] = Memo(_by_spec)

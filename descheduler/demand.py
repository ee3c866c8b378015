"""What a pod asks of a node, counted as kube-scheduler counts it.   Pure.

Two questions that differ: what a pod *holds* where it runs (after an in-place resize the larger of what is asked and
what was given), and what its replacement will *ask* (its spec alone).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cluster.objects import Container, Pod, PodSpec, PodStatus
from cluster.pod import ContainerStatus
from descheduler.memo import Memo
from policy import quantities

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
COMPARED: Final = (CPU, MEMORY, PODS)
"""What nodes are compared by."""
HUGE_PAGES: Final = "hugepages-"

NOMINAL_CPU_MILLI: Final = 100
NOMINAL_MEMORY_BYTES: Final = 200 * 1024 * 1024
"""What kube-scheduler assumes for a container that asks for nothing, when it compares how full nodes are."""

Amounts = dict[str, int]
Texts = Mapping[str, str]


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
    return _ASKED.of(pod.spec) if by_spec is None else by_spec.of(pod.spec)


def _held(spec: PodSpec, given: _Given) -> Demand:
    """Nearly always what is asked, and then the very same object: kubelets report on every container."""
    asked, found = _ASKED.of(spec), _demand(spec, given)
    return asked if found == asked else found


class _Given:
    """What kubelets report as given, against what specs ask: an in-place resize makes them differ for a while."""

    def __init__(self, status: PodStatus | None = None) -> None:
        self._infeasible = status is not None and _infeasible(status)
        self._containers = {} if status is None else _reported(status)
        self._whole = None if status is None else status.resources
        self._whole_allocated = {} if status is None else status.allocated_resources

    def container(self, container: Container, *, lasting: bool) -> Amounts:
        """For a container that runs as long as the pod; init containers count with what they ask."""
        status = self._containers.get(container.name) if lasting else None
        asked = container.resources.requests
        if status is None or status.resources is None:
            return amounts(asked)
        return self._effective(asked, status.resources.requests, status.allocated_resources)

    def whole(self, spec: PodSpec) -> Amounts:
        """Of what is set for the pod as a whole. Cpu, memory and huge pages can be; nothing else counts."""
        asked = {name: text for name, text in spec.resources.requests.items() if _for_whole_pods(name)}
        if self._whole is None or not asked:
            return amounts(asked)
        found = self._effective(spec.resources.requests, self._whole.requests, self._whole_allocated)
        return {name: found.get(name, 0) for name in asked}

    def _effective(self, asked: Texts, actuated: Texts, allocated: Texts) -> Amounts:
        """The largest, but a resize that the kubelet calls infeasible is not going to happen."""
        total = {} if self._infeasible else amounts(asked)
        _raise(total, amounts(actuated))
        _raise(total, amounts(allocated))
        return total


def _reported(status: PodStatus) -> dict[str, ContainerStatus]:
    return {it.name: it for it in (*status.container_statuses, *status.init_container_statuses)}


def _infeasible(status: PodStatus) -> bool:
    found = status.condition("PodResizePending")
    return found is not None and found.reason == "Infeasible"


def _for_whole_pods(name: str) -> bool:
    return name in {CPU, MEMORY} or name.startswith(HUGE_PAGES)


def _demand(spec: PodSpec, given: _Given) -> Demand:
    exact = _total(spec, given, {})
    nominal = _total(spec, given, _nominal(spec, exact))
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


def _total(spec: PodSpec, given: _Given, missing: Amounts) -> Amounts:
    """Containers run together with sidecars; init containers run one at a time beside the sidecars before them."""
    running: Amounts = {}
    for container in spec.containers:
        _add(running, missing | given.container(container, lasting=True))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        lasting = container.restart_policy == "Always"
        asked = missing | given.container(container, lasting=lasting)
        if lasting:
            _add(sidecars, asked)
            _add(running, asked)
            _raise(peak, sidecars)
        else:
            _raise(peak, _sum(sidecars, asked))
    _raise(running, peak)
    running.update(given.whole(spec))  # set for the pod as a whole, these count instead
    _add(running, amounts(spec.overhead))
    return running


def _nominal(spec: PodSpec, exact: Amounts) -> Amounts:
    """Assumed for containers that do not say; where the pod as a whole says something, only for what nobody says."""
    assumed = {CPU: NOMINAL_CPU_MILLI, MEMORY: NOMINAL_MEMORY_BYTES}
    if not any(_for_whole_pods(name) for name in spec.resources.requests):
        return assumed
    return {name: amount for name, amount in assumed.items() if name not in exact}


def amounts(texts: Mapping[str, str]) -> Amounts:
    """Quantities as numbers: thousandths for cpu, whole units for everything else."""
    return {name: quantities.milli(text) if name == CPU else quantities.value(text) for name, text in texts.items()}


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


def _by_spec(status: PodStatus) -> Memo[PodSpec, Demand] | None:
    """What pods with this status hold, by spec; None if it is what they ask. Pods of a DaemonSet share a status for
    as long as there are any, and each of them has a spec that goes with its node.
    """
    told = any(it.resources is not None for it in _reported(status).values())
    if not told and status.resources is None:
        return None
    given = _Given(status)  # all that is needed of the status, which would otherwise live as long as what follows
    return Memo(lambda spec: _held(spec, given))


_ASKED: Memo[PodSpec, Demand] = Memo(lambda spec: _demand(spec, _Given()))
_HELD: Memo[PodStatus, Memo[PodSpec, Demand] | None] = Memo(_by_spec)

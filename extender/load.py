"""How much of a node its pods ask for, as kube-scheduler counts when it compares nodes.   Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from cluster.pod import Container
from extender.objects import PlacedSpec
from policy import quantities

NOMINAL_CPU_MILLI: Final = 100
NOMINAL_MEMORY_BYTES: Final = 200 * 1024 * 1024
"""What kube-scheduler assumes for a container that asks for nothing."""


class Amount(NamedTuple):
    """Cpu in thousandths, memory in bytes, and pods."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def plus(self, other: "Amount", times: int = 1) -> "Amount":
        """The sum; with -1 the difference."""
        return Amount(
            self.cpu + times * other.cpu, self.memory + times * other.memory, self.pods + times * other.pods
        )


NOTHING: Final = Amount()


def asked(spec: PlacedSpec) -> Amount:
    """By one pod: all its containers together, or an init container that needs more than they, and its overhead."""
    running, peak = NOTHING, NOTHING
    for container in spec.init_containers:
        needed = _of(container)
        peak = _larger(peak, running.plus(needed))
        if container.restart_policy == "Always":  # a sidecar, which goes on
            running = running.plus(needed)
    for container in spec.containers:
        running = running.plus(_of(container))
    whole, total = spec.resources.requests, _larger(running, peak)
    cpu, memory = _read(whole, default=total)
    over = _read(spec.overhead, default=NOTHING)
    return Amount(cpu + over[0], memory + over[1], 1)


def allocatable(texts: Mapping[str, str]) -> Amount:
    """Of a node."""
    cpu, memory = _read(texts, default=NOTHING)
    return Amount(cpu, memory, quantities.value(texts.get("pods", "0")))


def share(taken: Amount, room: Amount) -> float:
    """The largest share that is taken of anything, at most 1."""
    shares = (part / whole for part, whole in zip(taken, room, strict=True) if whole > 0)
    return min(1.0, max(0.0, *shares, 0.0))


def _of(container: Container) -> Amount:
    return Amount(
        *_read(container.resources.requests, default=Amount(NOMINAL_CPU_MILLI, NOMINAL_MEMORY_BYTES)),
    )


def _read(texts: Mapping[str, str], *, default: Amount) -> tuple[int, int]:
    cpu, memory = texts.get("cpu"), texts.get("memory")
    return (
        default.cpu if cpu is None else quantities.milli(cpu),
        default.memory if memory is None else quantities.value(memory),
    )


def _larger(one: Amount, other: Amount) -> Amount:
    return Amount(max(one.cpu, other.cpu), max(one.memory, other.memory))

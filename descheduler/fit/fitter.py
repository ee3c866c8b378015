"""Asks every predicate, the cheap ones first.   Pure; looks at one picture and follows it as moves are booked."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.objects import Pod
from descheduler import demand
from descheduler.fit import node_rules, room
from descheduler.fit.misfit import FitCode, Misfit
from descheduler.picture import Picture


class Fitter:
    """Whether pods fit nodes as the picture shows them.

    A pod that was `take`n from the picture does not stand in its own way; one that was not counts like any other.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    def fits(self, pod: Pod, name: str) -> bool:
        """Whether `misfits` would be empty, found as fast as possible."""
        found = self._picture.state.nodes.get(name)
        if found is None or found.node is None:
            return False
        spec = pod.spec
        asked = demand.of(spec)
        return (
            room.enough(self._picture, found, asked)
            and node_rules.allowed(spec, found.node)
            and not (spec.scheduling_gates or spec.resource_claims)
            and not (asked.ports and any(room.ports(self._picture, name, asked)))
        )

    def misfits(self, pod: Pod, name: str) -> tuple[Misfit, ...]:
        """Every reason why the pod does not fit the node; none means that it does."""
        return tuple(self._misfits(pod, name))

    def _misfits(self, pod: Pod, name: str) -> Iterator[Misfit]:
        found = self._picture.state.nodes.get(name)
        if found is None or found.node is None:
            yield Misfit(FitCode.NODE_UNKNOWN, f"there is no node {name}")
            return
        asked = demand.of(pod.spec)
        yield from _anywhere(pod)
        yield from room.misfits(self._picture, found, asked)
        yield from node_rules.misfits(pod.spec, found.node)
        yield from room.ports(self._picture, name, asked)


def _anywhere(pod: Pod) -> Iterator[Misfit]:
    """What stands against every node."""
    if pod.spec.scheduling_gates:
        names = ", ".join(it.name for it in pod.spec.scheduling_gates)
        yield Misfit(FitCode.SCHEDULING_GATES, f"held back by {names}")
    if pod.spec.resource_claims:
        names = ", ".join(it.name for it in pod.spec.resource_claims)
        yield Misfit(FitCode.RESOURCE_CLAIMS, f"needs claimed devices: {names}")

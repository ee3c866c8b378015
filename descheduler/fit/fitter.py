"""Asks every predicate, the cheap ones first.   Pure; looks at one picture and follows it as moves are booked."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.objects import Node, Pod
from descheduler import demand
from descheduler.fit import node_rules, room, spread, storage
from descheduler.fit.crowd import Crowd
from descheduler.fit.misfit import FitCode, Misfit
from descheduler.fit.neighbours import Neighbours
from descheduler.fit.spread import Spread
from descheduler.fit.storage import Needs
from descheduler.node_state import Key
from descheduler.picture import Picture


class Fitter:
    """Whether pods fit nodes as the picture shows them.

    A pod that was `take`n from the picture does not stand in its own way; one that was not counts like any other.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._crowd = Crowd(picture.state)
        self._relations: dict[tuple[int, int, str], Relations] = {}
        self._storage: dict[Key, tuple[Pod, Needs | None]] = {}

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
            and not ((pod.claims or spec.volumes) and any(self._volumes(pod, found.node)))
            and self._related(pod).fits(found.node)
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
        yield from self._volumes(pod, found.node)
        yield from self._related(pod).misfits(found.node)

    def stays_even(self, pod: Pod, name: str) -> bool:
        """Whether moving the pod, which was taken, makes its own spread no worse than its constraints allow."""
        nodes = self._picture.state.nodes
        source, target = nodes.get(pod.node_name), nodes.get(name)
        if source is None or source.node is None or target is None or target.node is None:
            return True
        return self._related(pod).stays_even(source.node, target.node)

    def _volumes(self, pod: Pod, node: Node) -> Iterator[Misfit]:
        known = self._storage.get(pod.metadata.key)
        if known is None or known[0] is not pod:
            known = self._storage[pod.metadata.key] = pod, storage.needs(self._picture.state, pod)
        if known[1] is not None:
            yield from storage.misfits(self._picture, pod, known[1], node)

    def _related(self, pod: Pod) -> Relations:
        """Siblings ask the same questions, so they are counted once for all of them."""
        key = id(pod.spec), id(pod.metadata.labels), pod.metadata.namespace
        found = self._relations.get(key)
        if found is None:
            found = self._relations[key] = Relations(self._picture, self._crowd, pod)
        return found


class Relations:
    """Everything about a pod that depends on where other pods are. Keeps the pod, whose parts are its key."""

    def __init__(self, picture: Picture, crowd: Crowd, pod: Pod) -> None:
        self._pod = pod
        self._neighbours = Neighbours(picture, crowd, pod)
        self._spread = Spread(picture, crowd, pod) if spread.binding(pod) else None

    def fits(self, node: Node) -> bool:
        """Whether `misfits` would be empty."""
        return self._neighbours.fits(node) and (self._spread is None or self._spread.fits(node))

    def stays_even(self, source: Node, target: Node) -> bool:
        """See Spread.stays_even."""
        return self._spread is None or self._spread.stays_even(source, target)

    def misfits(self, node: Node) -> Iterator[Misfit]:
        """Every reason on this side."""
        yield from self._neighbours.misfits(node)
        if self._spread is not None:
            yield from self._spread.misfits(node)


def _anywhere(pod: Pod) -> Iterator[Misfit]:
    """What stands against every node."""
    if pod.spec.scheduling_gates:
        names = ", ".join(it.name for it in pod.spec.scheduling_gates)
        yield Misfit(FitCode.SCHEDULING_GATES, f"held back by {names}")
    if pod.spec.resource_claims:
        names = ", ".join(it.name for it in pod.spec.resource_claims)
        yield Misfit(FitCode.RESOURCE_CLAIMS, f"needs claimed devices: {names}")

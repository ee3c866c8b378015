"""Which node a pod should go to: by its intent first, then as kube-scheduler would score.   Pure.

The replacement is only told its target, it is the scheduler that places it. So the target is one the scheduler would
like as well: fewest pods of the same workload on the node, then in the zone, then the least loaded. Nodes are kept
in the order of their load and the search stops at the first that will do, because a cluster has thousands of them.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Final

from cluster.objects import Pod
from descheduler import demand
from descheduler.fit import Fitter
from descheduler.node_state import Key, NodeState
from descheduler.nowhere import Nowhere, Question
from descheduler.picture import Picture
from descheduler.proposal import Aim
from policy import keys
from policy.capacity import CapacityType

COMPARED: Final = 4
"""Nodes that will do, of which the one least loaded after the move is taken. Load before the move is what they are
ordered by; the difference matters only where nodes differ in size."""

Group = tuple[bool, str]
"""Spot or not, and the zone."""
Template = tuple[int, int, str]
"""Identity of what siblings share (spec and labels), and the namespace."""


@dataclass(slots=True)
class Spread:
    """Where the pods of one workload will be."""

    nodes: Counter[str] = field(default_factory=Counter)
    zones: Counter[str] = field(default_factory=Counter)


class Places:
    """The open nodes in the order of their load, kept as moves are booked."""

    def __init__(self, picture: Picture, fitter: Fitter) -> None:
        self._picture = picture
        self._fitter = fitter
        self._groups: dict[Group, list[tuple[float, str]]] = {}
        self._loads: dict[str, float] = {}
        self._spreads: dict[Key, Spread] = {}
        for name, node in picture.state.nodes.items():
            if node.open:
                self._loads[name] = load = picture.load(name)
                self._groups.setdefault(_group(node), []).append((load, name))
        for members in self._groups.values():
            members.sort()
        self._nowhere = Nowhere(picture, self._loads)

    # ---- reading

    def names(self, *, spot: bool | None = None) -> Iterator[str]:
        """Open nodes, in no order; of one capacity if it is given."""
        for name in self._loads:
            if spot is None or _is_spot(self._picture.state.nodes[name]) is spot:
                yield name

    def count(self, *, spot: bool | None, but: str) -> int:
        """How many open nodes there are, of one capacity if it is given, without this one."""
        found = sum(len(members) for (is_spot, _), members in self._groups.items() if spot is None or is_spot is spot)
        out = but in self._loads and (spot is None or _is_spot(self._picture.state.nodes[but]) is spot)
        return found - out

    def choose(self, pod: Pod, *, spot: bool | None, aim: Aim | None = None, even: bool = False) -> str | None:
        """The best node for a pod that has left its own in the picture; None if none will do.

        `spot` limits the choice to spot nodes or to the others; `even` to those that do not unbalance its spread.
        """
        asked = Question(pod, spot, aim)
        if self._nowhere.is_known(asked):
            return None
        spread = self._spread(pod)
        self._count(spread, pod.node_name, -1)
        found = self._search(pod, spread, spot, aim, even=even)
        self._count(spread, pod.node_name, 1)
        if found is None:
            self._nowhere.learn(asked, self._below(asked.ceiling, spot))
        return found

    # ---- keeping up with the picture

    def moved(self, pod: Pod, target: str | None) -> None:
        """A move was booked in the picture."""
        self._nowhere.booked += 1
        spread = self._spread(pod)
        for name, change in ((pod.node_name, -1), (target, 1)):
            if name:
                self._reorder(name)
                self._count(spread, name, change)

    def unmoved(self, pod: Pod, target: str | None) -> None:
        """A move was taken back in the picture."""
        self._nowhere.booked += 1
        spread = self._spread(pod)
        for name, change in ((pod.node_name, 1), (target, -1)):
            if name:
                self._reorder(name)
                self._count(spread, name, change)

    def _count(self, spread: Spread, name: str, change: int) -> None:
        if name:
            spread.nodes[name] += change
            spread.zones[self._zone(name)] += change

    def _reorder(self, name: str) -> None:
        before = self._loads.get(name)
        if before is None:
            return
        members = self._groups[_group(self._picture.state.nodes[name])]
        del members[bisect.bisect_left(members, (before, name))]
        self._loads[name] = load = self._picture.load(name)
        bisect.insort(members, (load, name))

    # ---- the search

    def _search(self, pod: Pod, spread: Spread, spot: bool | None, aim: Aim | None, *, even: bool) -> str | None:
        ceiling = math.inf if aim is None else aim.ceiling()
        orders = self._without_siblings(spread, spot, ceiling), self._with_siblings(spread, spot, ceiling)
        for names in orders:
            wanted = (name for name in names if self._serves(pod, name, aim, even=even))
            best = list(islice(wanted, COMPARED))
            if best:
                return self._least(pod, best, spread)
        return None

    def _serves(self, pod: Pod, name: str, aim: Aim | None, *, even: bool) -> bool:
        if name == pod.node_name or (aim is not None and aim.objection(self._picture, pod, name) is not None):
            return False
        return self._fitter.fits(pod, name) and not (even and not self._fitter.stays_even(pod, name))

    def _without_siblings(self, spread: Spread, spot: bool | None, ceiling: float) -> Iterator[str]:
        """Zones with the fewest pods of the workload first; zones with as many as each other together."""
        levels: dict[int, list[list[tuple[float, str]]]] = {}
        for (is_spot, zone), members in self._groups.items():
            if spot is None or is_spot is spot:
                levels.setdefault(spread.zones[zone] if zone else 0, []).append(members)
        for level in sorted(levels):
            for load, name in heapq.merge(*levels[level]):
                if load >= ceiling:
                    break
                if spread.nodes[name] <= 0:
                    yield name

    def _below(self, ceiling: float, spot: bool | None) -> Iterator[str]:
        """All that a search tries before it finds none."""
        for (is_spot, _), members in self._groups.items():
            if spot is None or is_spot is spot:
                yield from (name for _, name in takewhile(lambda it: it[0] < ceiling, members))

    def _with_siblings(self, spread: Spread, spot: bool | None, ceiling: float) -> Iterator[str]:
        """Made only when asked for: no other node will do then."""
        nodes, loads = self._picture.state.nodes, self._loads
        held = [name for name, count in spread.nodes.items() if count > 0 and loads.get(name, ceiling) < ceiling]
        wanted = [name for name in held if spot is None or _is_spot(nodes[name]) is spot]
        yield from sorted(
            wanted, key=lambda name: (spread.nodes[name], spread.zones[self._zone(name)], loads[name], name)
        )

    def _least(self, pod: Pod, names: list[str], spread: Spread) -> str:
        def rank(name: str) -> tuple[int, int, float, str]:
            zone = self._zone(name)
            return spread.nodes[name], spread.zones[zone] if zone else 0, load_with(self._picture, pod, name), name

        return min(names, key=rank)

    def _spread(self, pod: Pod) -> Spread:
        workload = self._picture.state.workload(pod)
        if workload is None:
            return Spread()
        found = self._spreads.get(workload.key)
        if found is None:
            found = self._spreads[workload.key] = Spread()
            for _, sibling in self._picture.state.siblings(workload):
                if sibling.node_name:
                    self._count(found, sibling.node_name, 1)
        return found

    def _zone(self, name: str) -> str:
        return _zone(self._picture.state.nodes[name])


def template(pod: Pod) -> Template:
    """Pods with the same one fit the same nodes, unless they mount claims or mind where their siblings are."""
    return id(pod.spec), id(pod.metadata.labels), pod.metadata.namespace


def load_with(picture: Picture, pod: Pod, name: str) -> float:
    """How full the node would be with the pod on it."""
    return max(shares_with(picture, pod, name))


def shares_with(picture: Picture, pod: Pod, name: str) -> tuple[float, float, float]:
    """Cpu, memory and pods in percent, with the pod on the node."""
    asked = demand.of(pod.spec)
    offered = picture.state.nodes[name].allocatable
    cpu, memory, pods = picture.shares(name)
    return (
        cpu + share_of(asked.nominal_cpu, offered.get(demand.CPU, 0)),
        memory + share_of(asked.nominal_memory, offered.get(demand.MEMORY, 0)),
        pods + share_of(1, offered.get(demand.PODS, 0)),
    )


def share_of(amount: float, offered: int) -> float:
    """In percent; of nothing, everything is too much."""
    return 100.0 * amount / offered if offered > 0 else math.inf


def _group(node: NodeState) -> Group:
    return _is_spot(node), _zone(node)


def _is_spot(node: NodeState) -> bool:
    return node.capacity is CapacityType.SPOT


def _zone(node: NodeState) -> str:
    return node.node.metadata.labels.get(keys.ZONE, "") if node.node is not None else ""

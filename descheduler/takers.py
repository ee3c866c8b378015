"""Nodes that could take something yet, and whether one of them might take a given pod.   Pure; follows a picture.

A search asks every node. Where nearly all of them are too full that is pods times nodes, and all for nothing; so this
is asked before, and goes by what is known of all pods of a template at once: capacity, taints, selectors, requests.
What other pods and volumes demand it leaves to the search. So "none" is sure, and "some" is worth a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from cluster.objects import Pod, PodSpec
from descheduler import demand
from descheduler.fit import node_rules, room
from descheduler.node_state import NodeState
from descheduler.picture import Picture
from descheduler.search import Tier
from descheduler.usage import Measured
from policy.capacity import CapacityType


class Room(Enum):
    """Whether there is a node that might take a pod."""

    SOME = auto()
    UNKNOWN = auto()
    """Only such of which it is not known well enough what they use."""
    NONE = auto()


@dataclass(frozen=True, slots=True)
class Taker:
    """A node, and what pods that come may use there."""

    node: NodeState
    left: Measured


@dataclass(slots=True)
class _Front:
    """Takers of one template, found as far as was asked: each has less cpu left and more memory than the one before
    it. Others are not kept, for who does not fit there would not fit on them either.
    """

    rest: Iterator[Taker]
    """By cpu, those with most left first."""
    suits: Callable[[NodeState], bool]
    found: list[Taker] = field(default_factory=list)
    unsure: bool | None = None

    def takes(self, used: Measured) -> bool:
        """Whether there is a node with so much left."""
        return any(_covers(it.left, used) for it in self.found) or any(_covers(it.left, used) for it in self._more())

    def _more(self) -> Iterator[Taker]:
        for taker in self.rest:
            more = not self.found or taker.left.memory > self.found[-1].left.memory
            if more and self.suits(taker.node):
                self.found.append(taker)
                yield taker


class Takers:
    """Belongs to one plan, whose picture it has to be shown after every booking."""

    def __init__(
        self,
        known: Sequence[NodeState],
        unknown: Sequence[NodeState],
        left: Callable[[Picture, NodeState], Measured | None],
    ) -> None:
        """`left`: what a known node can take yet; None if nothing."""
        self._known = {it.name: it for it in known}
        self._unknown = unknown
        self._left = left
        self._picture: Picture | None = None
        self._seen = 0
        self._takers: dict[str, Taker] = {}
        self._order: list[Taker] = []
        self._fronts: dict[tuple[int, tuple[Tier, ...]], _Front] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no node could take anything, whatever it is."""
        return self._picture is not None and not self._takers and not self._unknown

    def follow(self, picture: Picture) -> None:
        """Catch up with what was booked."""
        if picture is not self._picture:
            self._picture, self._takers, names = picture, {}, set(self._known)
        else:
            names = {it.node for it in picture.changes[self._seen :]} & self._known.keys()
        self._seen = len(picture.changes)
        if sum(self._renew(name, picture) for name in names):
            self._order = sorted(self._takers.values(), key=lambda it: (-it.left.cpu, it.node.name))
            self._fronts.clear()

    def room(self, pod: Pod, used: Measured, tiers: tuple[Tier, ...]) -> Room:
        """For a pod that uses so much and may go to this capacity. Some, as long as no picture was shown."""
        if self._picture is None:
            return Room.SOME
        key = id(pod.spec), tiers
        front = self._fronts.get(key)
        if front is None:
            front = self._fronts[key] = _Front(iter(self._order), _suiting(pod.spec, tiers, self._picture))
        if front.takes(used):
            return Room.SOME
        if front.unsure is None:
            front.unsure = any(map(front.suits, self._unknown))
        return Room.UNKNOWN if front.unsure else Room.NONE

    def _renew(self, name: str, picture: Picture) -> bool:
        """Whether it can take something, or could before."""
        node = self._known[name]
        before, left = self._takers.pop(name, None), self._left(picture, node)
        if left is not None:
            self._takers[name] = Taker(node, left)
        return before is not None or left is not None


def _suiting(spec: PodSpec, tiers: tuple[Tier, ...], picture: Picture) -> Callable[[NodeState], bool]:
    asked = demand.of(spec)

    def suits(found: NodeState) -> bool:
        on_spot = found.capacity is CapacityType.SPOT
        wanted = any(tier is None or tier is on_spot for tier in tiers)
        allowed = wanted and found.node is not None and node_rules.allowed(spec, found.node)
        return allowed and room.enough(picture, found, asked)

    return suits


def _covers(left: Measured, used: Measured) -> bool:
    return used.cpu <= left.cpu and used.memory <= left.memory

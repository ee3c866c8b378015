"""Specs for which no node will do, so that pods with the same one need not ask again.   Pure; follows a picture.

Goes by what all pods of a spec have in common: capacity, taints, selectors and requests, and what an aim says of them
where it says the same for all. Labels and claims differ from pod to pod in StatefulSets and indexed Jobs; what
follows from those, and from other pods, is left to the search. So what is known here is sure, whoever asks.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from cluster.objects import Pod
from descheduler import demand
from descheduler.fit import node_rules, room
from descheduler.picture import Picture
from descheduler.proposal import Aim, OfSpec
from policy.capacity import CapacityType

Key = tuple[int, bool | None, Hashable]
"""Identity of the spec, the capacity asked for, and the aim; None for any aim."""


@dataclass(frozen=True, slots=True)
class Question:
    """Who looks for a node, and what for."""

    pod: Pod
    spot: bool | None
    aim: Aim | None

    @property
    def plain(self) -> Key:
        """The same without its aim: where nothing has room, no aim is served."""
        return id(self.pod.spec), self.spot, None

    @property
    def ceiling(self) -> float:
        """Nodes that are this full or fuller are not even tried."""
        return math.inf if self.aim is None else self.aim.ceiling()

    @property
    def aimed(self) -> Key | None:
        """None if the aim has to be asked for every pod."""
        alike = None if self.aim is None else self.aim.alike()
        return (id(self.pod.spec), self.spot, alike) if isinstance(alike, OfSpec) else None


@dataclass(slots=True)
class _Answer:
    """No node will do, but for those that were not asked."""

    seen: int
    """Changes of the picture that it knows of."""
    booked: int
    unsure: set[str] = field(default_factory=set)
    """Nodes that were not asked: a pod is not sent to where it is."""


class Nowhere:
    """Belongs to one plan. `loads`: the open nodes, kept up to date by whoever books."""

    def __init__(self, picture: Picture, loads: Mapping[str, float]) -> None:
        self._picture = picture
        self._loads = loads
        self._known: dict[Key, _Answer] = {}
        self._witnesses: dict[Key, str] = {}
        self.booked = 0
        """Grows with every booking. An aim may look at more nodes than the one it is asked about."""

    def is_known(self, asked: Question) -> bool:
        """Whether no node will do. If not, it is not known."""
        if not self._known:
            return False
        if self._holds(asked.plain, asked, None):
            return True
        aimed = asked.aimed
        return aimed is not None and self._holds(aimed, asked, asked.aim)

    def learn(self, asked: Question, tried: Iterable[str]) -> None:
        """None of those that were tried will do, and others are too full for the aim: see whether that is so for
        every pod of the spec.
        """
        aimed = asked.aimed
        if aimed is not None:
            self._remember(aimed, asked, asked.aim, tried)
        elif asked.ceiling == math.inf:
            self._remember(asked.plain, asked, None, tried)

    def _remember(self, key: Key, asked: Question, aim: Aim | None, tried: Iterable[str]) -> None:
        """Unless there is one that might do for another pod; the same one next time, most likely."""
        own, witness = asked.pod.node_name, self._witnesses.get(key, "")
        for name in chain((witness,), tried):
            if name != own and self._suits(name, asked, aim):
                self._witnesses[key] = name
                return
        self._known[key] = _Answer(self._picture.bookings, self.booked, {own})

    def _holds(self, key: Key, asked: Question, aim: Aim | None) -> bool:
        """Only nodes that something has come to or left since can have changed."""
        known, changes = self._known.get(key), self._picture.changes
        if known is None:
            return False
        if len(changes) - known.seen > len(self._loads) or (aim is not None and known.booked != self.booked):
            del self._known[key]
            return False
        known.unsure.update(change.node for change in changes[known.seen :])
        known.seen = len(changes)
        own = asked.pod.node_name
        if any(self._suits(name, asked, aim) for name in known.unsure if name != own):
            del self._known[key]
            return False
        known.unsure &= {own}
        return True

    def _suits(self, name: str, asked: Question, aim: Aim | None) -> bool:
        load = self._loads.get(name)
        if load is None or (aim is not None and load >= asked.ceiling):
            return False
        found, spec = self._picture.state.nodes[name], asked.pod.spec
        if asked.spot is not None and (found.capacity is CapacityType.SPOT) is not asked.spot:
            return False
        if not room.enough(self._picture, found, demand.of(spec)):
            return False
        allowed = found.node is not None and node_rules.allowed(spec, found.node)
        return allowed and (aim is None or aim.objection(self._picture, asked.pod, name) is None)

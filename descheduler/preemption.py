"""Room that kube-scheduler would make for a pod by pushing out pods of lower priority.   Pure.

Counted on only where a node is being lost and a critical pod fits nowhere. The victims are chosen as the scheduler
chooses them: of a node all that are less important go, and come back in the order of their importance as long as the
pod still fits; of nodes the one where no budget is broken and the most important victim matters least. It is the
scheduler that decides in the end, when the replacement has no place. To everybody else the victims are still there: a
node that such a pod goes to is over-full and takes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from cluster.objects import Pod
from descheduler import demand
from descheduler.fit import node_rules
from descheduler.ledger import Ledger
from descheduler.search import Tier
from policy import keys

NEVER: Final = "Never"
"""The policy of a pod that waits for room instead of making it."""
LOOKED_AT: Final = 500
"""Nodes for one pod at most: enough to choose from, and a zone of pods is planned in one go."""
TAKEN: Final = 30_000
"""Pods that one plan takes away for a try, some 0.2 s. After that a pod gets the best of a few nodes only."""
FEW: Final = 10


@dataclass(frozen=True, slots=True)
class Room:
    """A node, and who would have to go there."""

    node: str
    victims: tuple[Pod, ...]
    guarded: int
    """Of them, those whose budget allows no disruption, or none after that of the others."""

    @property
    def cost(self) -> tuple[int, int, int, int, str]:
        """What the scheduler goes by: budgets, the highest priority among the victims, their sum, their number."""
        priorities = [it.spec.priority for it in self.victims]
        return self.guarded, max(priorities), sum(priorities), len(priorities), self.node


class Victims:
    """Those of one plan. In the picture they have left while somebody is looked at who may count on it."""

    def __init__(self) -> None:
        self._pods: list[Pod] = []
        self._gone = False

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._pods)

    def add(self, pods: Sequence[Pod], ledger: Ledger) -> None:
        """More of them; all have left then."""
        self.show(ledger, gone=True)
        self._pods += pods
        for pod in pods:
            _leave(pod, ledger)

    def show(self, ledger: Ledger, *, gone: bool) -> None:
        """Have all of them leave the picture, or come back."""
        for pod in self._pods if gone is not self._gone else ():
            if gone:
                _leave(pod, ledger)
            else:
                ledger.picture.untake(pod)
                ledger.places.unmoved(pod, None)
        self._gone = gone


def _leave(pod: Pod, ledger: Ledger) -> None:
    ledger.picture.take(pod)
    ledger.places.moved(pod, None)


class Rooms:
    """Looks for room for the pods of one plan."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._left = TAKEN

    def find(self, pod: Pod, tiers: Sequence[Tier]) -> Room | None:
        """The cheapest room, in the better tier if there is any. The pod itself has left its node in the picture."""
        if pod.spec.preemption_policy == NEVER:
            return None
        for tier in tiers:
            found = min(self._rooms(pod, tier), key=lambda it: it.cost, default=None)
            if found is not None:
                return found
        return None

    def _rooms(self, pod: Pod, tier: Tier) -> Iterator[Room]:
        ledger, tried = self._ledger, 0
        for name in nsmallest(LOOKED_AT, ledger.places.names(spot=tier)):
            lower = list(_lower(pod, name, ledger))
            if not _may_do(pod, name, lower, ledger):
                continue
            if self._left <= 0 and tried >= FEW:
                return
            tried += 1
            self._left -= len(lower)
            victims = _victims(pod, name, lower, ledger)
            if victims:
                yield Room(name, victims, ledger.budgets.broken(victims))


def _may_do(pod: Pod, name: str, lower: Sequence[Pod], ledger: Ledger) -> bool:
    """Whether the pod might fit with all of them gone, found without touching the picture: every change of that is
    kept, for those who follow it.
    """
    node = ledger.state.nodes[name]
    if not lower or node.node is None or not node_rules.allowed(pod.spec, node.node):
        return False
    asked, offered, used = demand.of(pod.spec), node.allocatable, ledger.picture.used(name)
    if any(amount > offered.get(key, 0) for key, amount in asked.extended.items()):
        return False
    cpu = asked.cpu + used.cpu - offered.get(demand.CPU, 0)
    memory = asked.memory + used.memory - offered.get(demand.MEMORY, 0)
    for it in lower:
        if (cpu <= 0 or not asked.cpu) and (memory <= 0 or not asked.memory):
            return True
        held = demand.held(it)
        cpu -= held.cpu
        memory -= held.memory
    return (cpu <= 0 or not asked.cpu) and (memory <= 0 or not asked.memory)


def _victims(pod: Pod, name: str, lower: Sequence[Pod], ledger: Ledger) -> tuple[Pod, ...]:
    """The fewest that have to go for the pod to fit; none if it would not fit even then."""
    picture, fits = ledger.picture, ledger.fitter.fits
    lower = sorted(lower, key=lambda it: (-it.spec.priority, it.metadata.key))
    for it in lower:
        picture.take(it)
    enough, needed = fits(pod, name), []
    for it in lower:
        picture.untake(it)
        if enough and not fits(pod, name):
            picture.take(it)
            needed.append(it)
    for it in needed:
        picture.untake(it)
    return tuple(needed)


def _lower(pod: Pod, name: str, ledger: Ledger) -> Iterator[Pod]:
    """Pods that the scheduler may push out; what belongs to the node would only come back."""
    gone = ledger.picture.departed.get(name, ())
    for key, other in ledger.state.nodes[name].pods.items():
        owner = other.metadata.controller
        stays = (owner is not None and owner.kind == "DaemonSet") or keys.MIRROR_POD in other.metadata.annotations
        leaving = key in gone or other.metadata.deletion_timestamp is not None
        if other.spec.priority < pod.spec.priority and not leaving and not stays:
            yield other

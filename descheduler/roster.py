"""All nodes as every pass asks for them, so that a pass costs by what has changed and not by how many there are.

How nodes are described (what they offer, their labels, taints and signs) changes rarely: an answer that depends on
nothing else is kept until one of them is described otherwise. What they hold changes with every pod: it stands in
columns, of which only the rows of nodes that changed are read again. What its pods say holds for a node until one of
them, or somebody who speaks for one, says something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from descheduler import demand
from descheduler.node_state import NodeState
from policy.capacity import CapacityType

P = ParamSpec("P")
T = TypeVar("T")
FORGOTTEN_AFTER: Final = 1_000
"""Changes that are remembered at least; beyond that, and beyond the number of nodes, all columns are made anew."""


class Group:
    """Some nodes, and what each of them holds, in columns of the same order. Do not change them."""

    def __init__(self, members: Sequence[NodeState], log: Sequence[str] = ()) -> None:
        """`log`: names of nodes that have changed, which grows."""
        self.members = members
        self.offered = {name: sum(it.allocatable.get(name, 0) for it in members) for name in demand.COMPARED}
        """By resource, all of them together."""
        self.cpu = [it.nominal_cpu for it in members]
        self.memory = [it.nominal_memory for it in members]
        self.pods = [len(it.pods) for it in members]
        shares = [it.shares() for it in members]
        self.cpu_shares = [it[0] for it in shares]
        self.memory_shares = [it[1] for it in shares]
        self.levels = [it.level() for it in members]
        self.loads = [it.before for it in self.levels]
        self._places = {it.name: number for number, it in enumerate(members)}
        self._log = log
        self._read = len(log)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def place(self, name: str) -> int:
        """Its row."""
        return self._places[name]

    def up_to_date(self) -> Group:
        """Itself, once the rows of all that have changed were read again."""
        for name in set(self._log[self._read :]):
            row = self._places.get(name)
            if row is not None:
                self._read_row(row, self.members[row])
        self._read = len(self._log)
        return self

    def _read_row(self, row: int, node: NodeState) -> None:
        self.cpu[row] = node.nominal_cpu
        self.memory[row] = node.nominal_memory
        self.pods[row] = len(node.pods)
        self.cpu_shares[row], self.memory_shares[row], _ = node.shares()
        self.levels[row] = level = node.level()
        self.loads[row] = level.before


class Roster:
    """Belongs to a state, and to its thread."""

    def __init__(self, nodes: Mapping[str, NodeState]) -> None:
        self.nodes = nodes
        self._log: list[str] = []
        self._kept: dict[Any, tuple[tuple[Any, ...], Any]] = {}
        self._of_pods: dict[Any, tuple[object, dict[str, Any]]] = {}

    # ---- reading

    def once(self, question: Callable[Concatenate[Roster, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer to a question about how nodes are described, kept until one is described otherwise. What nodes
        hold must play no part in it, unless as a `Group`.
        """
        asked = (*args, *kwargs.items())
        known = self._kept.get(question)
        if known is None or known[0] != asked:
            known = self._kept[question] = asked, question(self, *args, **kwargs)
        answer: T = known[1]
        return answer

    def of_pods(self, question: Callable[..., object], asked: object) -> dict[str, Any]:
        """By node: what was found out about its pods when the same was asked before, and holds still. Whoever asks
        adds what is missing.
        """
        known = self._of_pods.get(question)
        if known is None or (known[0] is not asked and known[0] != asked):
            known = self._of_pods[question] = asked, {}
        return known[1]

    def group(self, members: Sequence[NodeState]) -> Group:
        """For the answer to such a question: columns that follow what the nodes hold."""
        return Group(members, self._log)

    def everyone(self) -> Group:
        """All nodes that exist, by name."""
        return self.once(_everyone).up_to_date()

    def spot(self) -> frozenset[str]:
        """Names of the spot nodes."""
        return self.once(_spot)

    def signed(self) -> tuple[NodeState, ...]:
        """Those that carry any sign."""
        return self.once(_signed)

    def has_open(self, *, spot: bool) -> bool:
        """Whether there is a node of this capacity that a pod may be sent to."""
        return spot in self.once(_open_capacities)

    # ---- for the one writer

    def described(self) -> None:
        """A node was added, removed or described otherwise."""
        self._kept.clear()
        self._log = []

    def heard(self, name: str) -> None:
        """A pod of a node has changed, or what it belongs to, or the node itself."""
        for _, known in self._of_pods.values():
            known.pop(name, None)

    def changed(self, name: str) -> None:
        """What a node holds has changed."""
        self.heard(name)
        self._log.append(name)
        if len(self._log) > max(FORGOTTEN_AFTER, len(self.nodes)):
            self.described()


def _everyone(roster: Roster) -> Group:
    return roster.group([roster.nodes[name] for name in sorted(roster.nodes) if roster.nodes[name].node is not None])


def _spot(roster: Roster) -> frozenset[str]:
    return frozenset(name for name, it in roster.nodes.items() if it.capacity is CapacityType.SPOT)


def _signed(roster: Roster) -> tuple[NodeState, ...]:
    return tuple(it for it in roster.nodes.values() if it.node is not None and it.signed)


def _open_capacities(roster: Roster) -> frozenset[bool]:
    return frozenset(it.capacity is CapacityType.SPOT for it in roster.nodes.values() if it.open)

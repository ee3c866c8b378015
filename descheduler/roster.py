"""All nodes as every pass asks for them, so that a pass costs by what has changed and not by how many there are.

How nodes are described (what they offer, their labels, taints and signs) changes rarely: an answer that depends on
nothing else is kept until one of them is described otherwise. What they hold changes with every pod: it stands in
columns, of which only the rows of nodes that changed are read again. What a pod says holds until it, or somebody who
speaks for it, says something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from cluster.objects import Pod
from descheduler import demand
from descheduler.node_state import Key, NodeState
from policy.capacity import CapacityType

P = ParamSpec("P")
T = TypeVar("T")
FORGOTTEN_AFTER: Final = 1_000
"""Changes that are remembered at least; beyond that, and beyond the number of nodes, all columns are made anew."""


MOST_CHANGED: Final = 200
"""Pods of a node that are remembered to be tested again; if nobody asks for them, all of the node are forgotten."""


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


class Sift:
    """Which pods of each node pass a test. Only those that have changed are tested again."""

    def __init__(self, asked: object) -> None:
        """`asked`: what the test goes by, besides the pod and those who speak for it."""
        self.asked = asked
        self._passed: dict[str, set[Key]] = {}
        self._changed: dict[str, set[Key]] = {}

    def of(self, node: NodeState, test: Callable[[Pod], bool]) -> AbstractSet[Key]:
        """Those of one node."""
        passed = self._passed.get(node.name)
        if passed is None:
            passed = self._passed[node.name] = {key for key, pod in node.pods.items() if test(pod)}
        for key in self._changed.pop(node.name, ()):
            pod = node.pods.get(key)
            if pod is not None and test(pod):
                passed.add(key)
            else:
                passed.discard(key)
        return passed

    def heard(self, name: str, key: Key) -> None:
        """A pod has changed, come or gone."""
        if name in self._passed:
            changed = self._changed.setdefault(name, set())
            changed.add(key)
            if len(changed) > MOST_CHANGED:
                self.forget(name)

    def forget(self, name: str) -> None:
        """All that is known of a node."""
        self._passed.pop(name, None)
        self._changed.pop(name, None)


class Roster:
    """Belongs to a state, and to its thread."""

    def __init__(self, nodes: Mapping[str, NodeState]) -> None:
        self.nodes = nodes
        self._log: list[str] = []
        self._kept: dict[Any, tuple[tuple[Any, ...], Any]] = {}
        self._sifts: dict[Any, Sift] = {}

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

    def sift(self, question: Callable[..., object], asked: object = None) -> Sift:
        """What is known of the pods of each node from when the same was asked before."""
        known = self._sifts.get(question)
        if known is None or (known.asked is not asked and known.asked != asked):
            known = self._sifts[question] = Sift(asked)
        return known

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

    def described(self, name: str) -> None:
        """A node was added, removed or described otherwise."""
        self._forget()
        for sift in self._sifts.values():
            sift.forget(name)

    def heard(self, name: str, key: Key) -> None:
        """A pod of a node has changed, come or gone, or somebody speaks for it otherwise."""
        for sift in self._sifts.values():
            sift.heard(name, key)

    def changed(self, name: str) -> None:
        """What a node holds has changed."""
        self._log.append(name)
        if len(self._log) > max(FORGOTTEN_AFTER, len(self.nodes)):
            self._forget()

    def _forget(self) -> None:
        self._kept.clear()
        self._log = []


def _everyone(roster: Roster) -> Group:
    return roster.group([roster.nodes[name] for name in sorted(roster.nodes) if roster.nodes[name].node is not None])


def _spot(roster: Roster) -> frozenset[str]:
    return frozenset(name for name, it in roster.nodes.items() if it.capacity is CapacityType.SPOT)


def _signed(roster: Roster) -> tuple[NodeState, ...]:
    return tuple(it for it in roster.nodes.values() if it.node is not None and it.signed)


def _open_capacities(roster: Roster) -> frozenset[bool]:
    return frozenset(it.capacity is CapacityType.SPOT for it in roster.nodes.values() if it.open)

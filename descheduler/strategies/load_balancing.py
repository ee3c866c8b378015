"""LoadBalancing: relieve nodes that are fuller than the others.   Decides only; never evicts.

The load of a node is the largest of its shares of cpu, memory and pods; the mean is the same of all nodes together. A
node is a source when it is over the mean by more than `threshold` percent of it and by `floor` points. It is brought
below that line with the fewest moves, and of these with the ones that bring it half-way to the mean if any do, so
that it does not hover there. No target may be pushed over the line. Nodes together hold the same before and after a
move, so the line stays where it is, and what is moved once is not moved again. During a move they do not: the pod is
still there and its replacement already is, or neither is; so the line is drawn as if each on its way counted once.

Nodes that keep different pods away by their taints (control plane, dedicated pools) are compared, and levelled, among
themselves; the taints of spot nodes do not count, since pods are made to tolerate them.

A workload whose last move ended beside its target on a node that is too full as well rests, unless that node has been
relieved since: whatever drew its pod there (an image, a preference of its own, no webhook to guide it) would draw the
next one too.

Spot nodes are levelled among themselves as well, for their pods mostly prefer spot and may go nowhere else: where
everything prefers spot, every spot node is over the mean of all nodes, and none of them could ever be a target.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from cluster.objects import Pod, PodMigration
from descheduler import demand, memory, places, pools, resting, surplus
from descheduler.node_state import NodeState
from descheduler.picture import Picture
from descheduler.proposal import OfSpec, Proposal, Urgency
from descheduler.reasons import Code, Reason
from descheduler.resting import Held
from descheduler.roster import Group
from descheduler.state import ClusterState
from descheduler.surplus import Surplus
from descheduler.usage import Usage
from policy import capacity
from policy.capacity import CapacityType, SpotTaint
from policy.settings import Settings

NAME: Final = "LoadBalancing"
WEIGHT: Final = 100

REST: Final = timedelta(minutes=10)
"""How long a node that was relieved is not filled up again: until the others have had the time to be relieved. A
workload whose pod went from one full node to another rests as long.
"""
BESIDE: Final = "its last move ended beside its target, on a node that is too full as well"


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """What decides when a node is too full."""

    threshold: float = 20.0
    """Percent of the mean by which a node must exceed it."""
    floor: float = 5.0
    """Points by which it must exceed it as well."""
    minimum_improvement: float = 1.0
    """Points by which a target must be better off than the source was."""
    spot_taints: tuple[SpotTaint, ...] = capacity.TAINTS
    """Taints that only say that a node is spot."""

    @classmethod
    def of(cls, settings: Settings, usage: Usage | None) -> Args:  # noqa: ARG003 - the same for every strategy
        """From the settings."""
        return cls(
            threshold=settings.imbalance_threshold,
            floor=settings.imbalance_floor,
            minimum_improvement=settings.limits.minimum_improvement,
            spot_taints=settings.capacity.all_taints(),
        )


@dataclass(frozen=True, slots=True)
class Line:
    """How full the nodes of a pool may be."""

    mean: float
    act: float
    """A node above this is a source, and no target may get there."""
    better: float
    """Where a source is left if that takes no further move: half-way to the mean."""


@dataclass(frozen=True, slots=True)
class Level:
    """The aim for one node: below the line of its pool, with nobody pushed above it."""

    node: str
    line: Line
    limit: float
    """Load that no target may exceed."""
    peers: frozenset[str]
    """Nodes of the same pool that may take something."""
    sources: frozenset[str]
    """Nodes of the same pool that are too full: what leaves one of them below the mean makes it one that may."""
    first: frozenset[str]
    """Spot nodes that are too full as well: room on spot is theirs until they are below the line."""
    too_full: Reason

    def reached(self, picture: Picture) -> bool:
        """Whether the node is below the line: what more would be better is worth no move of its own."""
        return picture.load(self.node) <= self.line.act

    def ceiling(self) -> float:
        """A node that is as full as it may be takes nothing more."""
        return self.limit

    def alike(self) -> Hashable:
        """The node itself plays no part in what its pool may take."""
        return OfSpec((self.limit, self.line.mean, self.line.act, self.peers, self.sources, self.first))

    def objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:
        """A target may not be pushed over the line in any of its shares."""
        taker = node in self.peers or (node in self.sources and picture.load(node) <= self.line.mean)
        served = taker and places.load_with(picture, pod, node) <= self.limit
        return None if served and not self._kept(picture, node) else self.too_full

    def _kept(self, picture: Picture, node: str) -> bool:
        if not self.first or picture.state.nodes[node].capacity is not CapacityType.SPOT:
            return False
        return any(picture.load(name) > self.line.act for name in self.first)


@dataclass(frozen=True, slots=True)
class _Pool:
    """Nodes that are levelled among themselves, some of them too full."""

    kind: str
    """What its nodes are, if not all that keep the same pods away: `spot `."""
    members: Sequence[NodeState]
    line: Line
    full: Sequence[tuple[float, NodeState]]
    """Its nodes over the line, each with its load."""
    takers: frozenset[str]
    sources: frozenset[str]
    spot_sources: frozenset[str]


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:
    """Pods of the fullest node first, and of each node those that relieve it with the fewest moves."""
    finder = _Finder(state, args, now)
    groups = (it.up_to_date() for it in state.roster.once(pools.of, args.spot_taints).values())
    uneven = list(finder.uneven(groups))
    sources = _fullest_first(uneven)
    rests = _resting(state, frozenset().union(*(pool.sources for pool in uneven)), now) if uneven else {}
    for proposal in _proposals(finder, uneven, sources, args):
        reason = rests.get(memory.subject_of(proposal.pod, state.workload(proposal.pod))) if rests else None
        yield proposal if reason is None else replace(proposal, aim=Held(reason))


def _proposals(
    finder: _Finder, pools: Sequence[_Pool], sources: Sequence[tuple[float, NodeState, _Pool]], args: Args
) -> Iterator[Proposal]:
    for load, node, pool in sources:
        # Pods of spot nodes mostly may not go anywhere else; so others take room there only if they find no other.
        first = frozenset() if node.capacity is CapacityType.SPOT else pool.spot_sources
        yield from _relieve(node, load, pool, first, args)
    for load, node, pool in sources:
        if pool.spot_sources and node.capacity is not CapacityType.SPOT:
            yield from _relieve(node, load, pool, frozenset(), args)
    # At last those that found no place below the line of all nodes, below the line of spot nodes.
    for load, node, pool in _fullest_first(finder.crowded_spot(pools)):
        yield from _relieve(node, load, pool, frozenset(), args)


def _fullest_first(pools: Iterable[_Pool]) -> list[tuple[float, NodeState, _Pool]]:
    sources = [(load, node, pool) for pool in pools for load, node in pool.full]
    return sorted(sources, key=lambda it: (-it[0], it[1].name))


class _Finder:
    """Looks for nodes that are too full. Which of them were relieved before is found out once, and if needed."""

    def __init__(self, state: ClusterState, args: Args, now: datetime) -> None:
        self._state, self._args, self._now = state, args, now
        self._moving = surplus.by_node(state)
        self._known: frozenset[str] | None = None

    def uneven(self, groups: Iterable[Group], kind: str = "") -> Iterator[_Pool]:
        """Those of the groups that have a node over their line."""
        for group in groups:
            found = line(group, self._args, self._moving)
            if max(group.loads) <= found.act:
                continue
            full = [(load, node) for load, node in zip(group.loads, group.members, strict=True) if load > found.act]
            takers = frozenset(node.name for node in group.members if _may_take(node, found, self._relieved()))
            spot = frozenset(node.name for _, node in full if node.capacity is CapacityType.SPOT)
            yield _Pool(kind, group.members, found, full, takers, frozenset(node.name for _, node in full), spot)

    def crowded_spot(self, pools: Iterable[_Pool]) -> Iterator[_Pool]:
        """The spot nodes of pools in which these are fuller than the others; elsewhere their pods find room below the
        line of all. Who is over the higher line is over the lower one too, so no other pools need be looked at.
        """
        for pool in pools:
            if pool.spot_sources:
                spot = [node for node in pool.members if node.capacity is CapacityType.SPOT]
                yield from (it for it in self.uneven([Group(spot)], "spot ") if it.line.act > pool.line.act)

    def _relieved(self) -> frozenset[str]:
        if self._known is None:
            self._known = _relieved(self._state, self._now)
        return self._known


def _resting(state: ClusterState, full: Collection[str], now: datetime) -> Mapping[str, Reason]:
    """Workloads whose last move by this strategy only brought a pod to another of the full nodes."""
    last: dict[str, PodMigration] = {}
    for migration in state.migrations.values():
        if migration.spec.strategy == NAME and migration.status.phase == "Completed":
            subject = memory.subject(migration)
            if subject not in last or memory.ended(migration) > memory.ended(last[subject]):
                last[subject] = migration
    missed = {subject: it for subject, it in last.items() if _landed_on(it, full)}
    return resting.until({subject: memory.ended(it) + REST for subject, it in missed.items()}, now, BESIDE)


def _landed_on(migration: PodMigration, full: Collection[str]) -> bool:
    landed = migration.status.replacement
    return not migration.status.on_target and landed is not None and landed.node in full


def _may_take(node: NodeState, line: Line, relieved: frozenset[str]) -> bool:
    """One that was relieved was left above the mean; if it is below it now, things have changed since."""
    return node.load() <= (line.mean if node.name in relieved else line.act)


def _relieved(state: ClusterState, now: datetime) -> frozenset[str]:
    """Nodes that pods are leaving, or have just left, to level the load."""
    found = set()
    for migration in state.migrations.values():
        status, ended = migration.status, migration.status.finished_at
        if status.resolved is not None and migration.spec.strategy == NAME and (ended is None or now - ended < REST):
            found.add(status.resolved.source_node)
    return frozenset(found)


def line(nodes: Group, args: Args, moving: Mapping[str, Surplus]) -> Line:
    """The line of these nodes."""
    over = [it for name, it in moving.items() if name in nodes]
    held = (
        (demand.CPU, sum(nodes.cpu) - sum(it.cpu for it in over)),
        (demand.MEMORY, sum(nodes.memory) - sum(it.memory for it in over)),
        (demand.PODS, sum(nodes.pods) - sum(it.pods for it in over)),
    )
    mean = max(places.share_of(it, nodes.offered[name]) for name, it in held)
    margin = max(mean * args.threshold / 100, args.floor)
    return Line(mean, mean + margin, mean + margin / 2)


def _relieve(node: NodeState, load: float, pool: _Pool, first: frozenset[str], args: Args) -> Iterator[Proposal]:
    line = pool.line
    limit = min(line.act, load - args.minimum_improvement)
    of = f" of {pool.kind}nodes" if pool.kind else ""
    why = f"node {node.name} is {load:.1f} % full, the mean{of} is {line.mean:.1f} %"
    text = f"every {pool.kind}node that could take it would be more than {limit:.1f} % full"
    too_full = Reason(Code.NO_IMPROVEMENT, text)
    aim = Level(node.name, line, limit, pool.takers, pool.sources, first, too_full)
    for pod in _fewest_first(node, line.better):
        yield Proposal(pod, Urgency.VOLUNTARY, why, aim)


def _fewest_first(node: NodeState, better: float) -> list[Pod]:
    """The smallest pod that is enough to get there, then larger ones that are, then the others from the largest down.

    Taking the largest first needs the fewest moves; the smallest that is enough finds a new place most easily.
    """
    excess = [max(0.0, share - better) for share in node.shares()]

    def rank(pod: Pod) -> tuple[bool, float, tuple[str, str]]:
        relief = _relief(pod, node, excess)
        enough = relief >= 1.0 - 1e-9
        return not enough, _size(pod, node) if enough else -relief, pod.metadata.key

    return sorted(node.pods.values(), key=rank)


def _relief(pod: Pod, node: NodeState, excess: Sequence[float]) -> float:
    """How much of what is too much goes with the pod: 1 is all of it, in every share."""
    parts = [min(1.0, share / over) for share, over in zip(_shares(pod, node), excess, strict=True) if over > 0]
    return sum(parts) / len(parts)


def _size(pod: Pod, node: NodeState) -> float:
    return max(_shares(pod, node))


def _shares(pod: Pod, node: NodeState) -> tuple[float, float, float]:
    held, offered = demand.held(pod), node.allocatable
    return (
        places.share_of(held.nominal_cpu, offered.get(demand.CPU, 0)),
        places.share_of(held.nominal_memory, offered.get(demand.MEMORY, 0)),
        places.share_of(1, offered.get(demand.PODS, 0)),
    )

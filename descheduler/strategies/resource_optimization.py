"""ResourceOptimization: relieve nodes that really use too much cpu or memory.   Decides only; never evicts.

Measurements are averaged over several samples. A node without a fresh one is left alone: its pods are told
METRICS_STALE instead of being moved on a guess. Where nobody measures, requests stand in for usage, unless the
settings ask for measurements; then pods of nodes with too much requested are told METRICS_STALE.

The mean trails what moves have changed: a node that was just relieved still looks too full, and one that has just
taken a pod still looks empty. So both rest, whoever moved the pod, until all of the mean was measured since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec

from cluster.objects import Pod
from descheduler import consumption, search
from descheduler.consumption import Gauge, shares_of
from descheduler.guards.case import Case, Context
from descheduler.node_state import NodeState
from descheduler.picture import Picture
from descheduler.proposal import Proposal, Urgency
from descheduler.reasons import Code, Reason
from descheduler.resting import Held
from descheduler.state import ClusterState
from descheduler.takers import Room, Takers
from descheduler.usage import Usage
from policy import keys
from policy.settings import Settings
from policy.settings_strategies import UsageSource

NAME: Final = "ResourceOptimization"
WEIGHT: Final = 80

UNKNOWN: Final = "the usage of every node that may have room is not known well enough to send pods there"
RELIEF: Final = 0.9
"""A node is relieved down to this part of its threshold, and no target may exceed it: the next sample differs."""
TOLD: Final = 100
"""Pods for which nothing can be done are proposed all the same, so that they are told why; in one pass, of each
reason, not many more than these. Where every node is too full, or nobody measures, that would be all pods there are.
"""


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """When a node is used too much."""

    cpu_threshold: float = 80.0
    """Percent of the node's allocatable cpu."""
    memory_threshold: float = 80.0
    """Percent of the node's allocatable memory."""
    max_age: timedelta = timedelta(minutes=2)
    """Older measurements are not used."""
    usage: Usage | None = None
    """Measurements; None where nothing measures."""
    requests_stand_in: bool = True
    """Whether requests count as usage then."""
    settings: Settings = Settings()
    """Where pods would rather be."""
    told: int = TOLD
    """Pods of each reason that are proposed though nothing can be done for them."""

    @classmethod
    def of(cls, settings: Settings, usage: Usage | None) -> Args:
        """From the settings."""
        own = settings.strategies.resource_optimization
        return cls(
            cpu_threshold=settings.cpu_threshold,
            memory_threshold=settings.memory_threshold,
            max_age=own.max_age,
            usage=None if own.source is UsageSource.REQUESTS else usage,
            requests_stand_in=own.source in {UsageSource.AUTO, UsageSource.REQUESTS},
            settings=settings,
        )

    def gauge(self, now: datetime) -> Gauge:
        """What goes by them."""
        most = self.cpu_threshold * RELIEF, self.memory_threshold * RELIEF
        return Gauge(now, self.usage, self.max_age, self.requests_stand_in, *most)


@dataclass(frozen=True, slots=True)
class Relief:
    """The aim for one node: both below their thresholds, with nobody pushed over."""

    node: str
    gauge: Gauge
    takers: Takers
    too_full: Reason
    open: bool = True
    """Whether a node might take the pods; else none is looked for."""

    def reached(self, picture: Picture) -> bool:
        """Whether the node uses little enough."""
        reached = self.gauge.is_below(*self.gauge.shares(picture, self.node))
        if not reached:
            self.takers.follow(picture)
        return reached

    def ceiling(self) -> float:
        """Requests say little about usage, so any node may serve."""
        return float("inf") if self.open else 0.0

    def alike(self) -> Hashable:
        """Each pod uses something else."""
        return None

    def objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:
        """A target is measured too, and stays below with the pod on it."""
        if not self.open:
            return self.too_full
        if not self.gauge.fresh(node):
            return Reason(Code.METRICS_STALE, f"the usage of node {node} is not known well enough to send pods there")
        if not self.gauge.settled(node):
            text = f"the mean of what node {node} uses was measured in part before the last move onto it or off it"
            return Reason(Code.METRICS_STALE, text, routine=True)
        state = picture.state.nodes
        cpu, memory = self.gauge.shares(picture, node)
        more = shares_of(self.gauge.pod(pod, state.get(pod.node_name)), state[node])
        return None if self.gauge.is_below(cpu + more[0], memory + more[1]) else self.too_full


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:
    """Pods of the node that is furthest over its threshold first, and of each node the largest users."""
    gauge = args.gauge(now)
    over = []
    for node in _candidates(state, args):
        cpu, memory = shares_of(gauge.node(node), node)
        excess = max(cpu - args.cpu_threshold, memory - args.memory_threshold)
        if node.pods and excess > 0:
            over.append((-excess, node.name, cpu, memory))
    if not over:
        return
    if args.usage is not None:
        gauge = replace(gauge, changed=consumption.changes(state, now))
    context = Context(state, args.settings, keys.under(args.settings.label_prefix), now, {})
    relieving = _Relieving(args, gauge, _takers(state, gauge), context)
    for _, name, cpu, memory in sorted(over):
        yield from relieving.proposals(state.nodes[name], cpu, memory)


def _candidates(state: ClusterState, args: Args) -> Sequence[NodeState]:
    """All nodes where somebody measures; else those that are over a threshold by requests."""
    everyone = state.roster.everyone()
    if args.usage is not None:
        return everyone.members
    most_cpu, most_memory = args.cpu_threshold, args.memory_threshold
    highest = max(everyone.cpu_shares, default=0.0), max(everyone.memory_shares, default=0.0)
    if highest[0] <= most_cpu and highest[1] <= most_memory:
        return ()
    asked = zip(everyone.members, everyone.cpu_shares, everyone.memory_shares, strict=True)
    return [node for node, cpu, memory in asked if cpu > most_cpu or memory > most_memory]


@dataclass(frozen=True, slots=True)
class _Relieving:
    """What the pods of one node after the other are proposed with."""

    args: Args
    gauge: Gauge
    takers: Takers
    context: Context
    told: Counter[tuple[Code, bool]] = field(default_factory=Counter)
    """Pods that were proposed though nothing can be done for them, by code and whether that is routine."""

    def proposals(self, node: NodeState, cpu: float, memory: float) -> Iterator[Proposal]:
        """First the pods that might go: the others must not stand in their way."""
        why = _why(node, cpu, memory, self.gauge)
        held = _held(node, why, self.gauge)
        if held is not None:
            some = sorted(node.pods) if self._more(held.reason) > 0 else ()
            yield from self._tell(why, held, held.reason, (node.pods[key] for key in some))
            return
        too_full = Reason(Code.NO_IMPROVEMENT, f"{why}; every node that could take it would be as full")
        if self.takers.is_empty and self._more(too_full) == 0:
            return
        unknown = Reason(Code.METRICS_STALE, f"{why}; {UNKNOWN}", routine=True)
        aim = Relief(node.name, self.gauge, self.takers, too_full)
        stay: dict[Room, list[Pod]] = {Room.UNKNOWN: [], Room.NONE: []}
        for pod in sorted(node.pods.values(), key=self._rank(node, cpu, memory)):
            room = self._room(pod, node)
            if room is Room.SOME:
                yield Proposal(pod, Urgency.VOLUNTARY, why, aim)
            else:
                stay[room].append(pod)
        for room, reason in ((Room.UNKNOWN, unknown), (Room.NONE, too_full)):
            yield from self._tell(why, replace(aim, too_full=reason, open=False), reason, stay[room])

    def _tell(self, why: str, aim: Relief | Held, reason: Reason, pods: Iterable[Pod]) -> Iterator[Proposal]:
        for pod in islice(pods, self._more(reason)):
            self.told[reason.code, reason.routine] += 1
            yield Proposal(pod, Urgency.VOLUNTARY, why, aim)

    def _more(self, reason: Reason) -> int:
        """How many more are told it."""
        return self.args.told - self.told[reason.code, reason.routine]

    def _room(self, pod: Pod, node: NodeState) -> Room:
        tiers = search.tiers_of(Case(pod, self.context), Urgency.VOLUNTARY)
        return self.takers.room(pod, self.gauge.pod(pod, node), tiers)

    def _rank(self, node: NodeState, cpu: float, memory: float) -> Callable[[Pod], tuple[float, tuple[str, str]]]:
        """The largest users of what is too much first."""
        over_cpu, over_memory = cpu > self.args.cpu_threshold, memory > self.args.memory_threshold

        def rank(pod: Pod) -> tuple[float, tuple[str, str]]:
            share = shares_of(self.gauge.pod(pod, node), node)
            return -(share[0] * over_cpu + share[1] * over_memory), pod.metadata.key

        return rank


def _takers(state: ClusterState, gauge: Gauge) -> Takers:
    """Of all nodes that pods may be sent to."""
    found = [node for node in state.nodes.values() if node.open]
    known = [node for node in found if gauge.fresh(node.name) and gauge.settled(node.name)]
    unknown = [node for node in found if not (gauge.fresh(node.name) and gauge.settled(node.name))]
    return Takers(known, unknown, gauge.left)


def _why(node: NodeState, cpu: float, memory: float, gauge: Gauge) -> str:
    used = "used" if gauge.measured(node.name) else "requested"
    return f"node {node.name} has {cpu:.0f} % of its cpu and {memory:.0f} % of its memory {used}"


def _held(node: NodeState, why: str, gauge: Gauge) -> Held | None:
    """Why nothing is decided about a node."""
    if not gauge.fresh(node.name):
        measured = gauge.measured(node.name)
        told = "but the last measurement is older than maxAge allows" if measured else "and nobody measures its usage"
        return Held(Reason(Code.METRICS_STALE, f"{why}, {told}"))
    if not gauge.settled(node.name):
        text = f"{why}, but that was measured in part before the last move off it or onto it"
        return Held(Reason(Code.METRICS_STALE, text, routine=True))
    return None

"""ResourceOptimization: relieve nodes that really use too much cpu or memory.   Decides only; never evicts.

Measurements are averaged over several samples. A node without a fresh one is left alone: its pods are told
METRICS_STALE instead of being moved on a guess. Where nobody measures, requests stand in for usage, unless the
settings ask for measurements; then pods of nodes with too much requested are told METRICS_STALE.

The mean trails what moves have changed: a node that was just relieved still looks too full, and one that has just
taken a pod still looks empty. So both rest, whoever moved the pod, until all of the mean was measured since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final

import msgspec

from cluster.objects import Pod, PodMigration
from descheduler import demand, memory, places, pools
from descheduler.moving import OPEN
from descheduler.node_state import NodeState
from descheduler.picture import Picture
from descheduler.pools import Pool
from descheduler.proposal import Proposal, Urgency
from descheduler.reasons import Code, Reason
from descheduler.resting import Held
from descheduler.state import ClusterState
from descheduler.usage import Measured, Usage
from policy import capacity
from policy.capacity import SpotTaint
from policy.settings import Settings
from policy.settings_strategies import UsageSource

NAME: Final = "ResourceOptimization"
WEIGHT: Final = 80

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
    spot_taints: tuple[SpotTaint, ...] = capacity.TAINTS
    """Taints that only say that a node is spot."""
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
            spot_taints=settings.capacity.all_taints(),
        )


@dataclass(frozen=True, slots=True)
class Gauge:
    """How much nodes use, in percent, as the picture changes."""

    args: Args
    now: datetime
    changed: Mapping[str, datetime] = field(default_factory=dict)
    """By node: when the last pod was moved off it or onto it; now if that has not ended."""

    def shares(self, picture: Picture, name: str) -> tuple[float, float]:
        """Cpu and memory of a node, without the pods that leave and with those that come."""
        node = picture.state.nodes[name]
        used = self.node(node)
        cpu, memory = used.cpu, used.memory
        for key in picture.departed.get(name, ()):
            gone = self.pod(node.pods[key], node)
            cpu, memory = cpu - gone.cpu, memory - gone.memory
        for pod in picture.arrived.get(name, {}).values():
            come = self.pod(pod, picture.state.nodes.get(pod.node_name))
            cpu, memory = cpu + come.cpu, memory + come.memory
        return _shares(Measured(cpu, memory), node)

    def fresh(self, name: str) -> bool:
        """Whether the last measurement of a node can be trusted. Requests are always fresh, if they may stand in."""
        if self.args.usage is None:
            return self.args.requests_stand_in
        age = self.args.usage.age(name, self.now)
        return age is not None and age <= self.args.max_age

    def measured(self, name: str) -> bool:
        """Whether a node was ever measured; requests stand for the usage of others."""
        return self.args.usage is not None and self.args.usage.node(name) is not None

    def settled(self, name: str) -> bool:
        """Whether the mean of a node shows what moves have left there. Requests do so at once."""
        at = self.changed.get(name)
        if at is None or self.args.usage is None:
            return True
        since = self.args.usage.since(name)
        return since is not None and since > at

    def node(self, node: NodeState) -> Measured:
        """What a node uses."""
        found = None if self.args.usage is None else self.args.usage.node(node.name)
        return Measured(node.nominal_cpu, node.nominal_memory) if found is None else found

    def pod(self, pod: Pod, on: NodeState | None) -> Measured:
        """What a pod uses; where pods are not measured, its part of what its node uses, by requests."""
        found = None if self.args.usage is None else self.args.usage.pod(pod.metadata.key)
        if found is not None:
            return found
        held = demand.held(pod)
        if on is None or self.args.usage is None:
            return Measured(held.nominal_cpu, held.nominal_memory)
        used = self.node(on)
        return Measured(
            used.cpu * held.nominal_cpu / (on.nominal_cpu or 1),
            used.memory * held.nominal_memory / (on.nominal_memory or 1),
        )


@dataclass(frozen=True, slots=True)
class Relief:
    """The aim for one node: both below their thresholds, with nobody pushed over."""

    node: str
    gauge: Gauge
    cpu: float
    memory: float
    too_full: Reason
    room: bool = True
    """Whether there is a node that could take anything; else nothing is looked for."""

    def reached(self, picture: Picture) -> bool:
        """Whether the node uses little enough."""
        cpu, memory = self.gauge.shares(picture, self.node)
        return cpu <= self.cpu and memory <= self.memory

    def ceiling(self) -> float:
        """Requests say little about usage, so any node may serve."""
        return float("inf") if self.room else 0.0

    def alike(self) -> Hashable:
        """Each pod uses something else."""
        return None

    def objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:
        """A target is measured too, and stays below with the pod on it."""
        if not self.room:
            return self.too_full
        if not self.gauge.fresh(node):
            return Reason(Code.METRICS_STALE, f"the usage of node {node} is not known well enough to send pods there")
        if not self.gauge.settled(node):
            text = f"the mean of what node {node} uses was measured in part before the last move onto it or off it"
            return Reason(Code.METRICS_STALE, text, routine=True)
        state = picture.state.nodes
        cpu, memory = self.gauge.shares(picture, node)
        more = _shares(self.gauge.pod(pod, state.get(pod.node_name)), state[node])
        return self.too_full if cpu + more[0] > self.cpu or memory + more[1] > self.memory else None


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:
    """Pods of the node that is furthest over its threshold first, and of each node the largest users."""
    gauge = Gauge(args, now)
    over = []
    for node in _candidates(state, args):
        cpu, memory = _shares(gauge.node(node), node)
        excess = max(cpu - args.cpu_threshold, memory - args.memory_threshold)
        if node.pods and excess > 0:
            over.append((-excess, node.name, cpu, memory))
    if over and args.usage is not None:
        gauge = Gauge(args, now, _changed(state, now))
    rooms = _rooms(state, gauge) if over else {}
    told: Counter[object] = Counter()
    for _, name, cpu, memory in sorted(over):
        node = state.nodes[name]
        why, aim = _aim(node, cpu, memory, gauge, rooms)
        if isinstance(aim, Held) or not aim.room:
            kind = (aim.reason.code, aim.reason.routine) if isinstance(aim, Held) else aim.too_full.code
            if told[kind] >= args.told:
                continue
            told[kind] += len(node.pods)
        yield from _relieve(node, cpu, memory, gauge, why, aim)


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


class Room(IntEnum):
    """Whether nodes that keep the same pods away could take anything."""

    NONE = 0
    UNKNOWN = 1
    """Those that nobody has measured well enough might."""
    SOME = 2


def _rooms(state: ClusterState, gauge: Gauge) -> Mapping[Pool, Room]:
    """By pool. What a pod tolerates besides the taints of its own node does not count: such nodes are not there for
    what is too much elsewhere, and those of a control plane are nearly always empty.
    """
    return {
        pool: max(_room(node, gauge) for node in group.members)
        for pool, group in state.roster.once(pools.of, gauge.args.spot_taints).items()
    }


def _room(node: NodeState, gauge: Gauge) -> Room:
    if not gauge.fresh(node.name) or not gauge.settled(node.name):
        return Room.UNKNOWN
    cpu, memory = _shares(gauge.node(node), node)
    below = cpu <= gauge.args.cpu_threshold * RELIEF and memory <= gauge.args.memory_threshold * RELIEF
    return Room.SOME if below else Room.NONE


def _aim(
    node: NodeState, cpu: float, memory: float, gauge: Gauge, rooms: Mapping[Pool, Room]
) -> tuple[str, Relief | Held]:
    """Why pods should leave a node, and for what."""
    args = gauge.args
    measured = gauge.measured(node.name)
    why = f"node {node.name} has {cpu:.0f} % of its cpu and {memory:.0f} % of its memory "
    why += "used" if measured else "requested"
    if not gauge.fresh(node.name):
        told = "but the last measurement is older than maxAge allows" if measured else "and nobody measures its usage"
        return why, Held(Reason(Code.METRICS_STALE, f"{why}, {told}"))
    if not gauge.settled(node.name):
        text = f"{why}, but that was measured in part before the last move off it or onto it"
        return why, Held(Reason(Code.METRICS_STALE, text, routine=True))
    too_full = Reason(Code.NO_IMPROVEMENT, f"{why}; every node that could take it would be as full")
    pool = pools.key(node.node, args.spot_taints) if node.node is not None else frozenset()
    room = max((it for others, it in rooms.items() if others <= pool), default=Room.NONE)
    if room is Room.UNKNOWN:
        text = f"{why}; the usage of every node that may have room is not known well enough to send pods there"
        too_full = Reason(Code.METRICS_STALE, text, routine=True)
    cpu_limit, memory_limit = args.cpu_threshold * RELIEF, args.memory_threshold * RELIEF
    return why, Relief(node.name, gauge, cpu_limit, memory_limit, too_full, room=room is Room.SOME)


def _relieve(
    node: NodeState, cpu: float, memory: float, gauge: Gauge, why: str, aim: Relief | Held
) -> Iterator[Proposal]:
    """Its pods, the largest users of what is too much first."""
    over_cpu, over_memory = cpu > gauge.args.cpu_threshold, memory > gauge.args.memory_threshold

    def rank(pod: Pod) -> tuple[float, tuple[str, str]]:
        share = _shares(gauge.pod(pod, node), node)
        return -(share[0] * over_cpu + share[1] * over_memory), pod.metadata.key

    for pod in sorted(node.pods.values(), key=rank):
        yield Proposal(pod, Urgency.VOLUNTARY, why, aim)


def _changed(state: ClusterState, now: datetime) -> Mapping[str, datetime]:
    """By node: when a move last changed what is used there."""
    found: dict[str, datetime] = {}
    for migration in state.migrations.values():
        status, at = migration.status, _changed_at(migration, state, now)
        if at is None or status.resolved is None:
            continue
        landed = status.replacement.node if status.replacement is not None else ""
        for name in (status.resolved.source_node, landed or status.resolved.target_node):
            found[name] = max(at, found.get(name, at))
    return found


def _changed_at(migration: PodMigration, state: ClusterState, now: datetime) -> datetime | None:
    """None: the pod is where it was. Of one that is about to leave, the picture knows."""
    status, ref = migration.status, migration.spec.pod_ref
    if status.phase in OPEN:
        pod = state.pods.get((migration.metadata.namespace, ref.name))
        gone = pod is None or (ref.uid and ref.uid != pod.metadata.uid)
        return now if gone or status.replacement is not None else None
    return memory.ended(migration) if memory.went(migration) else None


def _shares(used: Measured, node: NodeState) -> tuple[float, float]:
    offered = node.allocatable
    return (
        places.share_of(used.cpu, offered.get(demand.CPU, 0)),
        places.share_of(used.memory, offered.get(demand.MEMORY, 0)),
    )

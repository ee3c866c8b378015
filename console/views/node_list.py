"""Every node: how it is paid for, how full it is, what is the matter with it, what comes and goes.   Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cluster.objects import Node
from console import ages
from console.look import Look
from console.states import State
from console.views import drains
from descheduler import interruption, report, strategies
from descheduler.guards import Context
from descheduler.interruption import Loss
from descheduler.node_state import NodeState
from descheduler.state import ClusterState
from descheduler.strategies import load_balancing, resource_optimization
from descheduler.tables import Table
from descheduler.usage import Usage
from policy import keys
from policy.settings import Settings
from policy.signal_table import Kind
from policy.signals import Signal

Plain = dict[str, Any]
RELIEVING: Final = frozenset({load_balancing.NAME, resource_optimization.NAME})
"""Strategies that act because a node is too full."""


_BY_SIGNAL: Final = {
    Kind.INTERRUPTION: State.INTERRUPTED,
    Kind.REBALANCE: State.REBALANCE,
    Kind.MAINTENANCE: State.MAINTENANCE,
}


@dataclass(frozen=True, slots=True)
class Seen:
    """One node and what is the matter with it."""

    node: NodeState
    object: Node
    states: tuple[State, ...]
    signals: tuple[Signal, ...]
    hot: Mapping[str, str]
    """Why a strategy would relieve it, by strategy."""
    drain: drains.Drain | None
    leaving: int
    coming: int


def see(look: Look) -> tuple[Seen, ...]:
    """Every node that is known, by name."""
    state = look.state
    context = Context(state, look.settings, look.keys, look.now, {})  # of which rests say nothing about a node
    hot = too_full(state, look.settings, look.gathered.usage, look.now)
    leaving, coming = _under_way(state)
    found = []
    for name in sorted(state.nodes):
        node = state.nodes[name]
        if node.node is not None:
            read = node.signals_at(look.now)
            why = hot.get(name, {})
            drain = drains.read(node.node, look.keys)
            states = _states(node, node.node, read, why, interruption.notice(node.node, context))
            found.append(Seen(node, node.node, states, read, why, drain, leaving[name], coming[name]))
    return tuple(found)


def too_full(
    state: ClusterState, settings: Settings, usage: Usage | None, now: datetime
) -> dict[str, dict[str, str]]:
    """Nodes that a strategy would relieve, each with why by strategy: the strategies themselves are asked."""
    found: dict[str, dict[str, str]] = {}
    for active in strategies.active(settings, usage):
        if active.name in RELIEVING:
            for proposal in active.propose(state, now):
                found.setdefault(proposal.pod.node_name, {}).setdefault(active.name, proposal.why)
    return found


def _states(
    node: NodeState, item: Node, read: Sequence[Signal], hot: Mapping[str, str], notice: Loss | None
) -> tuple[State, ...]:
    found = {_BY_SIGNAL[it.kind] for it in read if it.kind in _BY_SIGNAL}
    if notice is not None:  # also if its sign is gone
        found.add(State.INTERRUPTED)
    if not node.ready:
        found.add(State.NOT_READY)
    if item.spec.unschedulable:
        found.add(State.CORDONED)
    if hot:
        found.add(State.HOT)
    return tuple(it for it in State if it in found) or (State.READY,)


def _under_way(state: ClusterState) -> tuple[Counter[str], Counter[str]]:
    leaving: Counter[str] = Counter()
    coming: Counter[str] = Counter()
    for migration in state.open_migrations():
        resolved = migration.status.resolved
        pod = state.pods.get((migration.metadata.namespace, migration.spec.pod_ref.name))
        leaving[resolved.source_node if resolved is not None else pod.node_name if pod is not None else ""] += 1
        coming[resolved.target_node if resolved is not None else migration.spec.target_node] += 1
    return leaving, coming


def of(seen: Sequence[Seen], look: Look) -> Plain:
    """For programs."""
    return {"nodes": [plain(it, look) for it in seen], "assumed": list(look.assumed)}


def plain(seen: Seen, look: Look) -> Plain:
    """One node."""
    cpu, memory, pods = map(report.percent, seen.node.shares())
    return {
        "name": seen.node.name,
        "capacity": str(seen.node.capacity),
        "zone": seen.object.metadata.labels.get(keys.ZONE),
        "states": list(map(str, seen.states)),
        "load": report.percent(seen.node.load()),
        "shares": {"cpu": cpu, "memory": memory, "pods": pods},
        "used": _used(seen, look.gathered.usage),
        "pods": len(seen.node.pods),
        "leaving": seen.leaving,
        "coming": seen.coming,
        "drain": None if seen.drain is None else seen.drain.text,
        "createdAt": ages.stamp(seen.object.metadata.creation_timestamp),
    }


def _used(seen: Seen, usage: Usage | None) -> Plain | None:
    """What is measured, in percent; None where nothing measures."""
    measured = None if usage is None else usage.node(seen.node.name)
    if measured is None:
        return None
    offered = seen.node.allocatable
    return {
        name: round(100 * value / offered[name], 1) if offered.get(name) else None
        for name, value in (("cpu", measured.cpu), ("memory", measured.memory))
    }


def pages(seen: Sequence[Seen], look: Look, *, wide: bool) -> Iterator[Table]:
    """One row each."""
    yield from assumed(look)
    columns = ("NODE", "CAPACITY", "LOAD", "PODS", "MOVES", "STATE", "AGE")
    more = ("ZONE", "CPU", "MEMORY", "USED CPU", "USED MEMORY") if wide else ()
    if not seen:
        yield Table("There are no nodes")
        return
    yield Table("", columns + more, tuple(row(it, look, wide=wide) for it in seen))


def row(seen: Seen, look: Look, *, wide: bool) -> tuple[str, ...]:
    """One node."""
    told = plain(seen, look)
    used = told["used"] or {}
    age = ages.between(seen.object.metadata.creation_timestamp, look.now)
    cells = (told["name"], told["capacity"], percent(told["load"]), str(told["pods"]), moves(seen), text(seen), age)
    if not wide:
        return cells
    shares = told["shares"]
    measured = (percent(used.get("cpu")), percent(used.get("memory")))
    return (*cells, told["zone"] or "-", percent(shares["cpu"]), percent(shares["memory"]), *measured)


def text(seen: Seen) -> str:
    """`maintenance (draining 7/12), cordoned`."""
    words = []
    for state in seen.states:
        drain = seen.drain.text if seen.drain is not None else ""
        words.append(f"{state} ({drain})" if state is State.MAINTENANCE and drain else str(state))
    return ", ".join(words)


def moves(seen: Seen) -> str:
    """`-2 +1`: two leave, one comes."""
    parts = ((seen.leaving, "-"), (seen.coming, "+"))
    return " ".join(f"{sign}{count}" for count, sign in parts if count) or "-"


def percent(share: float | None) -> str:
    """`63.2 %`."""
    return "-" if share is None else f"{share:.1f} %"


def assumed(look: Look) -> Iterator[Table]:
    """What was taken for granted, before anything that depends on it."""
    if look.assumed:
        told = tuple((it,) for it in look.assumed)
        yield Table("Not everything could be seen", ("ASSUMED",), told)

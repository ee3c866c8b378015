"""What the page shows at one moment, as plain values.   Pure, but for remembering the nodes of the last picture.

A cluster has thousands of nodes and few of them change in a second. Nodes whose pods and marks are the same objects
as in the last picture are taken from it, so a picture costs what has changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cluster.objects import Pod, PodMigration
from console.look import Look
from console.views import move_list, node_list, overview
from console.views.node_list import Seen
from descheduler import report
from descheduler.plan import Plan
from descheduler.proposal import Refusal
from policy import convert
from policy.capacity import CapacityType
from policy.keys import Keys

Plain = dict[str, Any]
MOVES: Final = 50
"""Ended moves that are listed; all of them are in the cluster."""

READY, NOT_READY, LEAVING, MOVED, SYSTEM = "ready", "not-ready", "leaving", "moved", "system"
TILES: Final = (READY, NOT_READY, LEAVING, MOVED, SYSTEM)
"""What a tile can be: the number in a picture is the place in this tuple."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One point of the plots."""

    at: float
    mean: float
    highest: float
    lowest: float
    spot_share: float
    """Of the pods that have a node, in percent."""
    open_moves: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything on the page."""

    summary: Plain
    nodes: Mapping[str, Plain]
    moves: tuple[Plain, ...]
    planned: tuple[Plain, ...]
    refusals: Mapping[str, tuple[Plain, ...]]
    """By reason; a pod with several reasons stands under each."""
    settings: Mapping[str, Any]
    sample: Sample


@dataclass(slots=True)
class Painter:
    """Makes pictures, one after the other."""

    _known: dict[str, tuple[tuple[Any, ...], Plain]] = field(default_factory=dict)

    def paint(self, look: Look, plan: Plan) -> Picture:
        """The cluster now."""
        seen = node_list.see(look)
        nodes = {it.node.name: self._node(it, look) for it in seen}
        self._known = {name: self._known[name] for name in nodes}
        moves = move_list.ordered(look.state.migrations.values())
        under_way = [it for it in moves if move_list.is_open(it)]
        ended = [it for it in moves if not move_list.is_open(it)][-MOVES:]
        told = report.of_plan(plan, look.gathered)
        return Picture(
            overview.of(look),
            nodes,
            tuple(_move(it) for it in (*reversed(under_way), *reversed(ended))),
            tuple(told["moves"]),
            _by_reason(plan.refusals),
            convert.flatten(convert.to_plain(look.settings)),
            _sample(seen, look, len(under_way)),
        )

    def _node(self, seen: Seen, look: Look) -> Plain:
        pods = tuple(seen.node.pods.values())
        around = (seen.object, pods, seen.states, seen.leaving, seen.coming, look.settings)
        known = self._known.get(seen.node.name)
        if known is None or known[0] != around:
            made = {**node_list.plain(seen, look), "tiles": [_tile(pod, look.keys) for pod in pods]}
            known = self._known[seen.node.name] = (around, made)
        return known[1]


def _tile(pod: Pod, keys: Keys) -> tuple[str, int]:
    """Its name, and what it is."""
    meta = pod.metadata
    return f"{meta.namespace}/{meta.name}", TILES.index(_kind(pod, keys))


def _kind(pod: Pod, keys: Keys) -> str:
    owner = pod.metadata.controller
    if owner is not None and owner.kind in {"DaemonSet", "Node"}:
        return SYSTEM
    if pod.metadata.deletion_timestamp is not None or _is_source(pod, keys):
        return LEAVING
    if not pod.ready:
        return NOT_READY
    return MOVED if keys.migrated_from in pod.metadata.labels else READY


def _is_source(pod: Pod, keys: Keys) -> bool:
    labels = pod.metadata.labels
    return keys.migration_id in labels and keys.migrated_from not in labels


def _move(migration: PodMigration) -> Plain:
    return {**move_list.plain(migration), "uid": migration.metadata.uid}


def _by_reason(refusals: Iterable[Refusal]) -> dict[str, tuple[Plain, ...]]:
    found: dict[str, list[Plain]] = defaultdict(list)
    for refusal in refusals:
        meta = refusal.pod.metadata
        for reason in refusal.reasons:
            found[str(reason.code)].append(
                {
                    "namespace": meta.namespace,
                    "pod": meta.name,
                    "node": refusal.pod.node_name,
                    "strategy": refusal.strategy,
                    "text": reason.text,
                }
            )
    return {code: tuple(pods) for code, pods in sorted(found.items(), key=lambda it: (-len(it[1]), it[0]))}


def _sample(seen: Iterable[Seen], look: Look, under_way: int) -> Sample:
    nodes = [it.node for it in seen]
    loads = [it.load() for it in nodes if it.open]
    placed = sum(len(it.pods) for it in nodes)
    on_spot = sum(len(it.pods) for it in nodes if it.capacity is CapacityType.SPOT)
    return Sample(
        round(look.now.timestamp(), 1),
        round(sum(loads) / len(loads), 1) if loads else 0.0,
        round(max(loads, default=0.0), 1),
        round(min(loads, default=0.0), 1),
        round(100 * on_spot / placed, 1) if placed else 0.0,
        under_way,
    )

"""Our marks on nodes: how they are written, and how they are taken back when nothing asks for them any more.   Pure.

A node may be drained and lost at the same time, so the marks of the two go separately, and the cordon with the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from cluster.eventlog import Subject, Topic
from cluster.objects import Node
from cluster.resources import NODES
from descheduler.guards import Context
from descheduler.node_state import NodeState
from descheduler.requests import Line, Request, Said, Verb
from descheduler.roster import Roster
from telemetry.catalogue import Log

OURS: Final = "spotshift"
"""Who cordoned, in the annotation that says so."""

CORDONED: Final = Topic("Cordoned", "Drain")
UNCORDONED: Final = Topic("Uncordoned", "Drain")
ENDED: Final = Topic("MaintenanceEnded", "Drain")
WITHDRAWN: Final = Topic("InterruptionEnded", "Drain")


def requests(context: Context, *, drained: AbstractSet[str], lost: AbstractSet[str]) -> Iterator[Request]:
    """Puts every node back as it was found that carries marks and is neither drained nor lost."""
    for node in _marked(context):
        name, found = node.metadata.name, node.metadata.annotations
        stale = [
            *(key for key in _of_drains(context) if name not in drained and key in found),
            *(key for key in _of_losses(context) if name not in lost and key in found),
        ]
        if context.keys.cordoned_by in found and name not in drained and name not in lost:
            stale.append(context.keys.cordoned_by)
        if stale:
            yield _restored(node, stale, context)


def patch(
    node: Node,
    annotations: Mapping[str, str | None],
    spec: Mapping[str, Any] | None,
    events: tuple[Said, ...],
    lines: tuple[Line, ...],
) -> Request:
    """Tied to the version that was looked at: a label that came or went meanwhile makes it a conflict."""
    meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
    body: dict[str, Any] = {"metadata": {**meta, "annotations": dict(annotations)}}
    if spec is not None:
        body["spec"] = dict(spec)
    name = node.metadata.name
    return Request(verb=Verb.PATCH, resource=NODES, name=name, body=body, events=events, lines=lines)


def subject(node: Node) -> Subject:
    """For an Event."""
    return Subject("v1", "Node", node.metadata.name, uid=node.metadata.uid)


def _restored(node: Node, stale: list[str], context: Context) -> Request:
    """As it was found: a cordon that somebody else made stays."""
    losses = set(_of_losses(context))
    what = "nothing says any more that it will be lost" if losses & set(stale) else None
    what = what or "nothing asks any more for an empty node"
    lifts = context.keys.cordoned_by in stale and node.spec.unschedulable
    stays = "; its cordon is not ours and stays" if context.keys.cordoned_by not in node.metadata.annotations else ""
    topic = UNCORDONED if lifts else WITHDRAWN if losses & set(stale) else ENDED
    events = (Said(subject(node), topic, what if lifts else what + stays),)
    lines = (Line(Log.NODE_UNCORDONED, {"node": node.metadata.name, "cause": what}),) if lifts else ()
    return patch(node, dict.fromkeys(stale), {"unschedulable": None} if lifts else None, events, lines)


def _of_drains(context: Context) -> tuple[str, ...]:
    ours = context.keys
    return ours.maintenance_status, ours.maintenance_remaining, ours.maintenance_since


def _of_losses(context: Context) -> tuple[str, ...]:
    ours = context.keys
    return ours.interruption_cause, ours.interruption_since, ours.interruption_deadline


def _marked(context: Context) -> Iterator[Node]:
    """Nodes that carry a mark of ours. Asked in every turn, of thousands of nodes that carry none."""
    marks = frozenset({context.keys.cordoned_by, *_of_drains(context), *_of_losses(context)})
    for found in context.state.roster.once(_bearers, marks):
        if found.node is not None:
            yield found.node


def _bearers(roster: Roster, marks: frozenset[str]) -> tuple[NodeState, ...]:
    known = ((it, it.node) for it in roster.nodes.values())
    return tuple(it for it, node in known if node is not None and not marks.isdisjoint(node.metadata.annotations))

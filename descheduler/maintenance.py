"""What is written on a node while it is drained, and taken back afterwards.   Pure: decides, sends nothing.

A node that asks to be emptied is cordoned, and marked if the cordon is ours; how far its drain is stands on it in
words. A node that carries such marks and no longer asks is put back as it was found. Both are read from the cluster
as it is, so it does not matter who began and who goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from cluster.eventlog import Severity, Subject, Topic
from cluster.objects import Node, Pod, PodMigration
from cluster.resources import NODES, PODS
from descheduler import drain, signs
from descheduler.drain import Drain, Left, Standing
from descheduler.guards import Context
from descheduler.node_state import Key
from descheduler.plan import Plan
from descheduler.proposal import Move, Urgency
from descheduler.reasons import Code, Reason
from descheduler.requests import Line, Request, Said, Verb
from descheduler.state import ClusterState
from descheduler.strategies import node_maintenance
from policy import signals, values
from policy.settings_strategies import OnDeadline
from telemetry.catalogue import Log

OURS: Final = "spotshift"
"""Who cordoned, in the annotation that says so."""
REMAINING: Final = 2_000
"""Characters of the list of pods on the node; whoever wants the rest finds it in `descheduler plan`."""
BUDGETS: Final = frozenset({Code.PDB_NO_BUDGET, Code.PDB_MULTIPLE, Code.SINGLE_REPLICA})

CORDONED: Final = Topic("Cordoned", "Drain")
UNCORDONED: Final = Topic("Uncordoned", "Drain")
DRAINED: Final = Topic("Drained", "Drain")
ENDED: Final = Topic("MaintenanceEnded", "Drain")
MISTAKEN: Final = Topic("InvalidValue", "Drain", Severity.WARNING)
OVERDUE: Final = Topic("DeletedPastBudget", "Drain", Severity.WARNING)


class Stage(StrEnum):
    """How far a drain is: the first word of the annotation."""

    WAITING = "waiting"
    """Cordoned; other nodes are emptied first."""
    DRAINING = "draining"
    DRAINED = "drained"
    """Only pods that belong to the node, or whose owners said that they stay, are left."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One node that is being emptied, as it stands."""

    drain: Drain
    stage: Stage
    left: tuple[Left, ...]
    total: int
    """Pods that had to leave when it began; kept on the node, so that a restart does not count anew."""

    @property
    def to_go(self) -> int:
        """Pods that still have to leave."""
        return sum(1 for it in self.left if it.standing not in {Standing.EXEMPT, Standing.LISTED})

    @property
    def text(self) -> str:
        """For the annotation: `draining 7/12`."""
        if self.stage is Stage.DRAINED:
            return self.stage.value
        return f"{self.stage.value} {self.total - self.to_go}/{self.total}"


def look(context: Context) -> tuple[Progress, ...]:
    """Every node that is to be emptied, in the order of the queue."""
    drains = drain.asked(context)
    now = {it.name for it in drain.chosen(drains, context)}
    return tuple(_progress(it, context, is_turn=it.name in now) for it in drains)


def requests(seen: Sequence[Progress], context: Context, plan: Plan | None, *, may_begin: bool) -> Iterator[Request]:
    """What to write. `may_begin` is False while nothing new may be done: then only what is over is taken back."""
    asking = {it.drain.name for it in seen}
    for node in _marked(context):
        if node.metadata.name not in asking:
            yield _restored(node, context)
    if not may_begin:
        return
    told = _refusals(plan)
    for progress in seen:
        written = _written(progress, context, told)
        if written is not None:
            yield written
    yield from _overdue(seen, context, told)


def mistakes(context: Context) -> Iterator[Said]:
    """Labels and deadlines on nodes that mean nothing: who wrote them must hear that nothing will come of them."""
    label, limit = context.keys.maintenance, context.keys.maintenance_deadline
    for found in context.state.nodes.values():
        node = found.node
        if node is None or (label not in node.metadata.labels and limit not in node.metadata.annotations):
            continue
        for mistake in signals.mistakes(signs.of(node), keys=context.keys):
            yield Said(_subject(node), MISTAKEN, str(mistake))


def sendable(moves: Sequence[Move], state: ClusterState) -> tuple[Move, ...]:
    """Moves that may be begun: a drained node is cordoned first, or replacements would come back to it."""
    return tuple(it for it in moves if it.urgency is not Urgency.MAINTENANCE or _is_cordoned(it.source, state))


# ---- how far it is


def _progress(asked: Drain, context: Context, *, is_turn: bool) -> Progress:
    left = drain.left(asked.name, context)
    to_go = sum(1 for it in left if it.standing not in {Standing.EXEMPT, Standing.LISTED})
    before = _total(asked.node.metadata.annotations.get(context.keys.maintenance_status, ""))
    stage = Stage.DRAINING if is_turn else Stage.WAITING
    return Progress(asked, stage if to_go else Stage.DRAINED, left, max(before, to_go))


def _total(text: str) -> int:
    """What `draining 7/12` says about how many there were; 0 if it says nothing."""
    number = text.rpartition("/")[2]
    return (
        int(number) if "/" in text and number.isascii() and number.isdigit() and len(number) <= len("999999") else 0
    )


def _remaining(progress: Progress, context: Context, told: Mapping[Key, tuple[Reason, ...]]) -> str:
    lines = [
        f"{it.pod.metadata.namespace}/{it.pod.metadata.name}: {_why(it, context, told)}"
        for it in progress.left
        if it.standing is not Standing.EXEMPT
    ]
    return _bounded(lines)


def _why(left: Left, context: Context, told: Mapping[Key, tuple[Reason, ...]]) -> str:
    key = left.pod.metadata.key
    match left.standing:
        case Standing.MOVING:
            migration = context.moving.get(key)
            held = _held(migration) if migration is not None else ""
            return f"moving; {held}" if held else "moving"
        case Standing.FREE:
            return _joined(told.get(key, ())) or "to be moved"
        case _:
            return _joined(left.reasons)


def _held(migration: PodMigration) -> str:
    return migration.status.message if (migration.status.intent or {}).get("blocked") else ""


def _joined(reasons: Sequence[Reason]) -> str:
    return "; ".join(str(reason) for reason in reasons)


def _bounded(lines: Sequence[str]) -> str:
    """As many whole lines as there is room for, then how many more there are."""
    used, kept = 0, []
    for line in lines:
        used += len(line) + 1
        if used > REMAINING:
            break
        kept.append(line)
    more = len(lines) - len(kept)
    return "\n".join([*kept, *([f"and {more} more"] if more else [])])


def _refusals(plan: Plan | None) -> Mapping[Key, tuple[Reason, ...]]:
    """What the last plan said about pods that a drain wants to move."""
    found = plan.refusals if plan is not None else ()
    return {it.pod.metadata.key: it.reasons for it in found if it.strategy == node_maintenance.NAME}


# ---- what to write


def _written(progress: Progress, context: Context, told: Mapping[Key, tuple[Reason, ...]]) -> Request | None:
    """Cordon, place in the queue and progress in one patch, so that no state between them can be found."""
    node, ours = progress.drain.node, context.keys
    wanted: dict[str, str | None] = {
        ours.maintenance_status: progress.text,
        ours.maintenance_remaining: _remaining(progress, context, told) or None,
    }
    if progress.drain.since is None:
        wanted[ours.maintenance_since] = values.format_time(context.now)
    cordons = not node.spec.unschedulable
    if cordons:
        wanted[ours.cordoned_by] = OURS
    known = node.metadata.annotations
    changed = {key: value for key, value in wanted.items() if known.get(key) != value}
    if not changed and not cordons:
        return None
    spec = {"unschedulable": True} if cordons else None
    events, lines = _told(progress, context, cordons=cordons)
    return _patch(node, changed, spec, events, lines)


def _told(progress: Progress, context: Context, *, cordons: bool) -> tuple[tuple[Said, ...], tuple[Line, ...]]:
    subject, source = _subject(progress.drain.node), progress.drain.signal.source
    before = progress.drain.node.metadata.annotations.get(context.keys.maintenance_status, "")
    events: list[Said] = []
    lines: list[Line] = []
    if cordons:
        events.append(
            Said(subject, CORDONED, f"{source} asks for an empty node; {progress.to_go} pods have to leave")
        )
        lines.append(Line(Log.NODE_CORDONED, {"node": progress.drain.name, "cause": source}))
    if progress.stage is Stage.DRAINED and before != Stage.DRAINED:
        listed = sum(1 for it in progress.left if it.standing is Standing.LISTED)
        rest = f"; {listed} whose owners said so stay" if listed else ""
        events.append(Said(subject, DRAINED, f"every pod that had to leave has left{rest}"))
        since = progress.drain.since or context.now
        took = round((context.now - since).total_seconds(), 1)
        lines.append(Line(Log.NODE_DRAINED, {"node": progress.drain.name, "seconds": took}))
    return tuple(events), tuple(lines)


def _restored(node: Node, context: Context) -> Request:
    """As it was found: a cordon that somebody else made stays."""
    annotations, ours = node.metadata.annotations, context.keys
    changed: dict[str, str | None] = {key: None for key in _marks(context) if key in annotations}
    lifts = ours.cordoned_by in annotations and node.spec.unschedulable
    note = "nothing asks any more for an empty node" + ("" if lifts else "; its cordon is not ours and stays")
    events = (Said(_subject(node), UNCORDONED if lifts else ENDED, note),)
    cause = "nothing asks any more for an empty node"
    lines = (Line(Log.NODE_UNCORDONED, {"node": node.metadata.name, "cause": cause}),) if lifts else ()
    return _patch(node, changed, {"unschedulable": None} if lifts else None, events, lines)


def _patch(
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


def _overdue(seen: Sequence[Progress], context: Context, told: Mapping[Key, tuple[Reason, ...]]) -> Iterator[Request]:
    """Pods that only a budget holds on a node whose time is over, if the settings let them be deleted."""
    if context.settings.strategies.node_maintenance.on_deadline is not OnDeadline.DELETE:
        return
    late = {it.name for it in drain.overdue([it.drain for it in seen], context.now)}
    for progress in seen:
        if progress.drain.name not in late:
            continue
        for left in progress.left:
            if _only_a_budget(left, context, told):
                yield _deletion(left.pod, progress)


def _only_a_budget(left: Left, context: Context, told: Mapping[Key, tuple[Reason, ...]]) -> bool:
    if left.pod.metadata.deletion_timestamp is not None:
        return False
    migration = context.moving.get(left.pod.metadata.key)
    if left.standing is Standing.MOVING:
        return migration is not None and bool(_held(migration))
    codes = {reason.code for reason in told.get(left.pod.metadata.key, ())}
    return left.standing is Standing.FREE and bool(codes) and codes <= BUDGETS


def _deletion(pod: Pod, progress: Progress) -> Request:
    meta = pod.metadata
    subject = Subject("v1", "Pod", meta.name, meta.namespace, meta.uid)
    note = f"the deadline of node {progress.drain.name} has passed and only a budget held the pod"
    return Request(
        verb=Verb.DELETE,
        resource=PODS,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        version=meta.resource_version,
        events=(Said(subject, OVERDUE, note), Said(_subject(progress.drain.node), OVERDUE, f"{meta.name}: {note}")),
    )


# ---- small readings


def _marks(context: Context) -> tuple[str, ...]:
    ours = context.keys
    return ours.cordoned_by, ours.maintenance_status, ours.maintenance_remaining, ours.maintenance_since


def _marked(context: Context) -> Iterator[Node]:
    """Nodes that carry a mark of ours. Asked in every turn, of thousands of nodes that carry none."""
    cordon, status, remaining, since = _marks(context)
    for found in context.state.nodes.values():
        node = found.node
        if node is None:
            continue
        notes = node.metadata.annotations
        if since in notes or cordon in notes or status in notes or remaining in notes:
            yield node


def _is_cordoned(name: str, state: ClusterState) -> bool:
    found = state.nodes.get(name)
    return found is not None and found.node is not None and found.node.spec.unschedulable


def _subject(node: Node) -> Subject:
    return Subject("v1", "Node", node.metadata.name, uid=node.metadata.uid)

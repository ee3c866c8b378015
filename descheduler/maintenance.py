"""What is written on a node while it is drained, and taken back afterwards.   Pure: decides, sends nothing.

A node that asks to be emptied is cordoned, and marked if the cordon is ours; how far its drain is stands on it in
words. All of it is read from the cluster as it is, so it does not matter who began and who goes on; `marks` takes it
back when the node no longer asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cluster.eventlog import Severity, Topic
from descheduler import drain, marks, overdue, signs
from descheduler.drain import Drain, Left, Standing
from descheduler.guards import Context
from descheduler.node_state import NodeState
from descheduler.overdue import Refusals
from descheduler.plan import Plan
from descheduler.proposal import Move, Urgency
from descheduler.reasons import Code, Reason
from descheduler.requests import Line, Request, Said
from descheduler.roster import Roster
from descheduler.state import ClusterState
from descheduler.strategies import node_maintenance
from policy import drain_status, signals, values
from policy.drain_status import DrainStatus, Stage
from policy.keys import Keys
from policy.settings_strategies import OnDeadline
from telemetry.catalogue import Log

REMAINING: Final = 2_000
"""Characters of the list of pods on the node; whoever wants the rest finds it in `descheduler plan`."""

DRAINED: Final = Topic("Drained", "Drain")
MISTAKEN: Final = Topic("InvalidValue", "Drain", Severity.WARNING)


@dataclass(frozen=True, slots=True)
class Progress:
    """One node that is being emptied, as it stands."""

    drain: Drain
    stage: Stage
    left: tuple[Left, ...]
    total: int
    """Pods that had to leave when it began; kept on the node, so that a restart does not count anew."""
    after: str = ""
    """Node that has to be empty before it is this one's turn."""

    @property
    def to_go(self) -> int:
        """Pods that still have to leave."""
        return sum(1 for it in self.left if it.standing not in {Standing.EXEMPT, Standing.LISTED})

    @property
    def text(self) -> str:
        """For the annotation: `draining 7/12`."""
        return str(DrainStatus(self.stage, self.total - self.to_go, self.total))


def look(context: Context) -> tuple[Progress, ...]:
    """Every node that is to be emptied, in the order of the queue."""
    drains = drain.asked(context)
    now = {it.name for it in drain.chosen(drains, context)}
    seen = [_progress(it, context, is_turn=it.name in now) for it in drains]
    first = next((it.drain.name for it in seen if it.stage is Stage.DRAINING), "")
    return tuple(replace(it, after=first) if it.stage is Stage.WAITING else it for it in seen)


def requests(seen: Sequence[Progress], context: Context, plan: Plan | None, *, may_begin: bool) -> Iterator[Request]:
    """What to write. `may_begin` is False while nothing new may be done."""
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
    for node in context.state.roster.once(_labelled, context.keys):
        if node.node is not None:
            for mistake in signals.mistakes(signs.of(node.node), keys=context.keys):
                yield Said(marks.subject(node.node), MISTAKEN, str(mistake))


def _labelled(roster: Roster, ours: Keys) -> tuple[NodeState, ...]:
    """Nodes on which somebody has asked for maintenance, rightly or not."""
    known = ((it, it.node.metadata) for it in roster.nodes.values() if it.node is not None)
    label, limit = ours.maintenance, ours.maintenance_deadline
    return tuple(it for it, meta in known if label in meta.labels or limit in meta.annotations)


def sendable(moves: Sequence[Move], state: ClusterState) -> tuple[Move, ...]:
    """Moves that may be begun: a drained node is cordoned first, or replacements would come back to it."""
    return tuple(it for it in moves if it.urgency is not Urgency.MAINTENANCE or _is_cordoned(it.source, state))


# ---- how far it is


def _progress(asked: Drain, context: Context, *, is_turn: bool) -> Progress:
    left = drain.left(asked.name, context)
    to_go = sum(1 for it in left if it.standing not in {Standing.EXEMPT, Standing.LISTED})
    before = drain_status.read(asked.node.metadata.annotations.get(context.keys.maintenance_status, ""))
    stage = Stage.DRAINING if is_turn else Stage.WAITING
    total = max(before.total if before is not None else 0, to_go)
    return Progress(asked, stage if to_go else Stage.DRAINED, left, total)


def _remaining(progress: Progress, context: Context, told: Refusals) -> str:
    lines = [
        f"{it.pod.metadata.namespace}/{it.pod.metadata.name}: {_why(it, context, told, progress.after)}"
        for it in progress.left
        if it.standing is not Standing.EXEMPT
    ]
    return _bounded(lines)


def _why(left: Left, context: Context, told: Refusals, after: str) -> str:
    key = left.pod.metadata.key
    match left.standing:
        case Standing.MOVING if all(reason.code is not Code.ALREADY_MIGRATING for reason in left.reasons):
            return "terminating"  # nobody moves it, it only takes its grace period
        case Standing.MOVING:
            migration = context.moving.get(key)
            held = overdue.held(migration) if migration is not None else ""
            return f"moving; {held}" if held else "moving"
        case Standing.FREE:
            return _joined(told.get(key, ())) or (
                f"to be moved after node {after} is empty" if after else "to be moved"
            )
        case _:
            return _joined(left.reasons)


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


def _refusals(plan: Plan | None) -> Refusals:
    """What the last plan said about pods that a drain wants to move."""
    found = plan.refusals if plan is not None else ()
    return {it.pod.metadata.key: it.reasons for it in found if it.strategy == node_maintenance.NAME}


# ---- what to write


def _written(progress: Progress, context: Context, told: Refusals) -> Request | None:
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
        wanted[ours.cordoned_by] = marks.OURS
    known = node.metadata.annotations
    changed = {key: value for key, value in wanted.items() if known.get(key) != value}
    if not changed and not cordons:
        return None
    spec = {"unschedulable": True} if cordons else None
    events, lines = _told(progress, context, cordons=cordons)
    return marks.patch(node, changed, spec, events, lines)


def _told(progress: Progress, context: Context, *, cordons: bool) -> tuple[tuple[Said, ...], tuple[Line, ...]]:
    subject, source = marks.subject(progress.drain.node), progress.drain.signal.source
    before = progress.drain.node.metadata.annotations.get(context.keys.maintenance_status, "")
    events: list[Said] = []
    lines: list[Line] = []
    if cordons:
        events.append(
            Said(subject, marks.CORDONED, f"{source} asks for an empty node; {progress.to_go} pods have to leave")
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


def _overdue(seen: Sequence[Progress], context: Context, told: Refusals) -> Iterator[Request]:
    """Pods that only a budget holds on a node whose time is over, if the settings let them be deleted."""
    if context.settings.strategies.node_maintenance.on_deadline is not OnDeadline.DELETE:
        return
    late = {it.name for it in drain.overdue([it.drain for it in seen], context.now)}
    for progress in seen:
        if progress.drain.name not in late:
            continue
        for left in progress.left:
            if overdue.only_a_budget(left, context, told):
                note = f"the deadline of node {progress.drain.name} has passed and only a budget held the pod"
                yield overdue.deletion(left.pod, node=progress.drain.node, note=note, settings=context.settings)


# ---- small readings


def _is_cordoned(name: str, state: ClusterState) -> bool:
    found = state.nodes.get(name)
    return found is not None and found.node is not None and found.node.spec.unschedulable

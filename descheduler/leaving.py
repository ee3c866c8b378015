"""What is written on a node that is being lost, and which of its pods are deleted in the end.   Pure.

The cordon and when the loss was first seen come in one patch; evictions do not wait for it. What is left on such a
node is looked at by the rules for interruptions, which are fewer than those for drains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cluster.eventlog import Severity, Topic
from cluster.objects import Pod
from descheduler import drain, grace, interruption, marks, overdue
from descheduler.drain import Left, Standing
from descheduler.guards import Context
from descheduler.interruption import Loss
from descheduler.overdue import Refusals
from descheduler.plan import Plan
from descheduler.proposal import Urgency
from descheduler.requests import Line, Request, Said
from policy import values
from policy.settings_strategies import OnDeadline
from telemetry.catalogue import Log

INTERRUPTED: Final = Topic("Interrupted", "Drain", Severity.WARNING)
PARTITIONED: Final = Topic("PartitionSuspected", "Drain", Severity.WARNING)


@dataclass(frozen=True, slots=True)
class Departure:
    """One node that is being lost, as it stands."""

    loss: Loss
    left: tuple[Left, ...]

    @property
    def to_go(self) -> tuple[Pod, ...]:
        """Pods that still have to leave, those that are stopping included."""
        return tuple(it.pod for it in self.left if it.standing not in {Standing.EXEMPT, Standing.LISTED})

    @property
    def staying(self) -> tuple[Pod, ...]:
        """Of them, those that nobody has asked to stop."""
        return tuple(it for it in self.to_go if it.metadata.deletion_timestamp is None)


def look(context: Context) -> tuple[Departure, ...]:
    """All of them, the nearest deadline first."""
    found = sorted(interruption.find(context).values(), key=lambda it: (it.deadline or interruption.NEVER, it.name))
    return tuple(Departure(it, drain.left(it.name, context, Urgency.INTERRUPTION)) for it in found)


def requests(seen: Sequence[Departure], context: Context, plan: Plan | None, *, may_begin: bool) -> Iterator[Request]:
    """What to write, and what to delete."""
    if not may_begin:
        return
    for departure in seen:
        written = _written(departure, context)
        if written is not None:
            yield written
    if context.settings.strategies.spot_interruption.on_deadline is OnDeadline.DELETE:
        told = _refusals(plan)
        for departure in seen:
            yield from _deletions(departure, context, told)


def partitions(context: Context) -> Iterator[Said]:
    """Why nodes that say nothing are left alone."""
    for node, partition in interruption.held(context):
        note = f"NotReady, but {partition}: taken for a failure of the network, nothing is evicted"
        yield Said(marks.subject(node), PARTITIONED, note)


def stuck(loss: Loss, context: Context) -> list[Pod]:
    """Pods that should have stopped by now, on a node where nobody can say that they have."""
    pods = context.state.nodes[loss.name].pods.values() if loss.silent else ()
    return [it for it in pods if (it.metadata.deletion_timestamp or interruption.NEVER) <= context.now]


def next_deadline(seen: Sequence[Departure], context: Context) -> datetime | None:
    """When a pod has to be deleted if it is to stop in time, or a deadline passes."""
    found: list[datetime] = []
    for departure in seen:
        deadline = departure.loss.deadline
        if deadline is not None:
            found += [deadline, *(deadline - grace.of(pod, context.settings) for pod in departure.staying)]
    return min((it for it in found if it > context.now), default=None)


def _written(departure: Departure, context: Context) -> Request | None:
    loss, ours = departure.loss, context.keys
    stands = loss.deadline is not None and not loss.withdrawable
    wanted: dict[str, str | None] = {
        ours.interruption_cause: loss.cause,
        ours.interruption_since: values.format_time(loss.since),
        ours.interruption_deadline: values.format_time(loss.deadline) if stands and loss.deadline else None,
    }
    cordons = not loss.node.spec.unschedulable
    if cordons:
        wanted[ours.cordoned_by] = marks.OURS
    known = loss.node.metadata.annotations
    changed = {key: value for key, value in wanted.items() if known.get(key) != value}
    if not changed and not cordons:
        return None
    events = () if known.get(ours.interruption_cause) == loss.cause else (_said(departure),)
    lines = (Line(Log.NODE_CORDONED, {"node": loss.name, "cause": loss.cause}),) if cordons else ()
    return marks.patch(loss.node, changed, {"unschedulable": True} if cordons else None, events, lines)


def _said(departure: Departure) -> Said:
    loss = departure.loss
    until = f" by {values.format_time(loss.deadline)}" if loss.deadline is not None else ""
    note = f"{loss.cause}: {len(departure.to_go)} pods have to leave{until}"
    return Said(marks.subject(loss.node), INTERRUPTED, note)


def _deletions(departure: Departure, context: Context, told: Refusals) -> Iterator[Request]:
    """Pods that a budget would hold until the node takes them, early enough to stop in order. A node that only says
    nothing has no deadline, so nothing on it is ever deleted.
    """
    deadline = departure.loss.deadline
    if deadline is None:
        return
    for left in departure.left:
        due = deadline - grace.of(left.pod, context.settings)
        if due <= context.now and overdue.only_a_budget(left, context, told):
            note = (
                f"node {departure.loss.name} is lost at {values.format_time(deadline)} and only a budget held the pod"
            )
            yield overdue.deletion(left.pod, node=departure.loss.node, note=note, settings=context.settings)


def _refusals(plan: Plan | None) -> Refusals:
    found = plan.refusals if plan is not None else ()
    return {it.pod.metadata.key: it.reasons for it in found if it.strategy == interruption.STRATEGY}

"""How interruptions went: when the last pod had left, when all replacements were Ready, and what was lost.

Kept by who leads, from one look to the next. A process that takes over finds on the node when the loss was first seen
and goes on counting from there; what was over before it came, it leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cluster.eventlog import Severity, Topic
from cluster.objects import Node, Pod
from descheduler import leaving, marks
from descheduler.guards import Context
from descheduler.interruption import Loss
from descheduler.leaving import Departure
from descheduler.telling import Recorder
from telemetry.meter import Meter
from telemetry.metrics import Metric

LEFT: Final = Topic("PodsLeft", "Drain")
LOST: Final = Topic("PodsLost", "Drain", Severity.WARNING)
STUCK: Final = Topic("PodsStuck", "Drain", Severity.WARNING)
NAMED: Final = 5
"""Pods named in an Event; the rest is a number."""


@dataclass(slots=True)
class Account:
    """One node that is, or was, being lost."""

    loss: Loss
    waited: bool = False
    """Whether it has been seen with pods that had to leave."""
    left: bool = False
    judged: bool = False
    """Whether what its deadline took has been counted."""


class Tally:
    """One per process."""

    def __init__(self, meter: Meter, recorder: Recorder) -> None:
        self._meter = meter
        self._recorder = recorder
        self._accounts: dict[str, Account] = {}
        self._stuck: frozenset[str] = frozenset()

    def look(self, seen: Sequence[Departure], context: Context) -> None:
        """Take in how things stand."""
        self._tell_stuck(seen, context)
        for departure in seen:
            self._advance(self._account(departure, context), departure, context)
        leaving = {it.loss.name for it in seen}
        moving = _sources(context)
        for name, account in list(self._accounts.items()):
            if name not in leaving:
                self._vanished(account, context)
            if account.left and name not in moving:
                self._meter.observe(Metric.INTERRUPTION_REPLACED_SECONDS, _seconds(account.loss.since, context.now))
                account.left = account.waited = False
            if name not in leaving and not account.left:
                del self._accounts[name]

    def _account(self, departure: Departure, context: Context) -> Account:
        loss = departure.loss
        found = self._accounts.get(loss.name)
        if found is None:
            found = self._accounts[loss.name] = Account(loss)
            noted = loss.node.metadata.annotations.get(context.keys.interruption_cause)
            if noted is None:
                self._meter.inc(Metric.INTERRUPTIONS, cause=loss.sort.value)
            # What had passed when we came, another has counted.
            found.judged = noted is not None and loss.deadline is not None and loss.deadline <= context.now
        found.loss = loss
        return found

    def _advance(self, account: Account, departure: Departure, context: Context) -> None:
        loss, now = departure.loss, context.now
        # On a node that says nothing nobody can see a pod stop: being told to is all there will be.
        left = departure.staying if loss.silent else departure.to_go
        if left:
            account.waited, account.left = True, False
        elif account.waited and not account.left:
            account.left = True
            self._gone(loss, _seconds(loss.since, now))
        if loss.deadline is not None and loss.deadline <= now and not account.judged:
            account.judged = True
            self._lost(loss.node, departure.staying)

    def _vanished(self, account: Account, context: Context) -> None:
        """The node is gone, or is not lost after all."""
        node = context.state.nodes.get(account.loss.name)
        if node is not None and node.node is not None:
            account.left = account.waited = False
            return
        if not account.judged:
            account.judged = True
            pods = node.pods.values() if node is not None else ()
            staying = [it for it in pods if it.metadata.deletion_timestamp is None and not _belongs(it)]
            self._lost(account.loss.node, staying)
        if account.waited and not account.left:
            account.left = True
            self._gone(account.loss, _seconds(account.loss.since, context.now))

    def _gone(self, loss: Loss, seconds: float) -> None:
        self._meter.observe(Metric.INTERRUPTION_LEFT_SECONDS, seconds)
        note = f"every pod that had to leave has left, {seconds:.1f} s after {loss.cause}"
        self._recorder.record(marks.subject(loss.node), LEFT, note)

    def _lost(self, node: Node, pods: Sequence[Pod]) -> None:
        if pods:
            self._meter.inc(Metric.PODS_LOST, len(pods))
            self._recorder.record(
                marks.subject(node), LOST, f"its time is over and these were still on it: {_names(pods)}"
            )

    def _tell_stuck(self, seen: Sequence[Departure], context: Context) -> None:
        """Once for each node, as long as it lasts."""
        found = {it.loss.name: (it.loss.node, leaving.stuck(it.loss, context)) for it in seen}
        for name, (node, pods) in found.items():
            if pods and name not in self._stuck:
                note = f"told to stop, but the node says nothing: {_names(pods)}; they are never force-deleted"
                self._recorder.record(marks.subject(node), STUCK, note)
        self._stuck = frozenset(name for name, (_, pods) in found.items() if pods)
        # Here too: that a pod should have stopped by now is told by no event, so no plan is made for it.
        self._meter.set(Metric.STUCK_PODS, sum(len(pods) for _, pods in found.values()))


def _names(pods: Iterable[Pod]) -> str:
    names = sorted(f"{it.metadata.namespace}/{it.metadata.name}" for it in pods)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _belongs(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is None or owner.kind == "DaemonSet"


def _sources(context: Context) -> frozenset[str]:
    """Nodes that pods are still being moved off: the last has left when its replacement is Ready."""
    found = (it.status.resolved for it in context.state.open_migrations())
    return frozenset(it.source_node for it in found if it is not None)


def _seconds(since: datetime, now: datetime) -> float:
    return max(timedelta(), now - since).total_seconds()

"""The state of things for a scraper: nodes, moves under way, workloads that rest, how uneven the load is.

Read when a plan is made, by who makes plans; a process that no longer leads takes its numbers back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from cluster.objects import Pod
from descheduler import interruption, leaving, memory, mixes
from descheduler.guards import Context
from descheduler.interruption import Scope, Sort
from descheduler.plan import Plan
from descheduler.roster import Roster
from descheduler.state import ClusterState
from policy import keys
from policy.capacity import CapacityType
from policy.settings import Settings
from telemetry.metrics import BOUNDED, LABELS, OTHER, Metric


class Reading(NamedTuple):
    """One series."""

    metric: Metric
    value: float
    labels: Mapping[str, str] = {}


def read(state: ClusterState, plan: Plan, settings: Settings, now: datetime) -> Iterator[Reading]:
    """Every series, those at zero too: a gauge that is not set again keeps its last value."""
    nodes = state.roster.once(_capacities)
    signalled = Counter(it.capacity for it in state.roster.signed())
    for kind in CapacityType:
        yield Reading(Metric.NODES, nodes[kind], {"capacity": kind.value})
        yield Reading(Metric.NODES_SIGNALLED, signalled[kind], {"capacity": kind.value})
    under_way = list(state.open_migrations())
    phases = Counter(it.status.phase or "Pending" for it in under_way)
    for phase in LABELS["phase"]:
        yield Reading(Metric.MIGRATIONS_OPEN, phases[phase], {"phase": phase})
    awaited = sum(it.status.step == "AwaitReplacement" for it in under_way)
    yield Reading(Metric.REPLACEMENTS_AWAITED, awaited)
    yield Reading(Metric.WORKLOADS_RESTING, len(memory.cooldowns(state.migrations.values(), settings, now)))
    yield Reading(Metric.IMBALANCE, _imbalance(plan))
    yield Reading(Metric.RESCHEDULING_INTERVAL, settings.rescheduling_interval.total_seconds())
    context = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns={})
    mixed = list(mixes.find(context))
    yield Reading(Metric.MIX_WORKLOADS, len(mixed))
    yield Reading(Metric.MIX_DRIFT, sum(it.over_on_spot + it.over_elsewhere for it in mixed))
    yield from _losses(context)


def none() -> Iterator[Reading]:
    """What a process that does not lead knows: nothing."""
    for kind in CapacityType:
        yield Reading(Metric.NODES, 0, {"capacity": kind.value})
        yield Reading(Metric.NODES_SIGNALLED, 0, {"capacity": kind.value})
    for phase in LABELS["phase"]:
        yield Reading(Metric.MIGRATIONS_OPEN, 0, {"phase": phase})
    for sort in Sort:
        yield Reading(Metric.NODES_LEAVING, 0, {"cause": sort.value})
    for scope in Scope:
        yield Reading(Metric.PARTITIONS, 0, {"scope": scope.value})
    for metric in (
        Metric.REPLACEMENTS_AWAITED,
        Metric.WORKLOADS_RESTING,
        Metric.IMBALANCE,
        Metric.RESCHEDULING_INTERVAL,
        Metric.STUCK_PODS,
        Metric.MIX_WORKLOADS,
        Metric.MIX_DRIFT,
    ):
        yield Reading(metric, 0)


def _losses(context: Context) -> Iterator[Reading]:
    losses = interruption.find(context).values()
    sorts = Counter(it.sort for it in losses)
    for sort in Sort:
        yield Reading(Metric.NODES_LEAVING, sorts[sort], {"cause": sort.value})
    scopes = Counter(it.scope for it in interruption.partitions(context))
    for scope in Scope:
        yield Reading(Metric.PARTITIONS, scopes[scope], {"scope": scope.value})
    yield Reading(Metric.STUCK_PODS, sum(len(leaving.stuck(it, context)) for it in losses))


class Share(NamedTuple):
    """Pods on spot nodes, and pods on nodes."""

    spot: int = 0
    total: int = 0

    @property
    def ratio(self) -> float:
        """0 without pods."""
        return self.spot / self.total if self.total else 0.0

    def plus(self, other: Share) -> Share:
        """Both together."""
        return Share(self.spot + other.spot, self.total + other.total)


def shares(state: ClusterState) -> dict[str, Share]:
    """By namespace: the largest, and `other` for the rest. Pods of DaemonSets are left out: they follow the nodes.
    Goes over all pods, so not for every plan.
    """
    spot = state.roster.spot()
    found: dict[str, Share] = {}
    for namespace, pods in state.by_namespace.items():
        on = [it.node_name for it in pods.values() if it.node_name and not _follows(it)]
        if on:
            found[namespace] = Share(sum(name in spot for name in on), len(on))
    ordered = sorted(found, key=lambda name: (-found[name].total, name))
    kept = {name: found[name] for name in ordered[: BOUNDED["namespace"]]}
    for name in ordered[BOUNDED["namespace"] :]:
        kept[OTHER] = kept.get(OTHER, Share()).plus(found[name])
    return kept


def _follows(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def _capacities(roster: Roster) -> Counter[CapacityType]:
    return Counter(it.capacity for it in roster.nodes.values() if it.node is not None)


def _imbalance(plan: Plan) -> float:
    """1 is level; an empty cluster is level too."""
    loads = [it.before for it in plan.nodes]
    mean = sum(loads) / len(loads) if loads else 0.0
    return max(loads) / mean if mean else 1.0

"""The state of things for a scraper: nodes, moves under way, workloads that rest, how uneven the load is.

Read when a plan is made, by who makes plans; a process that no longer leads takes its numbers back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from descheduler import memory, mixes
from descheduler.guards import Context
from descheduler.plan import Plan
from descheduler.state import ClusterState
from policy import keys
from policy.capacity import CapacityType
from policy.settings import Settings
from telemetry.metrics import LABELS, Metric


class Reading(NamedTuple):
    """One series."""

    metric: Metric
    value: float
    labels: Mapping[str, str] = {}


def read(state: ClusterState, plan: Plan, settings: Settings, now: datetime) -> Iterator[Reading]:
    """Every series, those at zero too: a gauge that is not set again keeps its last value."""
    known = [it for it in state.nodes.values() if it.node is not None]
    nodes = Counter(it.capacity for it in known)
    signalled = Counter(it.capacity for it in known if it.signed)
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
    mixed = list(mixes.find(Context(state, settings, keys.under(settings.label_prefix), now, cooldowns={})))
    yield Reading(Metric.MIX_WORKLOADS, len(mixed))
    yield Reading(Metric.MIX_DRIFT, sum(it.over_on_spot + it.over_elsewhere for it in mixed))


def none() -> Iterator[Reading]:
    """What a process that does not lead knows: nothing."""
    for kind in CapacityType:
        yield Reading(Metric.NODES, 0, {"capacity": kind.value})
        yield Reading(Metric.NODES_SIGNALLED, 0, {"capacity": kind.value})
    for phase in LABELS["phase"]:
        yield Reading(Metric.MIGRATIONS_OPEN, 0, {"phase": phase})
    for metric in (
        Metric.REPLACEMENTS_AWAITED,
        Metric.WORKLOADS_RESTING,
        Metric.IMBALANCE,
        Metric.MIX_WORKLOADS,
        Metric.MIX_DRIFT,
    ):
        yield Reading(metric, 0)


def _imbalance(plan: Plan) -> float:
    """1 is level; an empty cluster is level too."""
    loads = [it.before for it in plan.nodes]
    mean = sum(loads) / len(loads) if loads else 0.0
    return max(loads) / mean if mean else 1.0

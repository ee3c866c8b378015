"""A pod that only a budget holds on a node whose time is over: how it is deleted all the same, and told.   Pure.

Asked for only where the settings say so; a budget is its owner's word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cluster.eventlog import Severity, Topic
from cluster.objects import Node, Pod, PodMigration
from cluster.resources import PODS
from descheduler import marks
from descheduler.drain import Left, Standing
from descheduler.guards import Context
from descheduler.migration import replacement, world
from descheduler.node_state import Key
from descheduler.reasons import Code, Reason
from descheduler.requests import Request, Said, Verb, pod_subject
from policy.settings import Settings
from telemetry.metrics import Metric

TOPIC: Final = Topic("DeletedPastBudget", "Drain", Severity.WARNING)
BUDGETS: Final = frozenset({Code.PDB_NO_BUDGET, Code.PDB_MULTIPLE, Code.SINGLE_REPLICA})

Refusals = Mapping[Key, tuple[Reason, ...]]
"""What the last plan said about pods."""


def only_a_budget(left: Left, context: Context, told: Refusals) -> bool:
    """Whether nothing else holds it."""
    if left.pod.metadata.deletion_timestamp is not None:
        return False
    migration = context.moving.get(left.pod.metadata.key)
    if left.standing is Standing.MOVING:
        # Not of the pod that takes its place, of which no budget has said anything.
        if migration is None or world.source_of(migration, context.state) is not left.pod:
            return False
        return bool(held(migration)) and (left.pod.metadata.controller is not None or _is_copied(migration, context))
    if left.pod.metadata.controller is None:
        return False  # nothing would come in its place
    codes = {reason.code for reason in told.get(left.pod.metadata.key, ())}
    return left.standing is Standing.FREE and bool(codes) and codes <= BUDGETS


def _is_copied(migration: PodMigration, context: Context) -> bool:
    """Whether a pod without a controller has a copy that serves and only waits for the original to go."""
    copy = replacement.find(migration, context.state)
    return migration.status.step == "Evict" and copy is not None and copy.pod.ready


def held(migration: PodMigration) -> str:
    """What a budget said about its eviction."""
    return migration.status.message if (migration.status.intent or {}).get("blocked") else ""


def deletion(pod: Pod, *, node: Node, note: str, settings: Settings) -> Request:
    """With the grace period of an eviction, and only if it has not changed since it was looked at."""
    meta = pod.metadata
    return Request(
        verb=Verb.DELETE,
        resource=PODS,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        version=meta.resource_version,
        grace_period_seconds=settings.migrations.grace_period_seconds,
        events=(Said(pod_subject(pod), TOPIC, note), Said(marks.subject(node), TOPIC, f"{meta.name}: {note}")),
        counts=(Metric.DELETED_PAST_BUDGET,),
    )

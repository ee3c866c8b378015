"""A planned move as the PodMigration that stands for it: the only thing the planner writes.   Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from cluster.resources import PODMIGRATIONS
from descheduler.proposal import Move, Urgency
from policy.keys import API_GROUP, FINALIZER
from policy.values import MigrationId

SUFFIX: Final = 8
"""Characters of the pod's UID in the name: moves of one pass differ in their pods."""
CAUSE: Final = 1024
LABEL_STRATEGY: Final = f"{API_GROUP}/strategy"


def name(move: Move, now: datetime) -> str:
    """Unique: a pod is not planned twice in a millisecond."""
    uid = move.pod.metadata.uid.replace("-", "")
    return str(MigrationId(int(now.timestamp() * 1000), (uid[-SUFFIX:] or "x").lower()))


def body(move: Move, now: datetime) -> dict[str, Any]:
    """What to create in the pod's namespace."""
    spec: dict[str, Any] = {
        "podRef": {"name": move.pod.metadata.name, "uid": move.pod.metadata.uid},
        "strategy": move.strategy,
        "weight": move.weight,
        "cause": move.why[:CAUSE],
        "mode": move.mode.value,
    }
    if move.target is not None:
        spec["targetNode"] = move.target
    if move.deadline is not None:
        spec["deadline"] = move.deadline.isoformat().replace("+00:00", "Z")
    metadata: dict[str, Any] = {"name": name(move, now), "labels": {LABEL_STRATEGY: move.strategy}}
    if move.urgency is Urgency.INTERRUPTION:
        metadata["finalizers"] = [FINALIZER]  # it is taken up at once, and this is one request fewer until it leaves
    return {
        "apiVersion": PODMIGRATIONS.api_version,
        "kind": PODMIGRATIONS.kind,
        "metadata": metadata,
        "spec": spec,
    }

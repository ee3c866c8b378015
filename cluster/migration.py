"""PodMigration, the durable record of one move: what was asked for, and how far it got.

The schema is that of the custom resource; which phase follows which is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cluster.meta import Condition, ObjectMeta, OwnerReference, Part


class PodRef(Part, frozen=True):
    """The pod to move, in the migration's own namespace; without a UID, whichever pod has the name."""

    name: str = ""
    uid: str = ""


class MigrationSpec(Part, frozen=True):
    """The request. Users may set the first three, the rest is for the descheduler alone."""

    pod_ref: PodRef = PodRef()
    target_node: str = ""
    mode: str = ""
    strategy: str = ""
    weight: int = 0
    deadline: datetime | None = None
    cause: str = ""


class WorkloadRef(Part, frozen=True):
    """The controller at the top, such as the Deployment above the ReplicaSet."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class Resolved(Part, frozen=True):
    """What the request meant when it was taken up."""

    owner: OwnerReference | None = None
    workload: WorkloadRef | None = None
    pod_uid: str = ""
    source_node: str = ""
    target_node: str = ""
    mode: str = ""


class Replacement(Part, frozen=True):
    """The pod that took the place of the source."""

    name: str = ""
    uid: str = ""
    node: str = ""


class Exchange(Part, frozen=True):
    """The replacement took the target of another move, which has the one of this move instead."""

    migration: str = ""
    target_node: str = ""


class MigrationStatus(Part, frozen=True):
    """The state of the move; `intent` is written before each side effect."""

    phase: str = ""
    step: str = ""
    attempts: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    holder: str = ""
    resolved: Resolved | None = None
    intent: Mapping[str, Any] | None = None
    replacement: Replacement | None = None
    exchange: Exchange | None = None
    on_target: bool | None = None
    conditions: tuple[Condition, ...] = ()
    message: str = ""


class PodMigration(Part, frozen=True):
    """One move."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MigrationSpec = MigrationSpec()
    status: MigrationStatus = MigrationStatus()

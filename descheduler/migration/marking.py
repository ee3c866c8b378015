"""Labels and annotations that tell, on the pods and on the workload, of a move under way.   Pure."""

from __future__ import annotations

from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler.migration.actions import MarkPod, MarkWorkload
from descheduler.migration.world import World
from policy import values
from policy.keys import Keys
from policy.values import MigrationStatus

MARKED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Workloads that say themselves what is being moved."""


def of_source(
    migration: PodMigration, world: World, status: MigrationStatus
) -> tuple[dict[str, str], dict[str, str]]:
    """On the pod that moves."""
    ours = world.keys
    labels = {ours.migration_id: _id(migration), ours.migration_status: status.value}
    if migration.spec.strategy:
        labels[ours.migration_reason] = values.label_for_node(migration.spec.strategy)
    started = migration.status.started_at
    return labels, {ours.migration_time: values.format_time(started)} if started is not None else {}


def of_replacement(
    migration: PodMigration, world: World, status: MigrationStatus
) -> tuple[dict[str, str], dict[str, str]]:
    """What the webhook gave it, and where it was down, all of it: the move can be read from the pod alone."""
    ours, resolved = world.keys, migration.status.resolved
    labels, annotations = of_source(migration, world, status)
    if resolved is not None:
        labels[ours.migrated_from] = values.label_for_node(resolved.source_node)
        annotations[ours.original_pod] = resolved.pod_uid
        if world.goal:
            annotations[ours.migration_target] = world.goal
    annotations[ours.original_pod_name] = migration.spec.pod_ref.name
    return labels, annotations


def missing(pod: Pod, marks: tuple[dict[str, str], dict[str, str]]) -> MarkPod | None:
    """What the pod does not carry yet."""
    meta = pod.metadata
    labels: dict[str, str | None] = {key: value for key, value in marks[0].items() if meta.labels.get(key) != value}
    annotations: dict[str, str | None] = {
        key: value for key, value in marks[1].items() if meta.annotations.get(key) != value
    }
    return MarkPod(meta.name, meta.uid, labels, annotations) if labels or annotations else None


def unmark(migration: PodMigration, world: World) -> MarkPod | None:
    """Take the marks of this move off the pod again, if it stays."""
    source = world.source
    if source is None or source.metadata.deletion_timestamp is not None:
        return None
    is_ours = source.metadata.labels.get(world.keys.migration_id) == _id(migration)
    return bare(source, world.keys) if is_ours else None


def bare(pod: Pod, keys: Keys) -> MarkPod:
    """Take every mark of a move off a pod."""
    meta = pod.metadata
    labels = {key: None for key in keys.migration_labels if key in meta.labels}
    annotations = {key: None for key in keys.migration_annotations if key in meta.annotations}
    return MarkPod(meta.name, meta.uid, labels, annotations)


def workload(migration: PodMigration, world: World) -> MarkWorkload | None:
    """Have the workload say that a pod of it moves, if it does not yet."""
    found = world.workload
    if found is None or found.kind not in MARKED or found.object is None or world.keys.moving in found.labels:
        return None
    return MarkWorkload(found.kind, found.name, found.uid, _id(migration))


def is_foreign(pod: Pod, migration: PodMigration, world: World) -> bool:
    """Whether another move has it by now."""
    return pod.metadata.labels.get(world.keys.migration_id, _id(migration)) != _id(migration)


def of_workload(migration: PodMigration, world: World) -> tuple[str, str]:
    """The label by which the workload says that this very move is under way."""
    return world.keys.moving, _id(migration)


def _id(migration: PodMigration) -> str:
    return values.label_for_node(migration.metadata.name)

"""Marks and copies that belong to no migration any more, to be taken back.   Pure.

A migration clears away after itself. What is left is what it could not see: a request of a process that had stood
still and arrived when all was over, a pod that the webhook marked but that replaced nothing, a pod that ended by
itself while it was being moved, an object whose finalizer somebody removed by force. Taking back too many marks is
harmless: a migration that misses its mark sets it again. A copy goes only while its original lives and is not being
moved, which is looked at again right before, and not before its original is Ready if it serves itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from cluster.objects import Pod
from descheduler.migration import machine, marking, recreate, recreate_back
from descheduler.migration.actions import MarkPod, MarkWorkload, RemoveCopy
from descheduler.state import ClusterState
from policy import values
from policy.keys import Keys
from policy.values import MigrationStatus

UNFINISHED: Final = frozenset({MigrationStatus.PENDING.value, MigrationStatus.IN_PROGRESS.value})
"""Marks of a move under way; the others tell where a pod came from and stay with it."""

Leftover = tuple[str, MarkPod | MarkWorkload | RemoveCopy]
"""With its namespace."""


def find(state: ClusterState, keys: Keys) -> Iterator[Leftover]:
    """Every mark and every copy without a migration that answers for it."""
    alive = [it for it in state.migrations.values() if not machine.is_over(it)]
    ids = {(it.metadata.namespace, values.label_for_node(it.metadata.name)) for it in alive}
    for pod in chain(state.pods.values(), state.ended.values()):
        labels, meta = pod.metadata.labels, pod.metadata
        mark = labels.get(keys.migration_id, "")
        if meta.deletion_timestamp is not None or (meta.namespace, mark) in ids:
            continue
        original = _original(pod, state, keys) if mark else None
        if original is not None:
            if not recreate_back.serves_alone(pod, original):
                yield meta.namespace, _removal(pod, original, mark)
        elif labels.get(keys.migration_status) in UNFINISHED:
            yield meta.namespace, marking.bare(pod, keys)
    workloads = {
        (it.metadata.namespace, it.status.resolved.workload.uid)
        for it in alive
        if it.status.resolved is not None and it.status.resolved.workload is not None
    }
    for found in state.controllers.values():
        if keys.moving in found.labels and found.kind in marking.MARKED and found.key not in workloads:
            yield found.namespace, MarkWorkload(found.kind, found.name, found.uid, None)


def _original(pod: Pod, state: ClusterState, keys: Keys) -> Pod | None:
    """Of a copy that nobody needs: it lives on. One that has taken over has none any more."""
    meta = pod.metadata
    name = meta.annotations.get(keys.original_pod_name, "")
    original = state.pods.get((meta.namespace, name))
    if meta.controller is not None or not meta.name.startswith(recreate.PREFIX) or original is None:
        return None
    uid = original.metadata.uid
    lives = original.metadata.deletion_timestamp is None and meta.annotations.get(keys.original_pod) == uid
    return original if lives and not _took_over(meta.uid, state) else None


def _removal(copy: Pod, original: Pod, mark: str) -> RemoveCopy:
    meta, of = copy.metadata, original.metadata
    return RemoveCopy(meta.name, meta.uid, meta.resource_version, (of.name, of.uid, mark))


def _took_over(uid: str, state: ClusterState) -> bool:
    ended = (it.status for it in state.migrations.values() if it.status.phase == "Completed")
    return any(it.replacement is not None and it.replacement.uid == uid for it in ended)

"""Marks that belong to no migration any more, to be taken back.   Pure.

A migration clears away after itself. What is left is what it could not see: a request of a process that had stood
still and arrived when all was over, a pod that the webhook marked but that replaced nothing, a pod that ended by
itself while it was being moved, an object whose finalizer somebody removed by force. Taking back too much is
harmless: a migration that misses its mark sets it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from descheduler.migration import machine, marking
from descheduler.migration.actions import MarkPod, MarkWorkload
from descheduler.state import ClusterState
from policy import values
from policy.keys import Keys
from policy.values import MigrationStatus

UNFINISHED: Final = frozenset({MigrationStatus.PENDING.value, MigrationStatus.IN_PROGRESS.value})
"""Marks of a move under way; the others tell where a pod came from and stay with it."""

Leftover = tuple[str, MarkPod | MarkWorkload]
"""With its namespace."""


def find(state: ClusterState, keys: Keys) -> Iterator[Leftover]:
    """Every mark without a migration that answers for it."""
    alive = [it for it in state.migrations.values() if not machine.is_over(it)]
    ids = {(it.metadata.namespace, values.label_for_node(it.metadata.name)) for it in alive}
    for pod in chain(state.pods.values(), state.ended.values()):
        labels, meta = pod.metadata.labels, pod.metadata
        if labels.get(keys.migration_status) not in UNFINISHED or meta.deletion_timestamp is not None:
            continue
        if (meta.namespace, labels.get(keys.migration_id, "")) not in ids:
            yield meta.namespace, marking.bare(pod, keys)
    workloads = {
        it.status.resolved.workload.uid
        for it in alive
        if it.status.resolved is not None and it.status.resolved.workload is not None
    }
    for found in state.controllers.values():
        if keys.moving in found.labels and found.kind in marking.MARKED and found.uid not in workloads:
            yield found.namespace, MarkWorkload(found.kind, found.name, found.uid, None)

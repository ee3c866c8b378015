"""Moves under way, found by what they are about.   Pure.

Made anew when the state has changed and somebody asks: each of hundreds of moves asks about all others of its owner,
and looking through all of them every time would take seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cluster.objects import PodMigration
from policy.keys import FINALIZER

OPEN: Final = frozenset({"", "Pending", "InProgress"})
"""Phases of a migration that has not ended; a new one has none yet."""
Key = tuple[str, str]


def age(migration: PodMigration) -> tuple[str, str]:
    """Of several migrations of one pod the one with the least has it."""
    created = migration.metadata.creation_timestamp
    return created.isoformat() if created is not None else "", migration.metadata.name


def is_let_go(migration: PodMigration) -> bool:
    """Deleted, and not ours to clear away any more: nobody carries it on. The object may still be there for a long
    time, if somebody else has a finalizer on it.
    """
    meta = migration.metadata
    return meta.deletion_timestamp is not None and FINALIZER not in meta.finalizers


def is_open(migration: PodMigration) -> bool:
    """Under way, or about to be."""
    return migration.status.phase in OPEN and not is_let_go(migration)


class Moving:
    """Holds as long as the state stands still."""

    def __init__(self, migrations: Iterable[PodMigration]) -> None:
        self.open: list[PodMigration] = []
        """In the order in which they were heard of."""
        self.by_owner: dict[Key, list[PodMigration]] = {}
        """Open ones that were taken up, by namespace and UID of the owner of their pod."""
        self.by_workload: dict[Key, list[PodMigration]] = {}
        """The same by that of the workload at the top."""
        self.by_pod: dict[Key, list[PodMigration]] = {}
        """Open ones by namespace and name of the pod that they move."""
        self.exchanged: dict[str, list[PodMigration]] = {}
        """Those that have traded targets, by namespace; ended ones count, for the other may still be under way."""
        self.taken: set[Key] = set()
        """Namespaces and UIDs of pods that stand in for another, of ended ones too."""
        self.kept: dict[Any, Any] = {}
        """What others have worked out from all this, under keys of their own."""
        for migration in migrations:
            self._note(migration)

    def _note(self, migration: PodMigration) -> None:
        status, namespace = migration.status, migration.metadata.namespace
        if status.replacement is not None:
            self.taken.add((namespace, status.replacement.uid))
            if status.exchange is not None:
                self.exchanged.setdefault(namespace, []).append(migration)
        if not is_open(migration):
            return
        self.open.append(migration)
        self.by_pod.setdefault((namespace, migration.spec.pod_ref.name), []).append(migration)
        resolved = status.resolved
        if resolved is not None and resolved.owner is not None:
            self.by_owner.setdefault((namespace, resolved.owner.uid), []).append(migration)
        if resolved is not None and resolved.workload is not None:
            self.by_workload.setdefault((namespace, resolved.workload.uid), []).append(migration)

"""Moves as a person follows them: which pod, where from, where to, how far.   Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cluster.objects import PodMigration
from console import ages
from descheduler import memory
from descheduler.moving import OPEN
from descheduler.tables import Table

Plain = dict[str, Any]
COLUMNS: Final = ("NAME", "POD", "FROM", "TO", "LANDED", "STRATEGY", "PHASE", "STEP", "AGE")
WIDE: Final = ("MODE", "ATTEMPTS", "TOOK", "MESSAGE")
BY_HAND: Final = "by hand"


def is_open(migration: PodMigration) -> bool:
    """Whether it has not ended."""
    return migration.status.phase in OPEN


def ordered(migrations: Iterable[PodMigration]) -> list[PodMigration]:
    """Open ones last, where the eye is; the newest of each at the end."""
    return sorted(migrations, key=lambda it: (is_open(it), memory.ended(it), it.metadata.key))


def plain(migration: PodMigration) -> Plain:
    """For programs."""
    spec, status, meta = migration.spec, migration.status, migration.metadata
    resolved, replacement = status.resolved, status.replacement
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "pod": spec.pod_ref.name,
        "from": resolved.source_node if resolved is not None else None,
        "to": _target(migration) or None,
        "landed": replacement.node if replacement is not None and replacement.node else None,
        "replacement": replacement.name if replacement is not None and replacement.name else None,
        "onTarget": status.on_target,
        "strategy": spec.strategy or None,
        "mode": _mode(migration) or None,
        "phase": status.phase or "Pending",
        "step": status.step or None,
        "attempts": status.attempts,
        "cause": spec.cause or None,
        "message": status.message or None,
        "createdAt": ages.stamp(meta.creation_timestamp),
        "startedAt": ages.stamp(status.started_at),
        "finishedAt": ages.stamp(status.finished_at),
    }


def of(migrations: Sequence[PodMigration]) -> Plain:
    """A list for programs."""
    return {"migrations": [plain(it) for it in migrations]}


def table(
    migrations: Sequence[PodMigration], now: datetime, *, namespaces: bool, wide: bool, title: str = ""
) -> Table:
    """One row each; `namespaces` adds the column that -A needs."""
    columns = (*(("NAMESPACE",) if namespaces else ()), *COLUMNS, *(WIDE if wide else ()))
    return Table(title, columns, tuple(row(it, now, namespaces=namespaces, wide=wide) for it in migrations))


def row(migration: PodMigration, now: datetime, *, namespaces: bool, wide: bool) -> tuple[str, ...]:
    """One move."""
    told = plain(migration)
    cells = [
        told["name"],
        told["pod"],
        told["from"] or "-",
        told["to"] or "<any>",
        told["landed"] or "-",
        told["strategy"] or BY_HAND,
        told["phase"],
        told["step"] or "-",
        ages.between(migration.metadata.creation_timestamp, now),
    ]
    if wide:
        cells += [told["mode"] or "-", str(told["attempts"]), took(migration), told["message"] or "-"]
    return ((told["namespace"],) if namespaces else ()) + tuple(cells)


def took(migration: PodMigration) -> str:
    """From its start to its end."""
    started, finished = migration.status.started_at, migration.status.finished_at
    return "-" if started is None or finished is None else ages.length(finished - started)


def sentence(migration: PodMigration) -> str:
    """How it ended."""
    told = plain(migration)
    if told["phase"] != "Completed":
        return f"{told['phase']} at {told['step'] or 'its beginning'}: {told['message'] or 'no reason is given'}"
    where = f"{told['replacement'] or 'the replacement'} is Ready on {told['landed'] or 'a node'}"
    return f"Completed after {took(migration)}: {where}{_aim(told)}"


def _aim(told: Mapping[str, Any]) -> str:
    if not told["to"] or told["to"] == told["landed"]:
        return ", as planned" if told["onTarget"] else ""
    return f", as planned for a sibling, which gets {told['to']}" if told["onTarget"] else f", not on {told['to']}"


def _target(migration: PodMigration) -> str:
    resolved = migration.status.resolved
    return (resolved.target_node if resolved is not None else "") or migration.spec.target_node


def _mode(migration: PodMigration) -> str:
    resolved = migration.status.resolved
    return (resolved.mode if resolved is not None else "") or migration.spec.mode

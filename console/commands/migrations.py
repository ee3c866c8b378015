"""`migrations`: moves under way and before, once or as they change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from cluster import errors
from cluster.objects import PartialObjectMetadata, PodMigration
from cluster.resources import NAMESPACES, PODMIGRATIONS
from cluster.store import Kind
from console import door, following, look, screen
from console.door import Unusable
from console.ending import Ending
from console.session import Session
from console.views import move_list
from descheduler.tables import Table
from policy import documents


def run(session: Session) -> Ending:
    """Print them."""
    options = session.options
    found = _wanted(move_list.ordered(_listed(session)), session)
    if options.watch and session.machine:
        _stream(session)
        return Ending.DONE
    if not found:
        _check_namespace(session)
    namespaces = session.scope is None
    table = move_list.table(found, session.now, namespaces=namespaces, wide=session.wide)
    where = "" if namespaces else f" in namespace {session.namespace}"
    nothing = Table(f"No moves{' under way' if options.open else ''}{where}")
    session.show(move_list.of(found), (table if found else nothing,))
    if options.watch:
        _follow(session, found, table)
    return Ending.DONE


def _listed(session: Session) -> tuple[PodMigration, ...]:
    try:
        return session.door.client.list(PODMIGRATIONS, type=PodMigration, namespace=session.scope).items
    except errors.NotFound as absent:
        raise Unusable(door.NOT_INSTALLED) from absent


def _check_namespace(session: Session) -> None:
    """Where there are no moves: the namespace may not be there. Who may not list them is not told."""
    known: list[str] = []
    with contextlib.suppress(errors.ApiError):
        listed = session.door.client.list(NAMESPACES, type=PartialObjectMetadata, metadata_only=True)
        known = [it.metadata.name for it in listed.items]
    look.check_known(session.scope or "", known)


def _wanted(migrations: list[PodMigration], session: Session) -> list[PodMigration]:
    return [it for it in migrations if move_list.is_open(it)] if session.options.open else migrations


def _follow(session: Session, found: list[PodMigration], table: Table) -> None:
    """A line for each change, below the columns that are there."""
    known = {it.metadata.uid: move_list.row(it, session.now, namespaces=False, wide=True) for it in found}
    rows = (table.columns, *table.rows)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    out = screen.terminal(session.out) if session.live else None
    for kind, migration in _changes(session):
        story = move_list.row(migration, session.now, namespaces=False, wide=True)
        if kind is Kind.DELETED or _same(known.get(migration.metadata.uid), story):
            continue
        known[migration.metadata.uid] = story
        cells = move_list.row(migration, session.now, namespaces=session.scope is None, wide=session.wide)
        padded = [screen.clean(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)]
        if out is None:
            session.say("  ".join(padded).rstrip())
        else:
            out.print(screen.line(padded), soft_wrap=True)


def _same(before: tuple[str, ...] | None, after: tuple[str, ...]) -> bool:
    """But for the age, which changes all the time."""
    age = move_list.COLUMNS.index("AGE")
    return before is not None and (before[:age], before[age + 1 :]) == (after[:age], after[age + 1 :])


def _stream(session: Session) -> None:
    """One document for each change, for programs."""
    for kind, migration in _changes(session):
        told = {"event": str(kind), **move_list.plain(migration)}
        if session.options.output == "json":
            session.out.write(msgspec.json.encode(told).decode() + "\n")
        else:
            session.out.write("---\n" + documents.write(told))
        session.out.flush()


def _changes(session: Session) -> Iterator[tuple[Kind, PodMigration]]:
    options, runtime = session.options, session.runtime
    seconds = None if options.timeout is None else options.timeout.total_seconds()
    client, scope = session.door.client, session.scope
    with following.followed(client, PODMIGRATIONS, PodMigration, runtime, namespace=scope) as changes:
        for delta in following.each(changes, runtime, seconds):
            if delta is not None and (move_list.is_open(delta.object) or not options.open or delta.old is not None):
                yield delta.kind, delta.object

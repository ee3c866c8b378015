"""`top`: nodes and moves as they change, on a terminal; one picture, or as many as wanted, elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Group
from rich.live import Live as Screen

from cluster import errors
from console import following, look, screen
from console.door import Unusable
from console.ending import Ending
from console.look import Around, Look
from console.session import Session
from console.views import move_list, node_list, overview
from console.views.node_list import Seen
from descheduler.gathered import Gap, Gathered
from descheduler.state import ClusterState
from descheduler.sync import Live
from descheduler.tables import Table

HEAD: Final = 8
"""Lines above the tables."""
RECENT: Final = 5
"""Moves that have ended."""
SYNC_SECONDS: Final = 60.0
"""Until the first picture of a large cluster."""


def run(session: Session) -> Ending:
    """Show it."""
    if session.live and session.options.count is None:
        return _live(session)
    ended = Ending.DONE
    for number in range(session.options.count or 1):
        if number:
            threading.Event().wait(session.options.interval.total_seconds())
        seen = look.take(session)
        session.show(_plain(seen), _pages(seen, rows=None))
        ended = Ending.INCOMPLETE if seen.assumed else Ending.DONE
    return ended


# ---- one picture


def _plain(seen: Look) -> dict[str, Any]:
    migrations, nodes = move_list.ordered(seen.state.migrations.values()), node_list.see(seen)
    return {"status": overview.of(seen, nodes), **node_list.of(nodes, seen), **move_list.of(migrations)}


def _pages(seen: Look, *, rows: int | None) -> Iterator[Table]:
    """`rows` is what a terminal has room for; None: everything."""
    nodes = node_list.see(seen)
    told = overview.of(seen, nodes)
    yield from node_list.assumed(seen)
    lines = (
        ("leader", overview.leader_text(told["leader"], seen.now)),
        ("mode", overview.mode_text(told)),
        ("last pass", overview.pass_text(told["lastPass"], seen.now)),
        ("moves", overview.moves_text(told["migrations"], seen.now)),
    )
    yield Table("", ("WHAT", "HOW IT STANDS"), lines)
    moves = move_list.ordered(seen.state.migrations.values())
    under_way = [it for it in moves if move_list.is_open(it)]
    ended = [it for it in moves if not move_list.is_open(it)][-RECENT:]
    spare = None if rows is None else max(3, rows - HEAD - len(under_way) - len(ended) - 6)
    yield _nodes(seen, nodes, overview.nodes_text(told["nodes"]), spare)
    shown = under_way if rows is None else under_way[: max(3, rows // 3)]
    for title, chosen in ((f"Under way ({len(under_way)})", shown), ("Ended last", ended)):
        if chosen:
            yield move_list.table(chosen, seen.now, namespaces=True, wide=False, title=title)


def _nodes(seen: Look, nodes: Sequence[Seen], summary: str, spare: int | None) -> Table:
    found = sorted(nodes, key=lambda it: (-it.node.load(), it.node.name))
    shown = found if spare is None else found[:spare]
    rows = tuple(node_list.row(it, seen, wide=False) for it in shown)
    note = f"{len(found) - len(shown)} more that are less full" if len(found) > len(shown) else ""
    columns = ("NODE", "CAPACITY", "LOAD", "PODS", "MOVES", "STATE", "AGE")
    return Table(f"Nodes {summary}", columns, rows, note)


# ---- live


@dataclass(slots=True)
class _Painter:
    """Makes a picture on the thread that owns the state, which stands still meanwhile."""

    session: Session
    around: Around
    gaps: tuple[Gap, ...]
    height: int
    picture: Group | None = None
    ready: threading.Event = field(default_factory=threading.Event)

    def turn(self, state: ClusterState) -> float:
        """One picture; and when to make the next if nothing changes."""
        seen = self.around.look(Gathered(state, 0, self.gaps), self.session.now)
        self.picture = screen.drawn(_pages(seen, rows=self.height))
        self.ready.set()
        return float(self.session.options.interval.total_seconds())


def _live(session: Session) -> Ending:
    client = session.door.client
    sources, gaps = following.permitted(client)
    console = screen.terminal(session.out)
    painter = _Painter(session, _ask(session), gaps, console.size.height)
    settings = painter.around.in_force.settings
    with following.state(sources, settings, painter.turn, session.runtime) as live:
        if not painter.ready.wait(SYNC_SECONDS):
            raise Unusable(f"the cluster could not be read within {SYNC_SECONDS:g} s: {live.problem()}")
        try:
            window = Screen(painter.picture, console=console, screen=True, auto_refresh=False)
            _paint(session, painter, live, window)
        except KeyboardInterrupt:
            return Ending.DONE  # that is how one leaves it
    return Ending.DONE


def _paint(session: Session, painter: _Painter, live: Live, window: Screen) -> None:
    pause = session.options.interval.total_seconds()
    asked = session.runtime.clock()
    with window:
        while True:
            painter.ready.wait(pause)
            painter.ready.clear()
            if painter.picture is not None:
                window.update(painter.picture, refresh=True)
            if session.runtime.clock() - asked >= pause:
                asked = session.runtime.clock()
                painter.height = window.console.size.height
                try:
                    found = _ask(session)
                except (errors.ApiError, Unusable):
                    # The picture grows old and says so by its ages, and the watches go on by themselves; a file of
                    # settings that is being written holds again in a moment.
                    continue
                if found.in_force.settings != painter.around.in_force.settings:
                    live.configure(found.in_force.settings)
                painter.around = found


def _ask(session: Session) -> Around:
    options = session.options
    return look.around(session.door.client, session.now, system=options.system_namespace, file=options.settings)

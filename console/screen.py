"""Writes a report in the form that was asked for: for people on a terminal, for people elsewhere, for programs.

On a terminal columns have colours, and loads have bars; into a pipe or a file go the columns that kubectl would
print, with nothing that steers a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TextIO

import msgspec
import rich.box
import rich.table
from rich.console import Console, Group, RenderableType
from rich.text import Text

from descheduler import tables
from descheduler.tables import Table
from policy import documents

BAR: Final = 12
"""Characters of a full bar."""
WARM: Final = 60.0
HOT: Final = 80.0
"""Percent from which a bar is yellow, and red."""
WORDS: Final[Mapping[str, str]] = {
    "spot": "cyan",
    "Completed": "green",
    "InProgress": "yellow",
    "Failed": "red",
    "Cancelled": "dim",
    "ok": "green",
    "warning": "yellow",
    "unknown": "yellow",
    "failed": "red",
    "ready": "green",
    "hot": "red",
    "interrupted": "bold red",
    "rebalance": "red",
    "not-ready": "bold red",
    "maintenance": "yellow",
    "draining": "yellow",
    "waiting": "yellow",
    "drained": "green",
    "cordoned": "magenta",
    "yes": "green",
    "no": "red",
}
"""How a cell is coloured, by its first word."""

clean = tables.clean


def write(out: TextIO, form: str, report: dict[str, Any], pages: Iterable[Table]) -> None:
    """`pages` is what the report looks like to people."""
    if form == "json":
        out.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
    elif form == "yaml":
        out.write(documents.write(report))
    elif out.isatty():
        terminal(out).print(drawn(pages))
    else:
        out.write("\n".join(map(plain, pages)))


def terminal(out: TextIO) -> Console:
    """A terminal that takes text as it is: names in it are nobody's markup."""
    return Console(file=out, highlight=False, markup=False, emoji=False)


def plain(table: Table) -> str:
    """As kubectl prints it where there is no title, and below its title where there is one."""
    text = tables.aligned(table)
    if table.title:
        return text
    return "\n".join(line.removeprefix("  ") for line in text.splitlines()[1:]) + "\n"


def drawn(pages: Iterable[Table]) -> Group:
    """For a terminal."""
    parts: list[RenderableType] = []
    for page in pages:
        if parts:
            parts.append("")
        if page.title:
            parts.append(Text(clean(page.title), style="bold"))
        if page.rows:
            parts.append(_table(page))
        if page.note:
            parts.append(Text(f"({clean(page.note)})", style="dim"))
    return Group(*parts)


def _table(page: Table) -> rich.table.Table:
    made = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in page.columns:
        made.add_column(column, overflow="fold")
    looks = [LOOKS.get(column, _word) for column in page.columns]
    for row in page.rows:
        made.add_row(*(look(clean(cell)) for look, cell in zip(looks, row, strict=True)))
    return made


def _word(cell: str) -> Text:
    first = cell.split(" ", 1)[0].rstrip(",:")
    return Text(cell, style=WORDS.get(first, ""))


def bar(cell: str) -> Text:
    """A share with its bar: `63.2 %`, or `7/12`; anything else stays as it is."""
    share = _share(cell)
    if share is None:
        return Text(cell)
    filled = round(min(share, 100.0) / 100 * BAR)
    style = "red" if share >= HOT else "yellow" if share >= WARM else "green"
    return Text.assemble(("━" * filled, style), ("─" * (BAR - filled), "dim"), f" {cell}")


def _share(cell: str) -> float | None:
    try:
        if cell.endswith(" %"):
            return float(cell[:-2])
        done, slash, total = cell.rpartition(" ")[2].partition("/")
        return 100 * int(done) / int(total) if slash and int(total) else None
    except ValueError:
        return None


def _progress(cell: str) -> Text:
    """How far something is: the more the better, so that it has one colour."""
    share = _share(cell)
    if share is None:
        return _word(cell)
    filled = round(share / 100 * BAR)
    return Text.assemble(("━" * filled, "green"), ("─" * (BAR - filled), "dim"), f" {cell}")


LOOKS: Final[Mapping[str, Callable[[str], Text]]] = {
    "LOAD": bar,
    "AFTER": bar,
    "CPU": bar,
    "MEMORY": bar,
    "PROGRESS": _progress,
    "WHY": Text,
    "POD": Text,
    "NODE": Text,
}
"""By name of the column."""


def line(cells: Iterable[str]) -> Text:
    """One row below columns that were printed before."""
    return Text("  ").join(_word(cell) for cell in cells)

"""Writes a report in the form that was asked for: a table for people, JSON or YAML for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

import msgspec
import rich.box
import rich.table
from rich.console import Console
from rich.text import Text

from descheduler import tables
from descheduler.tables import Table
from policy import documents


def write(out: TextIO, form: str, report: dict[str, Any], pages: Iterable[Table]) -> None:
    """`pages` is what the report looks like as tables."""
    if form == "json":
        out.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
    elif form == "yaml":
        out.write(documents.write(report))
    elif out.isatty():
        _draw(Console(file=out, highlight=False), pages)
    else:
        out.write("\n".join(map(tables.aligned, pages)))


def _draw(console: Console, pages: Iterable[Table]) -> None:
    for page in pages:
        console.print(Text(tables.clean(page.title), style="bold"))
        if page.rows:
            drawn = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
            for column in page.columns:
                drawn.add_column(column, overflow="fold")
            for row in page.rows:
                drawn.add_row(*(Text(tables.clean(cell)) for cell in row))
            console.print(drawn)
        if page.note:
            console.print(Text(f"({page.note})", style="dim"))

"""What goes to a terminal, and what goes elsewhere."""

import io
import json

import pytest
import yaml

from console import screen
from descheduler.tables import Table

LIST = Table("", ("NODE", "LOAD", "STATE"), (("a", "63.2 %", "hot"), ("long-name", "7.0 %", "ready")))
ESCAPE = "\x1b"


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


def written(form: str, *pages: Table, terminal: bool = False) -> str:
    out = Terminal() if terminal else io.StringIO()
    screen.write(out, form, {"nodes": ["a"]}, pages)
    return out.getvalue()


@pytest.mark.parametrize("form", ["table", "wide"])
def test_into_a_pipe_go_columns_as_kubectl_prints_them(form: str) -> None:
    assert written(form, LIST) == ("NODE       LOAD    STATE\na          63.2 %  hot\nlong-name  7.0 %   ready\n")


def test_what_has_a_title_is_indented_below_it() -> None:
    assert written("table", Table("Nodes", ("NODE",), (("a",),), "more")) == "Nodes:\n  NODE\n  a\n  (more)\n"


def test_on_a_terminal_there_are_bars_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    drawn = written("table", LIST, terminal=True)
    assert "━━━━━━━━" in drawn
    assert f"{ESCAPE}[31mhot" in drawn


def test_programs_get_the_same_wherever_it_goes() -> None:
    for terminal in (False, True):
        assert json.loads(written("json", LIST, terminal=terminal)) == {"nodes": ["a"]}
        assert yaml.safe_load(written("yaml", LIST, terminal=terminal)) == {"nodes": ["a"]}


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_names_neither_steer_the_terminal_nor_mark_text_up(
    monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    hostile = f"{ESCAPE}]0;owned\x07[bold]b[/bold]"
    drawn = written("table", Table(hostile, ("POD",), ((hostile,),), hostile), terminal=terminal)
    assert ESCAPE not in drawn
    assert drawn.count("[bold]b[/bold]") == 3


BARS = {
    "empty": ("0.0 %", "────────────"),
    "half": ("50.0 %", "━━━━━━──────"),
    "more than full": ("120.0 %", "━━━━━━━━━━━━"),
    "of a number": ("3/4", "━━━━━━━━━───"),
    "no share": ("-", ""),
    "of nothing": ("0/0", ""),
}


@pytest.mark.parametrize(("cell", "wanted"), BARS.values(), ids=BARS.keys())
def test_bars(cell: str, wanted: str) -> None:
    assert screen.bar(cell).plain == (f"{wanted} {cell}" if wanted else cell)

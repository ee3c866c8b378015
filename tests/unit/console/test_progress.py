"""How far a move is, and what is written of it where there is no terminal."""

import argparse
import io

import pytest

from console import progress
from console.session import Session
from tests.unit.cluster.surroundings import World

STEPS = {
    "not taken up": ("", (0, 0)),
    "first": ("Guard", (0, 5)),
    "last": ("Settle", (4, 5)),
    "of a double": ("AwaitAvailable", (3, 6)),
    "of a copy": ("CreateCopy", (3, 6)),
    "of a later version": ("Teleport", (0, 0)),
}


@pytest.mark.parametrize(("step", "wanted"), STEPS.values(), ids=STEPS.keys())
def test_how_far_a_move_is(step: str, wanted: tuple[int, int]) -> None:
    assert progress.steps(step) == wanted


@pytest.mark.parametrize(("form", "wanted"), [("table", "a: one\nb: one\na: two\\x1b\n"), ("json", "")])
def test_a_line_for_each_change_and_none_for_programs(form: str, wanted: str) -> None:
    out = io.StringIO()
    session = Session(argparse.Namespace(output=form), out, io.StringIO(), World().runtime)
    with progress.shown(session, ("a", "b")) as tracker:
        for name, text in (("a", "one"), ("b", "one"), ("a", "one"), ("a", "two\x1b")):
            tracker.tell(name, text, 0, 0)
    assert out.getvalue() == wanted

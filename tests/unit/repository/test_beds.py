"""Control planes that tests make end with the run, however it ends."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
LIFE = "integration/testbed/test_lifecycle.py"
"""How one ends without that is what is tested there."""


def unguarded(text: str) -> Iterator[int]:
    """Lines that call `bed.up` without an owner."""
    calls = (it for it in ast.walk(ast.parse(text)) if isinstance(it, ast.Call) and ast.unparse(it.func) == "bed.up")
    yield from (it.lineno for it in calls if "owner" not in {word.arg for word in it.keywords})


def makers() -> list[str]:
    files = (it for it in TESTS.rglob("*.py") if "unit" not in it.parts and "bed.up(" in it.read_text())
    return sorted(it.relative_to(TESTS).as_posix() for it in files)


@pytest.mark.parametrize("file", [it for it in makers() if it != LIFE])
def test_a_control_plane_has_an_owner(file: str) -> None:
    assert list(unguarded((TESTS / file).read_text())) == []


def test_one_without_is_found() -> None:
    text = "bed.up(home, built, owner=os.getpid())\nbed.up(home, built, nodes=1)\n"
    assert (list(unguarded(text)), LIFE in makers(), len(makers()) > 8) == ([2], True, True)

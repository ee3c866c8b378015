"""The audit of dependencies finds what is wrong, and says what it cannot know."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed import dependencies
from testbed.dependencies import Pin

ROOT = Path(__file__).parents[3]
GOOD = "a" * 64
TEXT = f"""\
# made by a tool
one==1.0 ; sys_platform != 'win32' \\
    --hash=sha256:{GOOD} \\
    --hash=sha256:{"b" * 64}
    # via two
Two_x==2.0.1 \\
    --hash=sha256:{"c" * 64}
three==3
-r other.txt
four>=4
"""


def test_pins_are_read() -> None:
    assert list(dependencies.read(TEXT)) == [
        Pin("one", "1.0", frozenset({GOOD, "b" * 64}), conditional=True),
        Pin("two_x", "2.0.1", frozenset({"c" * 64})),
        Pin("three", "3", frozenset()),
        Pin("four>=4", "", frozenset()),
    ]


def told(*, newest: str = "1.0", yanked: bool = False, digest: str = GOOD, holes: tuple[Any, ...] = ()) -> Any:
    files = [{"yanked": yanked, "digests": {"sha256": digest}}]
    return {"info": {"version": newest}, "releases": {"1.0": files}, "vulnerabilities": list(holes)}


HOLE = {"id": "PYSEC-1", "summary": "a hole", "withdrawn": None}
PIN = Pin("one", "1.0", frozenset({GOOD}))
JUDGED: dict[str, tuple[Mapping[str, Any], list[str] | None]] = {
    "nothing wrong": ({"one/1.0": told()}, []),
    "a hole": ({"one/1.0": told(holes=(HOLE,))}, ["one 1.0: PYSEC-1: a hole"]),
    "a hole that was none": ({"one/1.0": told(holes=({**HOLE, "withdrawn": "2026-01-01"},))}, []),
    "withdrawn": ({"one/1.0": told(yanked=True)}, ["one 1.0: withdrawn from the index"]),
    "another file": (
        {"one/1.0": told(digest="f" * 64)},
        ["one 1.0: a pinned hash is not that of any published file"],
    ),
    "only the newest is told, and it is ours": ({"one": told()}, []),
    "only the newest is told, and it is another": ({"one": told(newest="2.0", holes=(HOLE,))}, None),
    "withdrawn, though another is newest": (
        {"one": told(newest="2.0", yanked=True)},
        ["one 1.0: withdrawn from the index"],
    ),
    "the index knows nothing of it": ({}, None),
}


@pytest.mark.parametrize(("index", "verdict"), JUDGED.values(), ids=JUDGED.keys())
def test_judged(index: Mapping[str, Any], verdict: list[str] | None) -> None:
    assert dependencies.judge(PIN, index.get) == verdict


INSTALLED = {
    "another version": (Pin("pyyaml", "0.1", frozenset({GOOD})), "pyyaml: 6"),
    "not installed": (Pin("no-such-package", "1", frozenset({GOOD})), "no-such-package: not installed"),
    "no hash": (Pin("no-such-package", "1", frozenset(), conditional=True), "no-such-package: pinned without a hash"),
    "no version": (Pin("x>=1", "", frozenset(), conditional=True), "x>=1: no version is pinned"),
}


@pytest.mark.parametrize(("pin", "wrong"), INSTALLED.values(), ids=INSTALLED.keys())
def test_what_is_wrong_here(pin: Pin, wrong: str) -> None:
    found = dependencies.audit([pin], None)
    assert len(found.wrong) == 1
    assert found.wrong[0].startswith(wrong)
    assert found.unjudged == [f"{pin.name} {pin.version}"]


def test_ours_are_in_order_as_far_as_this_machine_knows() -> None:
    found = dependencies.audit(dependencies.all_pins(ROOT), None)
    assert found.wrong == []
    assert found.installed > 40

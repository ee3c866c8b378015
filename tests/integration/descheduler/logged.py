"""What processes have said, read as whoever collects logs reads it: one JSON object a line, chosen by its fields."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from testbed.waiting import eventually

Line = dict[str, Any]
ANY: Any = object()
"""A value that is there, whatever it is."""
ON_ITS_WAY = frozenset({"RETRIED"})
"""What may happen to any move that shares a machine with others."""


def lines(text: str, **chosen: str) -> list[Line]:
    """Lines with these fields."""
    found = [json.loads(it) for it in text.splitlines() if it.startswith("{")]
    return [it for it in found if all(it.get(key) == value for key, value in chosen.items())]


def story(read: Callable[[], str], migration: str, last: str = "CLEANED_UP") -> list[Line]:
    """What was told of one move, up to its last line, which is written a moment after the cluster shows it."""
    found = eventually(
        lambda: [it for it in lines(read(), migration=migration) if it["event"] not in ON_ITS_WAY],
        until=lambda told: bool(told) and told[-1]["event"] == last,
        what=f"{last} of {migration} in the log",
    )
    assert len({it["pod"] for it in found}) == len({it["namespace"] for it in found}) == 1
    return found


def tells(found: Sequence[Line], *expected: Line) -> None:
    """These lines in this order and no other, each with at least these fields."""
    assert [it["event"] for it in found] == [it["event"] for it in expected], found
    for line, wanted in zip(found, expected, strict=True):
        for key, value in wanted.items():
            assert key in line, (key, line)
            assert value is ANY or line[key] == value, (key, line)

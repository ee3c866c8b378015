"""Fifty hostile inputs for each target; `python -m tests.unit.fuzz` is the campaign."""

import pytest

from tests.effort import many
from tests.unit.fuzz.__main__ import play
from tests.unit.fuzz.targets import TARGETS

COUNT = many(50)
BOTH = {"taken", "refused"}


@pytest.mark.parametrize("target", TARGETS)
def test_taken_or_refused_and_nothing_else(target: str) -> None:
    found = play(target, 1, 0, COUNT)
    assert found.total() == COUNT
    assert set(found) == ({"taken"} if target == "annotations" else BOTH), "values of ours never cost a pod"


def test_a_failure_is_told_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "nodes", lambda rng: str(1 / (rng.random() > 2)))
    with pytest.raises(AssertionError, match="nodes, seed 7, input 3: ZeroDivisionError"):
        play("nodes", 7, 3, 5)

"""Two replacements of one owner never get the same target, and one asked twice gets the same."""

from datetime import timedelta

import pytest

from extender import promises
from extender.promises import KEPT_FOR, Promises
from tests.unit.extender.building import NOW, move

A, B = move("m-1", "a"), move("m-2", "b")
LATER = NOW + KEPT_FOR + timedelta(seconds=1)


def test_each_pod_gets_its_own() -> None:
    made = Promises()
    given = [made.target((A, B), pod=pod, nodes={"a", "b", "c"}, now=NOW) for pod in ("x", "x", "y", "z", "x")]
    assert given == ["a", "a", "b", None, "a"]


def test_a_target_that_cannot_take_the_pod_is_left_to_another() -> None:
    made = Promises()
    assert made.target((A, B), pod="x", nodes={"b"}, now=NOW) == "b"
    assert made.target((A, B), pod="y", nodes={"a", "b"}, now=NOW) == "a"


def test_a_promise_moves_on_when_its_node_cannot_take_the_pod_any_more() -> None:
    made = Promises()
    assert made.target((A, B), pod="x", nodes={"a", "b"}, now=NOW) == "a"
    assert made.target((A, B), pod="x", nodes={"b"}, now=NOW) == "b"


def test_a_promise_ends() -> None:
    made = Promises()
    assert made.target((A,), pod="x", nodes={"a"}, now=NOW) == "a"
    assert made.target((A,), pod="y", nodes={"a"}, now=NOW) is None
    assert made.target((A,), pod="y", nodes={"a"}, now=LATER) == "a"


def test_moves_of_two_namespaces_may_have_one_name() -> None:
    made = Promises()
    other = move("m-1", "a", key=("other", "m-1"))
    assert made.target((A,), pod="x", nodes={"a"}, now=NOW) == "a"
    assert made.target((other,), pod="y", nodes={"a"}, now=NOW) == "a"


def test_not_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "REMEMBERED", 10)
    made = Promises()
    for number in range(30):
        at = NOW + number * KEPT_FOR
        assert made.target((move(f"m-{number}", "a"),), pod="x", nodes={"a"}, now=at) == "a"
    assert len(made._made) <= 10

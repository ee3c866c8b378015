"""The judges of the campaigns can say no."""

from pathlib import Path

import pytest

from cluster.meta import ObjectMeta, PartialObjectMetadata
from cluster.store import Delta, Kind
from tests.integration.cluster import lease_oracle, reflector_oracle

Item = PartialObjectMetadata


def item(version: int, uid: str = "u") -> Item:
    return Item(ObjectMeta(name="a", namespace="ns", uid=uid, resource_version=str(version)))


def delta(kind: Kind, old: Item | None, new: Item | None) -> Delta[Item]:
    return Delta(kind, ("ns", "a"), old, new)


one, two, other = item(1), item(2), item(3, "v")
add, change, drop = delta(Kind.ADDED, None, one), delta(Kind.MODIFIED, one, two), delta(Kind.DELETED, two, None)
HISTORIES = {
    "possible": ([add, change, drop, delta(Kind.ADDED, None, other)], ""),
    "added twice": ([add, add], "added although it was there"),
    "modified before added": ([change], "modified although it was not there"),
    "deleted before added": ([drop], "deleted although it was not there"),
    "back in time": ([add, change, delta(Kind.MODIFIED, two, one)], "went back in time"),
    "another object": ([add, delta(Kind.MODIFIED, one, other)], "modified into another object"),
    "wrong old": ([add, delta(Kind.MODIFIED, item(1), two)], "old is not what the log had before"),
}


@pytest.mark.parametrize(("log", "problem"), HISTORIES.values(), ids=HISTORIES.keys())
def test_histories(log: list[Delta[Item]], problem: str) -> None:
    _, problems = reflector_oracle.replayed(log)
    assert bool(problems) == bool(problem)
    assert problem in "".join(problems)


def test_lost_versions() -> None:
    assert reflector_oracle.unseen(["1", "2", "5"], [add, change], since=0) == ["5"]
    assert reflector_oracle.unseen(["1", "2", "5"], [add, change], since=5) == []


def diary(folder: Path, name: str, *lines: str) -> lease_oracle.Diary:
    (folder / name).write_text("\n".join(lines) + "\nP 99")
    return lease_oracle.read(folder / name)


def test_two_leaders_at_once_are_found(tmp_path: Path) -> None:
    first = diary(tmp_path, "first", *[f"P {n / 100}" for n in range(100, 200)], "N 2.0")
    close = diary(tmp_path, "close", "P 2.001", "P 2.01")
    both = diary(tmp_path, "both", "P 1.5", "N 1.51")
    assert lease_oracle.overlaps([first, close]) == []
    assert lease_oracle.closest([first, close]) == pytest.approx(0.011)
    assert len(lease_oracle.overlaps([first, both])) == 1


def test_a_silence_proves_nothing(tmp_path: Path) -> None:
    """A candidate that was stopped said nothing in between; when it says so again, that is a new time."""
    stopped = diary(tmp_path, "stopped", "P 1.0", "P 5.0")
    other_one = diary(tmp_path, "other", "P 3.0")
    assert lease_oracle.overlaps([stopped, other_one]) == []


TERMS = {
    "once each": (["S 1 1.0", "X 1 2.0", "E 1 2.1", "S 2 3.0", "E 2 4.0", "X 2 4.0"], 0),
    "never told": (["S 1 1.0", "E 1 2.0"], 1),
    "told twice": (["S 1 1.0", "X 1 2.0", "X 1 2.0", "E 1 2.0"], 1),
    "work left running": (["S 1 1.0", "X 1 2.0", "S 2 3.0", "X 2 4.0", "E 2 4.0"], 2),
}


@pytest.mark.parametrize(("lines", "count"), TERMS.values(), ids=TERMS.keys())
def test_terms(tmp_path: Path, lines: list[str], count: int) -> None:
    assert len(lease_oracle.broken_terms(diary(tmp_path, "one", *lines), killed=False)) == count

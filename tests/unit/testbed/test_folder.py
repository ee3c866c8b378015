"""Whose a folder is, however early somebody ended in it."""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from testbed import bed, folder


def test_a_folder_that_was_only_begun_is_ours(tmp_path: Path) -> None:
    """Who is killed between making the marker and writing into it leaves this."""
    home = tmp_path / "bed"
    home.mkdir()
    (home / folder.MARKER).touch()
    with folder.claimed(home):
        assert folder.is_ours(home)
    (home / folder.MARKER).write_text("")
    bed.down(home)
    assert not home.exists()


@pytest.mark.parametrize("names", [["precious.txt"], [folder.MARKER, "precious.txt"]])
def test_a_folder_with_anything_else_in_it_is_not(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(folder.Refused, match="is not empty and is not a test bed"), folder.claimed(tmp_path):
        raise AssertionError("claimed")
    bed.down(tmp_path)
    assert sorted(it.name for it in tmp_path.iterdir()) == sorted(names)


def test_a_full_disk_is_told_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with (
        pytest.raises(folder.Refused, match="cannot be used: No space left on device"),
        folder.claimed(tmp_path / "b"),
    ):
        raise AssertionError("claimed")
    assert not (tmp_path / "b").exists()


def test_a_marker_that_is_written_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it nobody would know whose the rest is."""
    with folder.claimed(tmp_path / "b"):
        (tmp_path / "b" / "state.json").touch()

    def cut_short(self: Path, *_: object, **__: object) -> int:
        self.open("w").close()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", cut_short)
    with folder.claimed(tmp_path / "b"):
        assert folder.is_ours(tmp_path / "b")


def test_a_name_that_is_too_long_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(folder.Refused, match="cannot be used: File name too long"),
        folder.claimed(tmp_path / ("x" * 300)),
    ):
        raise AssertionError("claimed")


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    home = tmp_path / "b"
    with (
        folder.claimed(home),
        pytest.raises(folder.Refused, match="another `up` or `down` is at work in"),
        folder.claimed(home),
    ):
        raise AssertionError("claimed")


def test_a_disk_that_is_full_where_something_is_mounted_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a folder is not removed."""

    def refused(number: int) -> Callable[..., int]:
        def refuse(*_: object, **__: object) -> int:
            raise OSError(number, os.strerror(number))

        return refuse

    monkeypatch.setattr(Path, "write_text", refused(errno.ENOSPC))
    monkeypatch.setattr(Path, "rmdir", refused(errno.EBUSY))
    with (
        pytest.raises(folder.Refused, match="cannot be used: No space left on device"),
        folder.claimed(tmp_path / "b"),
    ):
        raise AssertionError("claimed")


def renew(home: Path) -> None:
    (home / folder.MARKER).unlink()
    (home / folder.MARKER).write_text(folder.MARK)


BETWEEN: dict[str, Callable[[Path], object]] = {
    "the marker went": lambda home: home.joinpath(folder.MARKER).unlink(),
    "all of it went": shutil.rmtree,
    "it was made anew": renew,
}


@pytest.fixture(params=list(BETWEEN.values()), ids=list(BETWEEN))
def overtaken(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that others change between the opening of its marker and the lock on it."""
    home, lock = tmp_path / "a" / "b", fcntl.flock
    home.mkdir(parents=True)
    (home / folder.MARKER).write_text(folder.MARK)

    def late(descriptor: IO[str], how: int) -> None:
        request.param(home)
        shutil.copytree(home.parent, tmp_path / "expected")
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    return home


def is_left_alone(home: Path) -> bool:
    """As the others left it."""
    expected = home.parent.parent / "expected"
    return {it.relative_to(home.parent) for it in home.parent.rglob("*")} == {
        it.relative_to(expected) for it in expected.rglob("*")
    }


def test_who_is_overtaken_claims_nothing(overtaken: Path) -> None:
    with pytest.raises(folder.Refused, match="another `up` or `down` is at work in"), folder.claimed(overtaken):
        raise AssertionError("claimed")
    assert is_left_alone(overtaken)


def test_who_is_overtaken_removes_nothing(overtaken: Path) -> None:
    folder.remove(overtaken)
    assert is_left_alone(overtaken)

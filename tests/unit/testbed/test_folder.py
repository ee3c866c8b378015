"""Whose a folder is, however early somebody ended in it."""

import errno
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from testbed import bed, command, ending, folder, layout


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


WRITTEN = {"ready": True, "ports": dict.fromkeys(layout.PORTS, 1), "binaries": {"etcd": "/bin/etcd"}}


@pytest.fixture
def signals() -> Iterator[None]:
    """A command that is run in this process takes them."""
    before = {number: signal.getsignal(number) for number in ending.WORDS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


OTHERS = {
    "nothing": {},
    "a list": [],
    "null": None,
    "a number": 7,
    "pairs": [["ready", True]],
    "another program's": {"components": 5},
    "no ports": {"binaries": {}, "ready": True},
    "other binaries": {**WRITTEN, "binaries": "/usr/bin"},
    "a path that is none": {**WRITTEN, "binaries": {"etcd": 5}},
    "ports that are none": {**WRITTEN, "ports": dict.fromkeys(layout.PORTS, "1")},
    "a port too few": {**WRITTEN, "ports": {"etcd": 1}},
    "not said whether it is ready": {**WRITTEN, "ready": None},
}


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("ours", [True, False], ids=["in a test bed", "elsewhere"])
@pytest.mark.parametrize("state", OTHERS.values(), ids=OTHERS.keys())
def test_a_state_that_nobody_wrote_here_is_none(
    tmp_path: Path, state: object, ours: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state.json").write_text(json.dumps(state))
    if ours:
        (tmp_path / folder.MARKER).write_text(folder.MARK)
    for name in ("status", "logs"):
        assert command.main([name, "--dir", str(tmp_path)]) == 1
        assert capsys.readouterr().err.startswith(f"error: no test bed in {tmp_path}; ")
    assert (bed.ended(tmp_path), bed.is_running(tmp_path)) == ([], None)


def test_the_state_in_a_folder_of_somebodys_own_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps(WRITTEN))
    assert folder.read_state(tmp_path) is None
    (tmp_path / folder.MARKER).write_text(folder.MARK)
    assert folder.read_state(tmp_path) == WRITTEN


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("name", ["status", "down", "logs", "install", "scheduler"])
def test_links_that_lead_in_a_circle_are_told(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert command.main([name, "--dir", str(loop)]) == 1
    said = f"error: {loop} cannot be used: Too many levels of symbolic links; choose another --dir\n"
    assert capsys.readouterr().err == said
    for ask in (bed.ended, bed.is_running, lambda home: bed.up(home, {})):
        with pytest.raises(folder.Refused, match="cannot be used: Too many levels of symbolic links"):
            ask(loop)

"""Whose a folder is, however early somebody ended in it."""

import errno
import os
from pathlib import Path

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

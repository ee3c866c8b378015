"""Mounted files change all at once."""

import stat
from pathlib import Path

from testbed import volumes


def shown(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith("..")}


def test_files_are_shown_and_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "v"
    assert volumes.write(folder, {"a": b"1", "b": b"2"}, mode=0o440)
    assert shown(folder) == {"a": "1", "b": "2"}
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o440
    assert volumes.write(folder, {"b": b"3", "c": b"4"})
    assert shown(folder) == {"b": "3", "c": "4"}
    assert len([path for path in folder.iterdir() if path.name.startswith("..")]) == 2, "old versions are removed"


def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    volumes.write(tmp_path, {"a": b"1"})
    before = (tmp_path / volumes.CURRENT).readlink()
    assert not volumes.write(tmp_path, {"a": b"1"})
    assert (tmp_path / volumes.CURRENT).readlink() == before


def test_a_reader_of_one_version_sees_only_that_version(tmp_path: Path) -> None:
    volumes.write(tmp_path, {"cert": b"old", "key": b"old"})
    seen = (tmp_path / "cert").resolve()
    volumes.write(tmp_path, {"cert": b"new", "key": b"new"})
    assert seen != (tmp_path / "cert").resolve()
    assert (tmp_path / "cert").resolve().parent == (tmp_path / "key").resolve().parent


def test_paths_below_the_folder(tmp_path: Path) -> None:
    volumes.write(tmp_path, {"sub/a": b"1", "sub/b": b"2"})
    assert (tmp_path / "sub" / "b").read_text() == "2"
    assert volumes.read(tmp_path) == {"sub/a": b"1", "sub/b": b"2"}
    volumes.write(tmp_path, {})
    assert shown(tmp_path) == {}


def test_what_a_killed_writer_left_is_cleaned_up(tmp_path: Path) -> None:
    volumes.write(tmp_path, {"a": b"1"})
    (tmp_path / "..half").mkdir()
    (tmp_path / "..half" / "a").write_text("half")
    (tmp_path / volumes.NEXT).symlink_to("..half")
    assert volumes.read(tmp_path) == {"a": b"1"}
    volumes.write(tmp_path, {"a": b"2"})
    assert shown(tmp_path) == {"a": "2"}
    assert not (tmp_path / "..half").exists()


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    assert volumes.read(tmp_path / "absent") == {}
    assert volumes.write(tmp_path / "absent", {}), "an empty volume is a folder"
    assert (tmp_path / "absent").is_dir()

"""Packages are unpacked once, whole or not at all. Scripts stand for apt and dpkg."""

from pathlib import Path

import pytest

from testbed import debian, pins

DOWNLOAD = 'case "$1" in download) touch "$2.deb";; esac\n'


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An own cache, and a dpkg that unpacks one file."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    program(programs / "dpkg-deb", 'touch "$3/unpacked"\n')
    return {"HOME": str(tmp_path)}


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)


def left(environ: dict[str, str]) -> list[str]:
    return sorted(it.name for it in pins.cache_dir(environ).iterdir())


def test_it_is_unpacked_once(tmp_path: Path, environ: dict[str, str]) -> None:
    program(tmp_path / "bin" / "apt-get", DOWNLOAD)
    base = debian.unpacked(["zsh"], environ)
    program(tmp_path / "bin" / "apt-get", "exit 1\n")
    assert debian.unpacked(["zsh"], environ) == base
    assert [it.name for it in base.iterdir()] == ["unpacked"]
    assert left(environ) == ["zsh"]


def test_what_cannot_be_had_leaves_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    program(tmp_path / "bin" / "apt-get", "echo no network >&2; exit 1\n")
    with pytest.raises(debian.Missing, match=r"(?s)install zsh: .*no network"):
        debian.unpacked(["zsh"], environ)
    assert left(environ) == []


def test_of_two_at_once_the_first_is_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    theirs = pins.cache_dir(environ) / "zsh"
    program(tmp_path / "bin" / "apt-get", f'mkdir -p "{theirs}" && touch "{theirs}/first"\n{DOWNLOAD}')
    assert [it.name for it in debian.unpacked(["zsh"], environ).iterdir()] == ["first"]
    assert left(environ) == ["zsh"]

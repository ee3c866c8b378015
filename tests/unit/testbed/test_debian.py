"""Packages are unpacked once, whole or not at all. Scripts stand for apt and dpkg."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed import debian, pins
from testbed.waiting import eventually, patient

ROOT = Path(__file__).parents[3]

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
    assert left(environ) == ["zsh", "zsh.lock"]


def test_what_cannot_be_had_leaves_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    program(tmp_path / "bin" / "apt-get", "echo no network >&2; exit 1\n")
    with pytest.raises(debian.Missing, match=r"(?s)install zsh: .*no network"):
        debian.unpacked(["zsh"], environ)
    assert left(environ) == ["zsh.lock"]


def test_two_at_once_take_it_once(tmp_path: Path, environ: dict[str, str]) -> None:
    script = f'echo download >> "{tmp_path}/asked"; while [ -e "{tmp_path}/gate" ]; do sleep 0.05; done; '
    program(tmp_path / "bin" / "apt-get", f"{script}{DOWNLOAD}")
    (tmp_path / "gate").touch()
    both = [threading.Thread(target=debian.unpacked, args=(["zsh"], environ)) for _ in range(2)]
    for one in both:
        one.start()
    eventually((tmp_path / "asked").exists, what="the download")
    (tmp_path / "gate").unlink()
    for one in both:
        one.join(timeout=patient(30))
    assert (tmp_path / "asked").read_text() == "download\n"
    assert left(environ) == ["zsh", "zsh.lock"]


def test_what_a_killed_one_left_goes_with_the_next(tmp_path: Path, environ: dict[str, str]) -> None:
    script = f'touch "{tmp_path}/asked"; while [ -e "{tmp_path}/gate" ]; do sleep 0.05; done\n'
    program(tmp_path / "bin" / "apt-get", script)
    (tmp_path / "gate").touch()
    command = [sys.executable, "-c", "import os; from testbed import debian; debian.unpacked(['zsh'], os.environ)"]
    child = subprocess.Popen(command, env={**environ, "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)})
    eventually((tmp_path / "asked").exists, what="the download")
    child.kill()
    child.wait()
    (tmp_path / "gate").unlink()
    assert len(left(environ)) == 2, "its folder and its lock"
    program(tmp_path / "bin" / "apt-get", DOWNLOAD)
    assert [it.name for it in debian.unpacked(["zsh"], environ).iterdir()] == ["unpacked"]
    assert left(environ) == ["zsh", "zsh.lock"]

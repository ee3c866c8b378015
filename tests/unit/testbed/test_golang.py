"""Taking the Go toolchain leaves nothing behind, however it ends. A socket stands for an index that never answers."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import golang, pins
from testbed.waiting import patient

ROOT = Path(__file__).parents[3]
FIND = """\
import os, signal
from testbed import golang
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell has put behind
golang.find({"PATH": "", "HOME": os.environ["HOME"]})
"""


def interrupted(tmp_path: Path, number: int) -> list[str]:
    """What is in the cache after a download that was ended in the middle; nothing stays anywhere else."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(patient(30))
        where = {"PIP_INDEX_URL": f"http://127.0.0.1:{index.getsockname()[1]}/simple", "TMPDIR": str(temporary)}
        env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **where}
        child = subprocess.Popen([sys.executable, "-c", FIND], env=env, stderr=subprocess.DEVNULL)
        asked, _ = index.accept()
        with asked:
            child.send_signal(number)
            child.wait(patient(30))
    assert list(temporary.iterdir()) == [], "what pip unpacks is not where nobody looks for it"
    return sorted(it.suffix for it in pins.cache_dir(env).iterdir())


def test_an_interrupted_download_leaves_nothing(tmp_path: Path) -> None:
    assert interrupted(tmp_path, signal.SIGINT) == [".lock"]


def test_what_a_killed_one_left_goes_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert interrupted(tmp_path, signal.SIGKILL) == [".lock", ".tmp"]
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(golang.NoToolchain):
        golang.find({"PATH": "", "HOME": str(tmp_path)})
    (left,) = pins.cache_dir({"HOME": str(tmp_path)}).iterdir()
    assert left.suffix == ".lock"

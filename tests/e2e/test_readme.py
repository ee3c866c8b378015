"""Every shell block of the README, one after the other in one shell, on the control plane that one of them starts.

They are typed as they stand there, in a copy of this folder. What differs from a reader's machine is named below:
what cannot be run here, with the reason, and what has another name.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3

from testbed import bed, process
from testbed.binaries import Binaries
from testbed.waiting import eventually, patient
from tests import markdown
from tests.markdown import ROOT

BLOCKS = [block for block in markdown.read(ROOT / "README.md").blocks if block.kind == "sh"]
NOT_HERE: Mapping[str, str] = {
    "make demo": "tests/e2e/test_demo.py plays it, with and without a terminal",
    "make test": "it is what runs this",
    "make bench": "it measures for long, and wants the machine for itself",
}
"""Blocks that are not typed, by their first line. Nothing else may be left out."""
PAGE = "127.0.0.1:8090"
"""Where the README serves the dashboard; the port may be taken on a machine that runs tests."""
SECONDS = 240.0
"""What one block may take on an idle machine; the longest is a drain, which gives up before."""
COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A copy of this folder with the Python that runs the tests as its environment, which make must not make anew."""
    folder = tmp_path / "spotshift"
    shutil.copytree(ROOT, folder, ignore=COPIED)
    (folder / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if part.name != ".ready":
            (folder / ".venv" / part.name).symlink_to(part)
    (folder / ".venv" / ".ready").touch()
    yield folder
    bed.down(folder / ".testbed" / "dev")


@dataclass
class Shell:
    """One bash, as a reader has it open the whole time; the first command that fails ends it."""

    child: subprocess.Popen[str]
    folder: Path
    typed: int = 0

    def type(self, text: str) -> str:
        """Run these lines, and return what they printed."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.typed += 1
        script, log = self.folder / f"{self.typed}.sh", self.folder / f"{self.typed}.log"
        script.write_text(text)
        # From a file, so that no command can read the next one; and with its output in one, so that a program in the
        # background keeps nobody waiting.
        self.child.stdin.write(f"source {script} </dev/null >{log} 2>&1\necho done\n")
        self.child.stdin.flush()
        limit = threading.Timer(patient(SECONDS), self.end)
        limit.start()
        answer = self.child.stdout.readline()
        limit.cancel()
        assert answer == "done\n", f"it ended in:\n{text}\n{log.read_text()}"
        return log.read_text()

    def end(self) -> None:
        """The shell and what it has in the background, and nobody else."""
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGTERM)


@contextmanager
def shell(checkout: Path, folder: Path, kubectl: Path) -> Iterator[Shell]:
    """bash in the copy, with kubectl, and with the plugin where `make plugin` puts it."""
    folder.mkdir()
    dropped = ("KUBECONFIG", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    inherited = {name: value for name, value in os.environ.items() if name not in dropped}
    path = f"{folder}:{kubectl.parent}:{inherited['PATH']}"
    environ = {**inherited, "BIN": str(folder), "PATH": path, "KUBECACHEDIR": str(folder / "cache")}
    with subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-euo", "pipefail"],
        cwd=checkout,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as child:
        opened = Shell(child, folder)
        try:
            yield opened
        finally:
            opened.end()


def test_the_blocks_run(checkout: Path, tmp_path: Path, control_plane_binaries: Binaries) -> None:
    listen = f"127.0.0.1:{free_port()}"
    home = checkout / ".testbed" / "dev"
    with shell(checkout, tmp_path / "shell", control_plane_binaries["kubectl"]) as bash:
        for block in BLOCKS:
            if block.first in NOT_HERE:
                continue
            printed = bash.type(block.text.replace(PAGE, listen))
            if check := CHECKS.get(block.first):
                check(Seen(printed, home, listen))
    assert not home.exists(), "`make down` was the last word about the control plane"


# ---- what a block is there to show


@dataclass(frozen=True, slots=True)
class Seen:
    """What a block printed, and where it printed it."""

    printed: str
    home: Path
    listen: str


def nodes_of_both_kinds(seen: Seen) -> None:
    assert len(re.findall(r"^(?:spot|on-demand)-\d .*\b(?:spot|on-demand)$", seen.printed, re.MULTILINE)) == 6


def pods_on_spot(seen: Seen) -> None:
    assert len(re.findall(r"^web-\S+ .* spot-\d ", seen.printed, re.MULTILINE)) == 6
    assert "SPOT_PREFERRED: spot nodes are preferred" in seen.printed


def opted_out(seen: Seen) -> None:
    assert re.search(r"web-\S+ +leaves it +OPTED_OUT", seen.printed)


def drained_and_given_back(seen: Seen) -> None:
    assert "spot-0: drained" in seen.printed
    assert "NodeMaintenance" in seen.printed
    assert "spot-0: in use, as it was found" in seen.printed


def answers(url: str) -> bool:
    with suppress(urllib3.exceptions.HTTPError):
        return urllib3.request("GET", url, timeout=2, retries=False).status == 200
    return False


def page_is_served(seen: Seen) -> None:
    url = f"http://{seen.listen}/healthz"
    eventually(lambda: answers(url), timeout=30, what=f"{url} to answer")


def page_is_gone(seen: Seen) -> None:
    eventually(lambda: not answers(f"http://{seen.listen}/healthz"), timeout=30, what="the page to be gone")


def nothing_runs(seen: Seen) -> None:
    assert "nothing of ours is left" in seen.printed
    assert process.running(seen.home) == []


CHECKS: Mapping[str, Callable[[Seen], None]] = {
    "make up": nodes_of_both_kinds,
    "kubectl create deployment web --image=app:1 --replicas=6": pods_on_spot,
    "kubectl annotate deployment web scheduler.alpha.kubernetes.io/rescheduling=disabled": opted_out,
    "kubectl spotshift maintenance start spot-0 --wait --timeout 5m": drained_and_given_back,
    f".venv/bin/python -m console.web --listen {PAGE} &": page_is_served,
    "kill %1": page_is_gone,
    "make uninstall OVERLAY=testbed": nothing_runs,
}


# ---- the lists above


def first_lines() -> list[str]:
    return [block.first for block in BLOCKS]


@pytest.mark.parametrize("line", [*NOT_HERE, *CHECKS])
def test_what_is_listed_is_in_the_readme_once(line: str) -> None:
    assert first_lines().count(line) == 1


def test_only_output_and_diagrams_are_not_typed() -> None:
    kinds = {block.kind for block in markdown.read(ROOT / "README.md").blocks}
    assert kinds == {"sh", "text", "mermaid"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])

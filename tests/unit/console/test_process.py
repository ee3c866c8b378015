"""The programs as processes of their own: an interrupt while they are loaded, an output that takes nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cluster import fake_api
from tests.unit.cluster.test_auth import kubeconfig
from tests.unit.console.test_commands import HEAD, cluster

ROOT = Path(__file__).parents[3]
STOPPED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
"""In place of a library: what it is loaded for is stopped just then."""


@pytest.mark.parametrize(("program", "library"), [("console", "msgspec"), ("console.web", "flask")])
def test_an_interrupt_while_a_program_is_loaded_ends_it_without_a_word(
    program: str, library: str, tmp_path: Path
) -> None:
    (tmp_path / f"{library}.py").write_text(STOPPED)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", program, "--help"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


OUTPUTS = {"full": (">/dev/full", "No space left on device"), "closed": (">&-", "it is closed")}
WORDS = {"a command": "completion bash", "help": "--help", "names for Tab": "__complete migr"}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS.keys())
@pytest.mark.parametrize(("output", "why"), OUTPUTS.values(), ids=OUTPUTS.keys())
def test_an_output_that_takes_nothing_is_told_in_a_line(output: str, why: str, words: str) -> None:
    command = ["sh", "-c", f'exec "$0" -m console {words} {output}', sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"error: standard output: {why}\n")


@pytest.mark.parametrize("output", ["table", "json"])
def test_what_the_cluster_said_and_nobody_takes_is_told_too(output: str, tmp_path: Path) -> None:
    with fake_api.running() as api, Path("/dev/full").open("w") as full:
        api.script = cluster(HEAD)
        path = kubeconfig(tmp_path / "config", api.url, {"token": "abc"})
        command = [sys.executable, "-m", "console", "status", "-o", output, "--kubeconfig", str(path)]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: standard output: No space left on device\n")

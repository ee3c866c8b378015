"""The programs as processes of their own: an interrupt while they are loaded."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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

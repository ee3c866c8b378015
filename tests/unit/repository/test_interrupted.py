"""Programs that are interrupted before they have begun."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LOADING = "import sys, signal\nprint('loading', flush=True)\nsignal.pause()\n"


@pytest.mark.parametrize(
    ("program", "library"),
    [
        ("policy", "yaml"),
        ("webhook", "msgspec"),
        ("descheduler", "msgspec"),
        ("certs", "cryptography"),
        ("extender", "msgspec"),
        ("testbed", "psutil"),
        ("testbed", "rich"),
        ("testbed", "urllib3"),
        ("testbed", "yaml"),
    ],
)
def test_an_interrupt_while_loading_ends_it_without_a_traceback(tmp_path: Path, program: str, library: str) -> None:
    """A library that takes for ever to load stands for the first second on a busy machine."""
    (tmp_path / f"{library}.py").write_text(LOADING)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    call = [sys.executable, "-m", program, "serve"]
    with subprocess.Popen(
        call, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "loading\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    assert (child.returncode, errors) == (-signal.SIGINT, "")

"""The command line before it has begun its work."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import command
from testbed.waiting import eventually

ROOT = Path(__file__).parents[3]
LOADING = "import signal, sys\nprint('loading', flush=True)\nsignal.pause()\n"


@pytest.mark.parametrize("value", ["-5", "nan", "inf", "long"])
def test_a_pause_that_is_none_is_refused_before_anything_begins(
    capsys: pytest.CaptureFixture[str], value: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["demo", f"--pause={value}"])
    assert ended.value.code == 2
    assert f"argument --pause: '{value}' is not a number of seconds from 0 to 3600" in capsys.readouterr().err


@pytest.mark.parametrize("library", ["psutil", "rich", "urllib3", "yaml"])
def test_an_interrupt_while_loading_ends_it_without_a_traceback(tmp_path: Path, library: str) -> None:
    """A library that takes for ever to load stands for the first second on a busy machine."""
    (tmp_path / f"{library}.py").write_text(LOADING)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "testbed", "status"],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "loading\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    assert (child.returncode, errors) == (-signal.SIGINT, "")


def handles(pid: int, number: int) -> bool:
    """Whether the process has a handler of its own for the signal."""
    status = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    return bool(int(status["SigCgt"], 16) >> (number - 1) & 1)


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "hung up")],
)
def test_the_exit_code_tells_what_asked_it_to_end(tmp_path: Path, number: int, code: int, word: str) -> None:
    guard = [sys.executable, "-m", "testbed", "guard", "--dir", str(tmp_path), "--owner", str(os.getpid())]
    with subprocess.Popen(guard, cwd=ROOT, stderr=subprocess.PIPE, text=True) as child:
        eventually(lambda: handles(child.pid, signal.SIGHUP), interval=0.01, what="a guard that listens")
        child.send_signal(number)
        _, errors = child.communicate(timeout=20)
    assert (child.returncode, errors) == (code, f"{word}; everything this command started is stopped\n")

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


@pytest.mark.parametrize("value", ["-5", "nan", "inf", "long"])
def test_a_pause_that_is_none_is_refused_before_anything_begins(
    capsys: pytest.CaptureFixture[str], value: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["demo", f"--pause={value}"])
    assert ended.value.code == 2
    assert f"argument --pause: '{value}' is not a number of seconds from 0 to 3600" in capsys.readouterr().err


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

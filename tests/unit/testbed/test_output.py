"""Commands whose output ends nowhere: in a closed pipe, or on a full disk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WORK = """
import os, sys
from pathlib import Path
from testbed import output
def run():
    for number in range(20_000):
        print("line", number, flush=number == 0)
    print("told", file=sys.stderr)
    Path(sys.argv[1]).touch()
    return int(sys.argv[2])
sys.exit(output.lasting(run))
"""


def unread() -> int:
    """The end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def ended(*command: str, out: int, errors: int = subprocess.PIPE) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, stdout=out, stderr=errors, text=True, timeout=60, check=False
    )
    os.close(out)
    return done.returncode, done.stderr


@pytest.mark.parametrize("code", [0, 1])
def test_who_changes_something_finishes_it_though_nobody_reads(tmp_path: Path, code: int) -> None:
    assert ended("-c", WORK, str(tmp_path / "done"), str(code), out=unread()) == (code, "told\n")
    assert (tmp_path / "done").exists()


def test_nor_does_anybody_have_to_read_the_errors(tmp_path: Path) -> None:
    writing = unread()
    assert ended("-c", WORK, str(tmp_path / "done"), "0", out=writing, errors=writing)[0] == 0
    assert (tmp_path / "done").exists()


def test_a_full_disk_is_told_when_the_work_is_done(tmp_path: Path) -> None:
    said = "told\nerror: standard output: No space left on device\n"
    assert ended("-c", WORK, str(tmp_path / "done"), "0", out=os.open("/dev/full", os.O_WRONLY)) == (1, said)
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize("arguments", [("binaries", "--list"), ("--help",)], ids=" ".join)
def test_a_reader_who_has_seen_enough_is_no_failure(arguments: tuple[str, ...]) -> None:
    assert ended("-m", "testbed", *arguments, out=unread()) == (0, "")


@pytest.mark.parametrize("arguments", [("binaries", "--list"), ("--help",)], ids=" ".join)
def test_what_cannot_be_written_is_told(arguments: tuple[str, ...]) -> None:
    said = "error: standard output: No space left on device\n"
    assert ended("-m", "testbed", *arguments, out=os.open("/dev/full", os.O_WRONLY)) == (1, said)


def test_a_closed_output_is_none() -> None:
    """`>&-` in a shell."""
    done = subprocess.run(
        ["sh", "-c", f"exec '{sys.executable}' -m testbed binaries --list >&-"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

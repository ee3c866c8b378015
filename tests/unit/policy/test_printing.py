"""Commands whose output nobody reads on, or for which there is no room."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from policy import printing

ROOT = Path(__file__).parents[3]
DUMP = "tests/golden/descheduler/cluster.json"
TELLING = {
    "policy": ("-m", "policy"),
    "policy --help": ("-m", "policy", "--help"),
    "policy FILE": ("-m", "policy", "{settings}"),
    "webhook review": ("-m", "webhook", "review", "{pod}"),
    "descheduler plan": ("-m", "descheduler", "plan", "-f", DUMP),
    "descheduler plan -o json": ("-m", "descheduler", "plan", "-f", DUMP, "-o", "json"),
    "descheduler explain": ("-m", "descheduler", "explain", "shop/cart-0", "-f", DUMP),
}


@pytest.fixture(params=list(TELLING.values()), ids=list(TELLING))
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    settings, pod = tmp_path / "settings.yaml", tmp_path / "pod.yaml"
    settings.write_text("apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n")
    pod.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n")
    return [sys.executable, *(it.format(settings=settings, pod=pod) for it in request.param)]


def ended(command: list[str], out: int) -> tuple[int, str]:
    done = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(out)
    return done.returncode, done.stderr


def test_a_reader_who_has_seen_enough_is_no_failure(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert ended(command, writing) == (0, "")


def test_a_full_disk_is_told_in_one_line(command: list[str]) -> None:
    said = "error: standard output: No space left on device\n"
    assert ended(command, os.open("/dev/full", os.O_WRONLY)) == (1, said)


def test_an_output_that_was_closed_is_left_alone() -> None:
    """`>&-` in a shell."""
    shell = ["sh", "-c", f"exec '{sys.executable}' -m policy >&-"]
    done = subprocess.run(shell, cwd=ROOT, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


CHANGING = """
import sys
from pathlib import Path
from certs import reconcile
from certs.__main__ import _print_step
from tests.unit.certs.simulated import AT_ONCE, Cluster, configuration
cluster = Cluster()
cluster.configure(configuration())
reconcile.settle(cluster, AT_ONCE, cluster.clock, _print_step)
Path(sys.argv[1]).touch()
"""


def test_who_changes_something_finishes_it_though_nobody_reads(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert ended([sys.executable, "-c", CHANGING, str(tmp_path / "done")], writing) == (0, "")
    assert (tmp_path / "done").exists()


def test_what_changes_something_tells_once_that_there_is_no_room(tmp_path: Path) -> None:
    said = "error: standard output: No space left on device\n"
    call = [sys.executable, "-c", CHANGING, str(tmp_path / "done")]
    assert ended(call, os.open("/dev/full", os.O_WRONLY)) == (0, said)
    assert (tmp_path / "done").exists()


def test_lines_come_out_as_they_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    printing.say("first")
    printing.say("second")
    assert capsys.readouterr().out == "first\nsecond\n"

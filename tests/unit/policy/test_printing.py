"""Commands that only tell something: nobody reads on, or there is no room."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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

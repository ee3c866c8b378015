"""What the Makefile would run."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def would_run(*arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-n", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_number_that_is_empty_is_given_as_one() -> None:
    """Else argparse takes the next option for it, and what it says then helps nobody."""
    assert '"--nodes=" "--spot="' in would_run("up", "NODES=", "SPOT=")


@pytest.mark.parametrize("target", ["up", "demo"])
def test_binaries_are_looked_for_once(target: str) -> None:
    """Each time tells what is passed over."""
    assert "testbed binaries" not in would_run(target)

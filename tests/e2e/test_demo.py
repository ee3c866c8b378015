"""`make demo`, without and with a terminal."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from testbed import process
from testbed.waiting import eventually

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "testbed", "demo"]


def demo_processes(folder: Path) -> list[str]:
    found = []
    for running in psutil.process_iter():
        try:
            environ = running.environ()
            if environ.get(process.MARKER, "").startswith(str(folder)):
                found.append(environ[process.NAME])
        except psutil.Error:
            continue
    return found


def within(folder: Path) -> dict[str, str]:
    """The demo puts its control plane below the folder for temporary files."""
    colours = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    inherited = {name: value for name, value in os.environ.items() if name not in colours}
    return {**inherited, "TMPDIR": str(folder), "TERM": "xterm", "COLUMNS": "100"}


def test_runs_through_without_a_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        COMMAND, cwd=ROOT, env=within(tmp_path), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "24 of 24 pods are Running and Ready." in done.stdout
    rows = re.findall(r"│ (on-demand|spot)-\d .*? │ ●* ?(\d+) +│ ●* ?(\d+) +│\n", done.stdout)
    assert len(rows) == 6
    assert sum(int(before) for _, before, _ in rows) == 12
    web = {kind: sum(int(count) for found, _, count in rows if found == kind) for kind in ("on-demand", "spot")}
    assert web["spot"] + web["on-demand"] == 12
    assert web["spot"] > 6, "the injected preference, not chance"
    assert f"         {web['spot']} of 12 pods of deployment/web" in done.stdout
    assert re.search(r"│ label +│ scheduler\.alpha\.kubernetes\.io/managed=true +│", done.stdout)
    assert re.search(r"│ preferred node +│ node\.kubernetes\.io/capacity In \(spot\), weight 10 +│", done.stdout)
    levelled = re.search(r"on-demand-0 went from (\d+) % to (\d+) % in .* s: (\d+) moves, (\d+) of them", done.stdout)
    assert levelled is not None
    before, after, moves, on_target = map(int, levelled.groups())
    assert (before, moves) == (75, on_target)
    assert after <= 42, "what 20 % over the mean is here"
    assert re.search(r"All 34 pods are Ready on on-demand nodes [\d.]+ s after the notice", done.stdout)
    assert "12 of 12 pods of deployment/web are back on spot" in done.stdout
    assert "\x1b[" not in done.stdout, "no control characters in a log"
    assert demo_processes(tmp_path) == []


@pytest.mark.campaign
def test_live_view_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*COMMAND, "--pause", "0"], cwd=ROOT, env=within(tmp_path), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:
        pass  # how Linux says that the other end is closed
    finally:
        os.close(ours)
    assert child.wait(timeout=60) == 0
    text = seen.decode()
    assert text.count("nodes and their pods") > 2, "the picture is redrawn"
    assert "24 of 24 pods are Running and Ready." in text
    assert demo_processes(tmp_path) == []


@pytest.mark.parametrize(
    "during", [pytest.param("kube-scheduler", marks=pytest.mark.campaign), "spotshift-webhook-0.webhook"]
)
def test_interrupt_leaves_nothing_behind(tmp_path: Path, during: str) -> None:
    child = subprocess.Popen(
        COMMAND, cwd=ROOT, env=within(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: during in demo_processes(tmp_path), timeout=90, what="a process to interrupt")
    child.send_signal(2)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert demo_processes(tmp_path) == []

"""`make demo`, without and with a terminal, to its end and interrupted."""

import codecs
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
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
        COMMAND, cwd=ROOT, env=within(tmp_path), capture_output=True, text=True, check=False, timeout=500
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
    assert re.search(r"http://127\.0\.0\.1:\d+/\n", done.stdout)
    assert re.search(r"│ label +│ scheduler\.alpha\.kubernetes\.io/managed=true +│", done.stdout)
    assert re.search(r"│ preferred node +│ node\.kubernetes\.io/capacity In \(spot\), weight 10 +│", done.stdout)
    levelled = re.search(r"on-demand-0 went from (\d+) % to (\d+) % in .* s: (\d+) moves, (\d+) of them", done.stdout)
    assert levelled is not None
    before, after, moves, on_target = map(int, levelled.groups())
    assert (before, moves) == (75, on_target)
    assert after <= 42, "what 20 % over the mean is here"
    assert re.search(r"on-demand-\d was empty after [\d.]+ s, and takes pods again", done.stdout)
    looks = re.search(r"At each of (\d+) looks deployment/solo had a Ready pod", done.stdout)
    assert looks is not None
    assert int(looks[1]) > 1, "looked at while the node was left, not only before"
    assert re.search(r"All 35 pods are Ready on on-demand nodes [\d.]+ s after the notice", done.stdout)
    assert "12 of 12 pods of deployment/web are back on spot" in done.stdout
    summed_up = dict(re.findall(r"│ (\w+) +│ +(\d+) │", done.stdout.partition("what was moved")[2]))
    assert set(summed_up) == {"LoadBalancing", "NodeMaintenance", "SpotInterruption", "SpotReclaim", "all"}
    ended = re.search(r"35 of 35 pods are Ready after (\d+) moves; (\d+) of them had the new pod first", done.stdout)
    assert ended is not None
    assert ended[1] == summed_up["all"]
    assert int(ended[2]) >= 1, "deployment/solo"
    assert "\x1b[" not in done.stdout, "no control characters in a log"
    assert demo_processes(tmp_path) == []


def played_on_a_terminal(folder: Path, *, interrupt_at: str | None = None) -> tuple[int, str]:
    """Exit code, and everything that was drawn; with `interrupt_at`, Ctrl-C comes when that has been drawn."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*COMMAND, "--pause", "0"], cwd=ROOT, env=within(folder), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = ""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := os.read(ours, 65536):
            seen += decoder.decode(chunk)
            if interrupt_at is not None and re.search(interrupt_at, seen, re.DOTALL):
                child.send_signal(signal.SIGINT)
                interrupt_at = None
    except OSError:
        pass  # how Linux says that the other end is closed
    finally:
        os.close(ours)
    return child.wait(timeout=60), seen


@pytest.mark.campaign
def test_an_interrupt_while_the_picture_is_live(tmp_path: Path) -> None:
    redrawn = "may move young pods(.*nodes and their pods){3}"
    code, seen = played_on_a_terminal(tmp_path, interrupt_at=redrawn)
    assert code == 130
    assert "24 of 24 pods are Running and Ready." in seen
    assert "The control plane is stopped and removed." in seen
    assert "Traceback" not in seen
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l"), "the cursor is back"
    assert demo_processes(tmp_path) == []


@pytest.mark.campaign
def test_a_terminal_sees_it_to_its_end(tmp_path: Path) -> None:
    code, seen = played_on_a_terminal(tmp_path)
    assert code == 0
    assert seen.count("nodes and their pods") > 10, "the picture is redrawn"
    assert "what was moved" in seen
    assert demo_processes(tmp_path) == []


@pytest.mark.parametrize(
    "during",
    [
        "kube-apiserver",
        *(pytest.param(it, marks=pytest.mark.campaign) for it in ("kube-scheduler", "spotshift-webhook-0.webhook")),
    ],
)
def test_interrupt_leaves_nothing_behind(tmp_path: Path, during: str) -> None:
    child = subprocess.Popen(
        COMMAND, cwd=ROOT, env=within(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: during in demo_processes(tmp_path), timeout=90, what="a process to interrupt")
    while child.poll() is None:  # who waits presses again, and half of the clean-up is done by then
        child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.1)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert demo_processes(tmp_path) == []

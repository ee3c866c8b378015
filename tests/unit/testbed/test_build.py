"""The build's life: progress moves, an interrupted build leaves no half result, two builds become one.

A script that answers like `go` stands for the toolchain, so that a test can stop it at any point; the real
build is what every test of the control plane runs on.
"""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from testbed import binaries, cache, pins
from testbed.waiting import eventually

TOOLS = ("server", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
METRICS = "sigs.k8s.io/metrics-server/cmd/metrics-server"


@pytest.fixture
def slow_go(tmp_path: Path) -> Path:
    """A `go` that lists three packages and takes its time to install; counts how often it was asked to."""
    script = f"""\
        import os, sys, time, pathlib
        if sys.argv[1] == "env":
            print("go9.0.0")
        elif sys.argv[1] == "list":
            print("{METRICS}\\nexample.com/kwok" if "-deps" not in sys.argv else "false\\ntrue\\ntrue")
        else:
            with open("{tmp_path}/installs", "a") as counted:
                counted.write(sys.argv[-1] + "\\n")
            (pathlib.Path(os.environ["GOTMPDIR"]) / "go-build1").mkdir(exist_ok=True)
            gate = pathlib.Path("{tmp_path}/gate")
            while gate.exists():
                time.sleep(0.01)
            pathlib.Path(os.environ["GOBIN"]).mkdir(exist_ok=True)
            names = ["metrics-server"] if sys.argv[-1] == "{METRICS}" else {TOOLS!r}
            for name in names:
                print(f"example.com/{{name}}", flush=True)
                (pathlib.Path(os.environ["GOBIN"]) / name).write_text("built")
        """
    path = tmp_path / "bin" / "go"
    path.parent.mkdir()
    (tmp_path / "go.py").write_text(textwrap.dedent(script))
    path.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{tmp_path}/go.py' \"$@\"\n")
    path.chmod(0o755)
    return path


class Recorder:
    """Keeps what the build reported."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []
        self.waited = threading.Event()

    def waiting(self) -> None:
        self.waited.set()

    def downloading(self, module: str, done: int, total: int) -> None:
        raise AssertionError(f"nothing to download, yet {module}")

    def compiling(self, package: str, done: int, total: int) -> None:
        self.steps.append((done, total))

    def finished(self) -> None:
        self.steps.append((-1, -1))


def _environ(tmp_path: Path, go: Path) -> dict[str, str]:
    return {"PATH": str(go.parent), "HOME": str(tmp_path)}


def test_progress_moves_to_the_end_and_the_result_is_cached(tmp_path: Path, slow_go: Path) -> None:
    report = Recorder()
    environ = _environ(tmp_path, slow_go)
    found = binaries.ensure(environ, report=report)
    assert set(found) == {component.name for component in binaries.COMPONENTS}
    assert all(path.read_text() == "built" for path in found.values())
    assert report.steps[0] == (2, 3), "one of three packages was there already"
    assert (3, 3) in report.steps
    assert report.steps[-1] == (-1, -1)
    again = Recorder()
    assert binaries.ensure(environ, report=again) == found
    assert again.steps == [], "nothing is built twice"


def test_two_builds_at_once_become_one(tmp_path: Path, slow_go: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    environ = _environ(tmp_path, slow_go)
    first, second = Recorder(), Recorder()
    builders = [
        threading.Thread(target=binaries.ensure, args=(environ,), kwargs={"report": r}) for r in (first, second)
    ]
    for builder in builders:
        builder.start()
    eventually(lambda: first.waited.is_set() or second.waited.is_set(), what="a second build that waits")
    gate.unlink()
    for builder in builders:
        builder.join(timeout=30)
    assert (tmp_path / "installs").read_text().count(METRICS) == 1
    assert bool(first.steps) != bool(second.steps), "one built, the other waited"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_build_that_was_ended_is_taken_up_again(tmp_path: Path, slow_go: Path, number: int) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    environ = _environ(tmp_path, slow_go)
    root = Path(__file__).parents[3]
    child = subprocess.Popen(
        [sys.executable, "-m", "testbed", "binaries"],
        env={**environ, "PYTHONPATH": str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    cache = pins.cache_dir(environ)
    try:
        eventually((tmp_path / "installs").exists, what="the build")
        killed = number == signal.SIGKILL
        os.killpg(child.pid, number) if killed else child.send_signal(number)
        assert child.wait(timeout=30) == (-9 if killed else 128 + number)
        assert list(cache.glob("bin-*.partial")), "the half result is not taken for a whole one"
        assert bool(list(cache.glob("bin-*.tmp"))) == killed, "Go's temporary files are large"
    finally:
        gate.unlink()  # a `go` whose builder was killed ends by it
    found = binaries.ensure(environ, report=Recorder())
    assert all(path.exists() for path in found.values())
    assert not list(cache.glob("bin-*.partial")) + list(cache.glob("bin-*.tmp"))


def test_a_cache_that_lost_a_binary_is_built_again(tmp_path: Path, slow_go: Path) -> None:
    environ = _environ(tmp_path, slow_go)
    found = binaries.ensure(environ, report=Recorder())
    found["kwok"].unlink()
    assert binaries.ensure(environ, report=Recorder())["kwok"].exists()


def test_what_killed_builds_of_other_keys_left_goes_unless_one_is_at_work(tmp_path: Path, slow_go: Path) -> None:
    environ = _environ(tmp_path, slow_go)
    folder = pins.cache_dir(environ)
    killed, at_work = ("bin-killed.tmp", "bin-killed.partial"), ("bin-other.tmp", "bin-other.partial")
    for name in (*killed, *at_work, "peers-killed.tmp"):
        (folder / name / "large").mkdir(parents=True)
    (folder / "bin-whole").mkdir()
    with cache.locked(folder / "bin-other.lock"):
        binaries.ensure(environ, report=Recorder())
    left = {it.name for it in folder.iterdir() if it.is_dir()}
    assert left == {f"bin-{pins.cache_key()}", "bin-whole", *at_work, "peers-killed.tmp"}


def test_of_a_module_too(tmp_path: Path, slow_go: Path) -> None:
    environ = _environ(tmp_path, slow_go)
    module, folder = tmp_path / "module", pins.cache_dir(environ)
    module.mkdir()
    for name in ("go.mod", "go.sum"):
        (module / name).touch()
    (folder / "module-killed.tmp").mkdir(parents=True)
    binaries.built_module(module, environ)
    assert [it.name for it in folder.glob("module-*") if it.is_dir()] == [f"module-{pins.cache_key(module)}"]

"""Up, down, side by side, and what is left after something was killed: nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from testbed import api, bed, folder, objects, ports, process
from testbed.binaries import Binaries
from testbed.waiting import eventually

ROOT = Path(__file__).parents[3]
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "metrics-server")


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "testbed", *map(str, arguments)]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)


def nothing_left(home: Path, used_ports: Mapping[str, int]) -> None:
    assert process.running(home) == []
    assert not home.exists()
    taken = eventually(
        lambda: {name for name, port in used_ports.items() if not ports.is_free(port)}, until=lambda taken: not taken
    )
    assert taken == set()


@pytest.fixture
def home(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[Path]:
    assert control_plane_binaries
    yield tmp_path / "bed"
    bed.down(tmp_path / "bed")


def used_ports(home: Path) -> dict[str, int]:
    return dict(json.loads((home / "state.json").read_text())["ports"])


def kill(name: str, home: Path) -> None:
    for found, running in process.running(home):
        if found == name:
            running.kill()
            eventually(lambda running=running: process.has_ended(running))  # type: ignore[misc]


def test_life_of_a_testbed_beside_another(home: Path, cluster: bed.ControlPlane) -> None:
    up = command("up", "--dir", home, "--nodes", "1", "--spot", "2")
    assert up.returncode == 0, up.stderr
    last = up.stdout.splitlines()[-1]
    assert last == f"KUBECONFIG={home / 'kubeconfig'}"
    taken = used_ports(home)
    assert not set(taken.values()) & set(cluster.ports.values())
    here, there = api.connect(home / "kubeconfig"), cluster.api()
    nodes = here.list("nodes")
    assert sorted(node["metadata"]["labels"][objects.CAPACITY] for node in nodes) == ["on-demand", "spot", "spot"]
    here.create("namespaces", {"metadata": {"name": "only-here"}})
    names = [{it["metadata"]["name"] for it in side.list("namespaces")} for side in (here, there)]
    assert ["only-here" in it for it in names] == [True, False]

    status = command("status", "--dir", home)
    assert status.returncode == 0
    pids = {name: running.pid for name, running in process.running(home)}
    assert f"pid {pids['etcd']}" in status.stdout

    again = command("up", "--dir", home)
    assert again.returncode == 1
    assert f"\nerror: a test bed is already running in {home} (apiserver pid " in f"\n{again.stderr}"
    assert "choose another --dir" in again.stderr
    assert command("status", "--dir", home).returncode == 0, "the running one is untouched"

    logs = command("logs", "kube-scheduler", "--dir", home)
    assert "Starting Kubernetes Scheduler" in logs.stdout
    unknown = command("logs", "kubelet", "--dir", home)
    assert unknown.returncode == 1
    assert "'kubelet' has no log; there are audit, etcd, " in unknown.stderr

    down = command("down", "--dir", home)
    assert down.returncode == 0
    assert "kube-apiserver" in down.stdout
    nothing_left(home, taken)
    assert there.list("namespaces"), "the other one goes on"
    assert "nothing was running" in command("down", "--dir", home).stdout, "down twice is fine"
    assert "no test bed in" in command("status", "--dir", home).stderr


def test_launcher_killed_while_starting(home: Path) -> None:
    launcher = subprocess.Popen([sys.executable, "-m", "testbed", "up", "--dir", str(home)], cwd=ROOT)
    eventually(lambda: "kube-apiserver" in dict(process.running(home)), what="the apiserver", interval=0.01)
    launcher.kill()
    launcher.wait()
    taken = used_ports(home)
    assert process.running(home), "its children are still there"
    assert command("down", "--dir", home).returncode == 0
    nothing_left(home, taken)


@pytest.mark.campaign
def test_one_child_killed_then_down(home: Path, control_plane_binaries: Binaries) -> None:
    taken = bed.up(home, control_plane_binaries).ports
    kill("kube-apiserver", home)
    assert command("down", "--dir", home).returncode == 0
    nothing_left(home, taken)


def test_killed_and_cleaned_by_the_next_up_then_killed_part_by_part_and_cleaned_by_down(
    home: Path, control_plane_binaries: Binaries
) -> None:
    before = bed.up(home, control_plane_binaries, nodes=1)
    leftover = dict(process.running(home))["kwok"]
    kill("kube-apiserver", home)
    installed = command("install", "--dir", home)
    assert installed.returncode == 1
    assert f"error: kube-apiserver is not running in {home}; `down` and `up` make a new" in installed.stderr
    assert bed.ended(home) == ["kube-apiserver"]
    after = bed.up(home, control_plane_binaries, owner=os.getpid())
    assert bed.ended(home) == []
    assert process.has_ended(leftover)
    assert after.api().list("nodes") == [], "it is a new cluster"
    assert set(before.ports) == set(after.ports)

    kill("guard", home)
    status = command("status", "--dir", home)
    for victim in PARTS:
        assert f"{victim:<26} pid" in status.stdout
        kill(victim, home)
        status = command("status", "--dir", home)
        assert status.returncode == 1
        assert f"{victim:<26} not running" in status.stdout
    assert command("down", "--dir", home).returncode == 0
    nothing_left(home, after.ports)


OWNER = """
import os, pathlib, signal, sys
from rich.console import Console
from testbed import bed, binaries, progress
found = binaries.ensure(os.environ, report=progress.BuildProgress(Console()))
bed.up(pathlib.Path(sys.argv[1]), found, owner=os.getpid())
print("up", flush=True)
signal.pause()
"""


@pytest.mark.parametrize(
    "when", [*(pytest.param(it, marks=pytest.mark.campaign) for it in ("guard", "etcd", "kwok")), "up"]
)
def test_owner_killed(home: Path, when: str) -> None:
    """A demo or a test run that is killed takes its control plane along, however early."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, home], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout:
        if when == "up":
            assert owner.stdout.readline() == "up\n"
        else:
            eventually(lambda: when in dict(process.running(home)), interval=0.01, what=when)
        state = folder.read_state(home)
        owner.kill()
        owner.wait()
    eventually(lambda: not process.running(home) and not home.exists(), what="the guard's work")
    nothing_left(home, state["ports"] if state else {})


@pytest.mark.campaign
def test_asked_to_end_while_starting(home: Path) -> None:
    launcher = subprocess.Popen([sys.executable, "-m", "testbed", "up", "--dir", str(home)], cwd=ROOT)
    eventually(lambda: "kube-apiserver" in dict(process.running(home)), interval=0.01, what="the apiserver")
    taken = used_ports(home)
    launcher.terminate()
    assert launcher.wait(timeout=60) == 143
    nothing_left(home, taken)


@pytest.mark.campaign
def test_down_while_starting(home: Path) -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-m", "testbed", "up", "--dir", str(home)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: "kube-apiserver" in dict(process.running(home)), interval=0.01, what="the apiserver")
    taken = used_ports(home)
    assert command("down", "--dir", home).returncode == 0
    _, errors = launcher.communicate(timeout=120)
    assert launcher.returncode == 1
    assert "\nerror: " in f"\n{errors}"
    assert "Traceback" not in errors
    nothing_left(home, taken)


@pytest.mark.campaign
def test_folder_can_be_used_again_after_kubectl(home: Path, control_plane_binaries: Binaries) -> None:
    for _ in range(2):
        bed.up(home, control_plane_binaries, nodes=1).kubectl("get", "nodes")
        bed.down(home)
        assert not home.exists()


@pytest.mark.campaign
def test_folder_behind_a_link(tmp_path: Path, control_plane_binaries: Binaries) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    bed.up(tmp_path / "link", control_plane_binaries)
    assert command("status", "--dir", tmp_path / "real").returncode == 0
    assert command("down", "--dir", tmp_path / "link").returncode == 0
    assert not (tmp_path / "real").exists()


@pytest.mark.campaign
def test_unreadable_state_is_cleaned(home: Path, control_plane_binaries: Binaries) -> None:
    bed.up(home, control_plane_binaries)
    kill("etcd", home)
    (home / "state.json").write_text("{half")
    assert "no test bed in" in command("status", "--dir", home).stderr
    assert bed.up(home, control_plane_binaries).api().list("namespaces")


def test_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("precious.txt", "kubeconfig", "state.json", "pki/ca.key", "logs/a.log")]
    for path in files:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    up = command("up", "--dir", tmp_path)
    assert up.returncode == 1
    assert "is not empty and is not a test bed" in up.stderr
    command("down", "--dir", tmp_path)
    assert [path.read_text() for path in files] == ["mine"] * len(files)


def test_unusable_folder_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "file", tmp_path / "file" / "below"):
        up = command("up", "--dir", target)
        assert up.returncode == 1
        assert f"\nerror: {target} cannot be used: " in f"\n{up.stderr}"


@pytest.mark.parametrize("value", ["-1", "many", "999999"])
def test_bad_count_is_named(value: str) -> None:
    up = command("up", "--nodes", value)
    assert up.returncode == 2
    assert f"argument --nodes: '{value}' is not a whole number from 0 to 5000" in up.stderr


def test_component_that_cannot_start_is_told_with_its_last_words(
    home: Path, tmp_path: Path, control_plane_binaries: Binaries
) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho 'no memory left for me' >&2\nexit 7\n")
    broken.chmod(0o755)
    with pytest.raises(bed.DidNotStart, match=r"(?s)kube-apiserver ended:.*no memory left for me"):
        bed.up(home, {**control_plane_binaries, "kube-apiserver": broken})
    assert process.running(home) == []
    assert not home.exists()


@pytest.mark.campaign
def test_component_can_be_restarted(home: Path, control_plane_binaries: Binaries) -> None:
    running = bed.up(home, control_plane_binaries, nodes=1)
    before = running.status()["kube-apiserver"]
    running.restart("kube-apiserver", grace_seconds=0)
    assert running.status()["kube-apiserver"] != before
    assert len(running.api().list("nodes")) == 1, "what etcd knows is still there"


@pytest.mark.campaign
def test_ambient_kubeconfig_is_never_used(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("not a kubeconfig: nobody may even read this")
    foreign.chmod(0)
    monkeypatch.setenv("KUBECONFIG", str(foreign))
    assert command("up", "--dir", home, "--nodes", "1", "--spot", "0").returncode == 0
    assert "on-demand-0" in bed.attach(home).kubectl("get", "nodes")


def test_processes_are_recognised_by_their_mark_alone(tmp_path: Path) -> None:
    (tmp_path / "bed").mkdir()
    child = process.start("sleeper", ["sleep", "60"], home=tmp_path / "bed", log=tmp_path / "log")
    assert [(name, found.pid) for name, found in process.running(tmp_path / "bed")] == [("sleeper", child.pid)]
    assert process.running(tmp_path / "other") == []
    bed.down(tmp_path / "bed")
    assert not psutil.pid_exists(child.pid) or process.has_ended(child)
    assert os.getpid() not in [found.pid for _, found in process.running(tmp_path / "bed")]


def test_a_process_that_shows_no_environment_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment after a start the kernel shows an empty one, about once in fifteen starts of a small program."""
    read = psutil.Process.environ
    shown: list[dict[str, str]] = []

    def late(self: psutil.Process) -> dict[str, str]:
        shown.append(read(self) if len(shown) > 2 else {})
        return shown[-1]

    monkeypatch.setattr(psutil.Process, "environ", late)
    child = process.start("sleeper", ["sleep", "60"], home=tmp_path, log=tmp_path / "log")
    child.kill()
    assert shown[-1].get(process.NAME) == "sleeper"

"""The whole product with the extender, from the shipped overlay, and a scheduler with the shipped sample."""

import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from testbed import bed, kubelet, objects, process
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.waiting import eventually
from tests.e2e import draining
from tests.e2e.draining import Scene

ROOT = Path(__file__).parents[2]
OVERLAY = ROOT / "manifests" / "overlays" / "with-extender"
SAMPLE = ROOT / "manifests" / "examples" / "scheduler-extender.yaml"
PODS = 6


def command(*arguments: str | Path) -> str:
    line = [sys.executable, "-m", "testbed", *map(str, arguments)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def product(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    assert control_plane_binaries
    home = tmp_path / "bed"
    try:
        command("up", "--dir", home, "--nodes", "3", "--spot", "3")
        command("install", "--dir", home, "--manifests", OVERLAY)
        assert "it asks http://127.0.0.1:" in command("scheduler", "--dir", home, "--config", SAMPLE)
        yield bed.attach(home)
    finally:
        bed.down(home)


def requests_answered(product: ControlPlane) -> bool:
    """Whether some replica of the extender was asked by the scheduler."""
    probes = [
        one.ports["probes"]
        for pod in kubelet.remembered(product)
        if pod.deployment == "spotshift-extender"
        for one in pod.processes
    ]
    texts = [urllib3.request("GET", f"http://127.0.0.1:{port}/metrics").data.decode() for port in probes]
    return any('extender_requests_total{result="answered",verb="filter"}' in text for text in texts)


def test_a_drain_is_exact_and_the_scheduler_does_without_the_extender(product: ControlPlane) -> None:
    draining.configure(product.api(), draining.POLICY)
    eventually(lambda: draining.leaders(product), until=lambda found: len(found) == 1, timeout=60, what="a leader")
    with draining.scene(product, f"t-{secrets.token_hex(4)}") as scene:
        drain(scene)
        assert requests_answered(product)
        gone = [it for name, it in process.running(product.home) if name.startswith("spotshift-extender-")]
        process.stop(gone, grace_seconds=0)
        scene.create("deployments", objects.deployment("late", replicas=5))
        scene.settle(PODS + 5)
    assert "it asks no extender" in command("scheduler", "--dir", product.home)


def drain(scene: Scene) -> None:
    node = next(name for name in scene.node_names() if name.startswith("on-demand"))
    with scene.only(node):
        scene.create("deployments", objects.deployment("web", replicas=PODS))
        scene.settle(PODS)
    there = len(scene.apps_on(node))
    assert there >= PODS // 2, "a cordon takes a moment to reach the scheduler"
    scene.label(node)
    eventually(lambda: scene.apps_on(node), until=lambda apps: not apps, timeout=120, what="an empty node")
    scene.quiet()
    moves = [it["status"] for it in scene.moves()]
    assert [(it["phase"], it.get("onTarget")) for it in moves] == [("Completed", True)] * there
    scene.settle(PODS)
    scene.label(node, value=None)

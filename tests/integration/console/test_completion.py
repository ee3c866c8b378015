"""Completion in real shells, and through kubectl itself."""

import os
import subprocess
from pathlib import Path

import pytest

from testbed.bed import ControlPlane
from tests.integration.console import shells
from tests.integration.console.terminal import environ


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_the_script_loads_and_completes(name: str, running: ControlPlane, tmp_path: Path) -> None:
    with shells.shell(name, running.kubeconfig, tmp_path) as window:
        window.type(f"source <(kubectl-spotshift completion {name}) && echo loaded-$((40+2))\r")
        window.wait_for(r"loaded-42\s")
        window.type("kubectl-spotshift maint\t")
        window.wait_for("kubectl-spotshift maintenance ")
        window.type("sta\t\t")
        window.wait_for(r"start[\s\S]*status")
        window.type("rt spot-\t\t")
        window.wait_for(r"spot-0[\s\S]*spot-1")


def kubectl(running: ControlPlane, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = f"{shells.launchers(folder / 'bin')}:{os.environ['PATH']}"
    env = environ(running.kubeconfig, PATH=path, HOME=str(folder))
    command = [str(running.binaries["kubectl"]), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


def test_kubectl_finds_the_plugin(running: ControlPlane, tmp_path: Path) -> None:
    listed = kubectl(running, tmp_path, "plugin", "list").stdout
    assert "kubectl-spotshift" in listed
    done = kubectl(running, tmp_path, "spotshift", "nodes", "--capacity", "spot")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["NODE", "spot-0", "spot-1"]
    assert kubectl(running, tmp_path, "spotshift", "nodes", "-o", "xml").returncode == 2


def test_kubectl_completes_the_plugin(running: ControlPlane, tmp_path: Path) -> None:
    *found, directive = kubectl(
        running, tmp_path, "__complete", "spotshift", "explain", "node", "spot-"
    ).stdout.split()
    assert (found, directive) == (["spot-0", "spot-1"], ":4")

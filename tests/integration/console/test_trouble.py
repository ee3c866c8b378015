"""A cluster that does not answer, rights that are missing, an installation that is not there: a line for each."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import access
from testbed.api import Object
from testbed.bed import ControlPlane
from testbed.proxy import FaultProxy
from testbed.waiting import eventually
from tests.e2e.draining import Scene
from tests.integration.console.conftest import COMMANDS, Installed
from tests.integration.console.terminal import ROOT, Done, Plugin, command, environ, kubeconfig_with

NOT_INSTALLED = "error: this cluster knows no PodMigrations: spotshift is not installed in it"
BEFORE: dict[str, tuple[int, str]] = {
    # Looking works on any cluster: that is how one finds out whether to install it.
    "nodes": (0, ""),
    "plan": (0, ""),
    "explain": (0, ""),
    "maintenance": (0, ""),
    "top": (0, ""),
    "status": (1, "warning: spotshift is not installed in this cluster"),
    "migrations": (1, NOT_INSTALLED),
    "migrate": (1, NOT_INSTALLED),
    "check": (1, ""),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_before_the_installation(installed: Installed, name: str) -> None:
    done = installed.before[name]
    assert (done.returncode, done.stderr[: len(BEFORE[name][1])]) == BEFORE[name], done.stderr
    if name == "check":
        assert "there is no CustomResourceDefinition podmigrations.spotshift.dev" in done.stdout
        assert "kubectl apply -k manifests/overlays/production" in done.stdout


@pytest.fixture(scope="module")
def nobody(installed: Installed) -> Plugin:
    """Somebody who may do nothing."""
    installed.bed.api().create("serviceaccounts", {"metadata": {"name": "nobody"}}, "default")
    return Plugin(access.kubeconfig(installed.bed, "nobody", "default"))


DENIED = {
    "status": (1, "error: you are not allowed to do this: nodes is forbidden"),
    "nodes": (1, "error: you are not allowed to do this: nodes is forbidden"),
    "plan": (1, "error: you are not allowed to do this: nodes is forbidden"),
    "explain": (1, "error: you are not allowed to do this: nodes is forbidden"),
    "top": (1, "error: you are not allowed to do this: nodes is forbidden"),
    "migrations": (1, "error: you are not allowed to do this: podmigrations.spotshift.dev is forbidden"),
    "migrate": (1, 'error: you are not allowed to do this: pods "bare" is forbidden'),
    "maintenance": (1, "error: you are not allowed to do this: nodes is forbidden"),
    "check": (3, ""),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_missing_rights(nobody: Plugin, name: str) -> None:
    done = nobody(*COMMANDS[name])
    assert (done.returncode, done.stderr[: len(DENIED[name][1])]) == DENIED[name], done.stderr
    if name == "check":
        assert "your rights   warning" in done.stdout
        assert "migrate in namespace default: you may not get pods, create podmigrations.spotshift.dev" in done.stdout


@pytest.fixture
def watcher(running: ControlPlane) -> Iterator[Plugin]:
    """Somebody who may list nodes and pods and nothing else."""
    kube, name = running.api(), "console-watcher"
    kube.create("serviceaccounts", {"metadata": {"name": name}}, "default")
    rule = {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]}
    kube.create("clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    binding: Object = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    kube.create("clusterrolebindings", binding)
    made = Plugin(access.kubeconfig(running, name, "default"))
    eventually(lambda: made("nodes").returncode, until=lambda code: code == 3, what="the rights to be in force")
    yield made
    for resource in ("clusterrolebindings", "clusterroles"):
        kube.delete(resource, name)
    kube.delete("serviceaccounts", name, "default")


def test_what_may_not_be_seen_is_assumed_and_said(watcher: Plugin) -> None:
    """Code 3: it is printed, but it may not be what would happen."""
    for words in (("plan",), ("nodes",), ("status",)):
        done = watcher(*words)
        assert done.returncode == 3
        assert "poddisruptionbudgets: not allowed to list them" in done.stdout
    assert "settings: ConfigMap spotshift-system/spotshift-settings cannot be read" in watcher("plan").stdout
    with watcher.started("top") as window:
        window.wait_for("Not everything could be seen")
        window.interrupt()
        assert window.ended().code == 0


def test_a_cluster_that_does_not_answer(running: ControlPlane, tmp_path: Path) -> None:
    with FaultProxy(running) as proxy:
        plugin = Plugin(proxy.kubeconfig(tmp_path / "kubeconfig"))
        proxy.refuse()
        for words in COMMANDS.values():
            done = plugin(*words)
            assert (done.returncode, done.stdout) == (1, "")
            assert done.stderr.startswith(f"error: the cluster at {proxy.server} does not answer: ")
            assert len(done.stderr.splitlines()) == 1


def test_credentials_that_are_not_accepted(running: ControlPlane, tmp_path: Path) -> None:
    with FaultProxy(running) as proxy:
        done = Plugin(proxy.kubeconfig(tmp_path / "kubeconfig", token="wrong"))("nodes")
    assert done.returncode == 1
    assert "does not accept who you are" in done.stderr
    assert "wrong" not in done.stderr


def test_context_and_namespace_are_those_of_the_kubeconfig(
    running: ControlPlane, scene: Scene, tmp_path: Path
) -> None:
    there = Plugin(kubeconfig_with(running, tmp_path / "kubeconfig", namespace=scene.namespace))
    assert f"in namespace {scene.namespace}" in there("migrations").stdout
    assert "in namespace default" in there("migrations", "-n", "default").stdout
    done = there("nodes", "--context", "other")
    assert (done.returncode, "other" in done.stderr) == (1, True)
    given = command("migrations", "--kubeconfig", str(tmp_path / "kubeconfig"))
    run = subprocess.run(given, env=environ("/none"), capture_output=True, text=True, check=False)
    assert (run.returncode, scene.namespace in run.stdout) == (0, True)


def test_a_reader_that_stops_early_is_no_error(running: ControlPlane) -> None:
    line = " ".join((*command("nodes", "-o", "json"), "| true"))
    done: Done = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", line],
        cwd=ROOT,
        env=environ(running.kubeconfig),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

"""`python -m descheduler plan` and `explain` on a real cluster, as a person runs them."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from descheduler import kinds
from testbed import access, objects
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.proxy import FaultProxy
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually

ROOT = Path(__file__).parents[2]
LABEL = "scheduler.alpha.kubernetes.io/maintenance"


def descheduler(*arguments: str, kubeconfig: Path | str = "", stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    if kubeconfig:
        env["KUBECONFIG"] = str(kubeconfig)
    command = [sys.executable, "-m", "descheduler", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture
def drained(kube: Api, namespace: str, nodes: Nodes) -> str:
    """A node to be emptied, with at least one pod of a Deployment that fits on the other one."""
    first, second = nodes.make(on_demand=2)
    kube.create("deployments", objects.deployment("web", replicas=2), namespace)

    def placed() -> list[str]:
        pods = kube.list("pods", namespace)
        return [it["spec"]["nodeName"] for it in pods if objects.is_ready(it)] if len(pods) == 2 else []

    where = eventually(placed, what="the pods of web")
    chosen = where[0]
    assert chosen in {first, second}
    kube.patch("nodes", chosen, {"metadata": {"labels": {LABEL: "true"}}})
    return chosen


def moves_of(plan: dict[str, Any], namespace: str) -> list[dict[str, Any]]:
    return [it for it in plan["moves"] if it["namespace"] == namespace]


def test_a_cluster_and_its_dump_give_the_same_plan(cluster: ControlPlane, namespace: str, drained: str) -> None:
    done = descheduler("plan", "-o", "json", kubeconfig=cluster.kubeconfig)
    assert done.returncode == 0, done.stderr
    moves = moves_of(json.loads(done.stdout), namespace)
    assert moves
    assert all((it["from"], it["strategy"]) == (drained, "NodeMaintenance") for it in moves)
    assert all(it["to"] not in {None, drained} for it in moves)

    dump = cluster.kubectl(*kinds.COMMAND.split()[1:])
    again = descheduler("plan", "-o", "json", "-f", "-", "--none", "poddisruptionbudgets", stdin=dump)
    assert again.returncode in {0, 3}, again.stderr  # other tests come and go while kubectl asks kind after kind
    assert moves_of(json.loads(again.stdout), namespace) == moves


def test_nothing_is_touched(cluster: ControlPlane, kube: Api, namespace: str, drained: str) -> None:
    def pods() -> list[Any]:
        return [(it["metadata"]["uid"], it["spec"], it["metadata"]["labels"]) for it in kube.list("pods", namespace)]

    before = pods()
    assert descheduler("plan", kubeconfig=cluster.kubeconfig).returncode == 0
    assert pods() == before
    assert not kube.get("nodes", drained)["spec"].get("unschedulable")


def test_explain_a_pod(cluster: ControlPlane, kube: Api, namespace: str, drained: str) -> None:
    name = next(it["metadata"]["name"] for it in kube.list("pods", namespace) if it["spec"]["nodeName"] == drained)
    done = descheduler("explain", name, "-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    assert done.returncode == 0, done.stderr
    assert f"Pod {namespace}/{name} on {drained}, of Deployment {namespace}/web" in done.stdout
    assert "(NodeMaintenance)" in done.stdout
    assert f"{drained} (its own)" in done.stdout


def test_missing_rights_are_named(cluster: ControlPlane, kube: Api, namespace: str) -> None:
    kube.create("serviceaccounts", {"metadata": {"name": "nobody"}}, namespace)
    done = descheduler("plan", kubeconfig=access.kubeconfig(cluster, "nobody", namespace))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: rights are missing: nodes and pods must be listed, nodes is forbidden")
    assert f"system:serviceaccount:{namespace}:nobody" in done.stderr


def _incomplete(kubeconfig: Path) -> subprocess.CompletedProcess[str] | None:
    done = descheduler("plan", "-o", "json", kubeconfig=kubeconfig)
    return done if done.returncode == 3 else None


def test_kinds_that_may_not_be_seen_are_assumed(cluster: ControlPlane, kube: Api, namespace: str) -> None:
    kube.create("serviceaccounts", {"metadata": {"name": "watcher"}}, namespace)
    rule = {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["list"]}
    role = f"{namespace}-watcher"
    kube.create("clusterroles", {"metadata": {"name": role}, "rules": [rule]})
    binding = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "watcher", "namespace": namespace}],
    }
    kube.create("clusterrolebindings", binding)
    try:
        kubeconfig = access.kubeconfig(cluster, "watcher", namespace)
        done = eventually(lambda: _incomplete(kubeconfig), what="a plan with assumptions")
    finally:
        kube.delete("clusterrolebindings", role)
        kube.delete("clusterroles", role)
    assert done is not None
    summary = json.loads(done.stdout)["summary"]
    assert summary["complete"] is False
    assert any(it.startswith("poddisruptionbudgets: not allowed to list them") for it in summary["assumed"])


def test_a_cluster_that_hangs_up_is_named(fault_proxy: FaultProxy, tmp_path: Path) -> None:
    kubeconfig = fault_proxy.kubeconfig(tmp_path / "kubeconfig")
    fault_proxy.refuse()
    done = descheduler("plan", kubeconfig=kubeconfig)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: the cluster at {fault_proxy.server} does not answer: ")
    assert "Traceback" not in done.stderr


def test_a_reader_that_stops_early_is_no_error() -> None:
    dump = ROOT / "tests" / "golden" / "descheduler" / "cluster.json"
    command = f"{sys.executable} -m descheduler plan -v -o json -f {dump} | true"
    done = subprocess.run(["/bin/bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_deployment_that_came_up_on_one_node_is_levelled(
    cluster: ControlPlane, kube: Api, namespace: str, nodes: Nodes, tmp_path: Path
) -> None:
    """A taint makes the nodes of this test a pool of their own, whatever other tests do at the same time."""
    taint = {"key": "test", "value": namespace, "effect": "NoSchedule"}
    tolerations = [{"key": "test", "operator": "Exists"}]
    kube.create("deployments", objects.deployment("web", replicas=20, tolerations=tolerations), namespace)
    (full,) = nodes.make(on_demand=1, taints=[taint])
    eventually(lambda: sum(map(objects.is_ready, kube.list("pods", namespace))), until=lambda ready: ready == 20)
    others = nodes.make(on_demand=3, taints=[taint])

    settings = tmp_path / "settings.yaml"
    settings.write_text("apiVersion: spotshift.dev/v1alpha1\nkind: Policy\nmaxReschedulePods: 1000\n")
    later = (
        datetime.now(UTC) + timedelta(minutes=10)
    ).isoformat()  # pods are left alone for their first five minutes
    arguments = ("plan", "-o", "json", "--settings", str(settings), "--now", later)
    done = descheduler(*arguments, kubeconfig=cluster.kubeconfig)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    moves = moves_of(plan, namespace)
    assert [(it["from"], it["strategy"]) for it in moves] == [(full, "LoadBalancing")] * 2
    assert len({it["to"] for it in moves} & set(others)) == 2
    why = {code for it in plan["refusals"] if it["namespace"] == namespace for code in _codes(it)}
    assert why == {"LIMIT_WORKLOAD"}


def _codes(refusal: dict[str, Any]) -> set[str]:
    return {it["code"] for it in refusal["reasons"]}

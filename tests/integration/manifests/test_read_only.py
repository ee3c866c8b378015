"""Whoever takes over the dashboard or the extender can look, and change nothing: asked with their own tokens."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from console import door
from testbed import access, audit, definitions, objects, rights
from testbed.api import Api, ApiError, connect
from testbed.bed import ControlPlane
from testbed.install import MANIFESTS
from testbed.rights import Used
from testbed.waiting import eventually
from tests.integration.console.web import browser as driving

SYSTEM = "spotshift-system"
COMPONENTS = MANIFESTS.parent / "components"
READS = {"get", "list", "watch"}
ABOUT_ONESELF = {"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}
"""What everybody may create: a question about one's own rights. Nothing is stored."""


@pytest.fixture(scope="module", params=["console", "extender"])
def account(cluster: ControlPlane, request: pytest.FixtureRequest) -> Api:
    """The API as the ServiceAccount that is shipped."""
    cluster.kubectl("apply", "-f", str(MANIFESTS / "namespace.yaml"))
    cluster.kubectl("apply", "-f", str(COMPONENTS / request.param / "rbac.yaml"))
    return connect(access.kubeconfig(cluster, f"spotshift-{request.param}", SYSTEM))


@pytest.mark.parametrize("where", ["default", "kube-system", SYSTEM])
def test_the_apiserver_knows_of_no_write(account: Api, where: str) -> None:
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": where}}
    told = account.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body=body)["status"]
    assert told["incomplete"] is False
    rules = [it for it in told["resourceRules"] if not set(it["resources"]) <= ABOUT_ONESELF]
    assert len(rules) > 1, "it may read something"
    for rule in rules:
        assert set(rule["verbs"]) <= READS, rule
        assert "secrets" not in rule["resources"]
        assert "*" not in (*rule["resources"], *rule["apiGroups"])
    assert {verb for it in told["nonResourceRules"] for verb in it["verbs"]} == {"get"}


WRITES: dict[str, Callable[[Api], object]] = {
    "create a pod": lambda it: it.create("pods", objects.pod("x"), "default", dry_run=True),
    "evict": lambda it: it.evict("x", "default"),
    "delete a pod": lambda it: it.delete("pods", "x", "default"),
    "cordon": lambda it: it.patch("nodes", "x", {"spec": {"unschedulable": True}}),
    "scale": lambda it: it.patch("deployments", "x", {"spec": {"replicas": 0}}, "default", subresource="scale"),
    "move": lambda it: it.create("podmigrations", {"spec": {"podRef": {"name": "x"}}}, "default"),
    "settings": lambda it: it.patch("configmaps", "spotshift-settings", {"data": {}}, SYSTEM),
    "read a Secret": lambda it: it.list("secrets", SYSTEM),
    "impersonate": lambda it: it.request(
        "POST", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/spotshift-descheduler/token", body={"spec": {}}
    ),
}


def test_writes_are_refused(account: Api, subtests: pytest.Subtests) -> None:
    for name, write in WRITES.items():
        with subtests.test(name):
            with pytest.raises(ApiError) as refusal:
                write(account)
            assert refusal.value.status in {403, 404}, refusal.value
            assert refusal.value.status == 403 or name == "move", "that kind need not be installed here"


def test_the_dashboard_needs_its_rights_and_no_others(cluster: ControlPlane, tmp_path: Path) -> None:
    cluster.kubectl("apply", "-f", str(MANIFESTS / "namespace.yaml"))
    cluster.kubectl("apply", "-k", str(MANIFESTS / "migrations"))
    definitions.established(cluster.api(), "podmigrations.spotshift.dev")
    rbac = COMPONENTS / "console" / "rbac.yaml"
    cluster.kubectl("apply", "-f", str(rbac))
    name = "spotshift-console"
    granted = rights.granted(list(yaml.safe_load_all(rbac.read_text())))[name]
    port = driving.free_port()
    command = ("--kubeconfig", str(access.kubeconfig(cluster, name, SYSTEM)), "--listen", f"127.0.0.1:{port}")

    def used() -> Used:
        found = Used()
        asked = audit.requests(cluster.layout.audit_log, audit.of_account(SYSTEM, name))
        found.take(it for it in asked if it.agent == door.AGENT)  # other tests log in as the same account
        return found

    with driving.serving("console.web", *command, "--interval", "0.5", port=port, log=tmp_path / "log"):
        eventually(lambda: granted - used().rights(name), until=lambda it: not it, what="every right in use")
    assert used().rights(name) <= granted
    assert used().refused == {}


def test_pods_of_both_read_only_their_own_token() -> None:
    for name in ("console", "extender"):
        document = yaml.safe_load((COMPONENTS / name / "deployment.yaml").read_text())
        spec = document["spec"]["template"]["spec"]
        assert spec["serviceAccountName"] == f"spotshift-{name}"
        mounted = {kind for volume in spec.get("volumes", ()) for kind in volume if kind != "name"}
        assert mounted <= {"emptyDir", "configMap"}, "no Secret is mounted"

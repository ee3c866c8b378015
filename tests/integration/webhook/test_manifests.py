"""What is shipped: accepted by the API server, within the strictest profile, with no right too many or too few."""

import pytest
import yaml

from testbed import audit, rights
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.rights import Used
from testbed.waiting import eventually
from tests.integration.webhook.serving import ACCOUNT, MANIFESTS, Serving
from tests.integration.webhook.test_server import rule, rules
from tests.unit.webhook.building import PREFIX

SETTINGS = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\nplacement: {spot: avoid}\n"


def shipped(cluster: ControlPlane) -> dict[str, Object]:
    rendered = cluster.kubectl("kustomize", str(MANIFESTS / "webhook"))
    return {document["kind"]: document for document in yaml.safe_load_all(rendered)}


def test_the_api_server_accepts_every_object(cluster: ControlPlane) -> None:
    cluster.kubectl("apply", "-f", str(MANIFESTS / "namespace.yaml"))
    told = cluster.kubectl("apply", "--dry-run=server", "-k", str(MANIFESTS / "webhook"))
    assert len(told.splitlines()) == len(shipped(cluster)) == 9


@pytest.mark.usefixtures("allowed")
def test_the_pods_keep_to_the_strictest_profile(cluster: ControlPlane, kube: Api, namespace: str) -> None:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube.patch("namespaces", namespace, {"metadata": {"labels": enforced}})
    template = shipped(cluster)["Deployment"]["spec"]["template"]
    template["metadata"]["name"] = "webhook"
    made = kube.create("pods", {"apiVersion": "v1", "kind": "Pod", **template}, namespace, dry_run=True)
    assert made["spec"]["serviceAccountName"] == ACCOUNT


def test_every_right_is_used_and_none_is_missing(
    cluster: ControlPlane, kube: Api, namespace: str, webhook: Serving
) -> None:
    granted = {right for it in shipped(cluster)["ClusterRole"]["rules"] for right in rights.of_rule(it)}

    def used() -> Used:
        found = Used()
        found.take(audit.requests(cluster.layout.audit_log, audit.of_account(namespace, ACCOUNT)))
        return found

    eventually(lambda: used().rights(ACCOUNT), until=lambda found: found == granted, what="every right in use")
    assert used().refused == {}


def test_settings_are_followed(kube: Api, namespace: str, webhook: Serving) -> None:
    pod = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    node = {"metadata": {"name": f"{namespace}-spot", "labels": {"node.kubernetes.io/capacity": "spot"}}}
    kube.create("nodes", node)
    try:
        eventually(
            lambda: rules(kube.create("pods", pod, namespace, dry_run=True)), until=lambda it: it == [rule("In")]
        )
        (webhook.folder / "settings.yaml").write_text(SETTINGS)
        eventually(
            lambda: rules(kube.create("pods", pod, namespace, dry_run=True)), until=lambda it: it == [rule("NotIn")]
        )
    finally:
        kube.delete("nodes", f"{namespace}-spot")
    assert PREFIX in str(kube.create("pods", pod, namespace, dry_run=True)["metadata"]["labels"])

"""What is shipped: accepted by the API server, within the strictest profile, with no right too many or too few."""

import os
from pathlib import Path

import pytest
import yaml

from bench.extender.stage import MANIFESTS, Extender
from testbed import audit, rights
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.rights import Used
from testbed.waiting import eventually
from tests.integration.extender.login import ACCOUNT


@pytest.fixture(scope="module")
def shipped(cluster: ControlPlane) -> list[Object]:
    rendered = cluster.kubectl("kustomize", str(MANIFESTS / "overlays" / "with-extender"))
    every = list(yaml.safe_load_all(rendered))
    return [it for it in every if it["metadata"]["name"] == ACCOUNT]


def one(shipped: list[Object], kind: str) -> Object:
    return next(it for it in shipped if it["kind"] == kind)


def test_the_api_server_accepts_every_object(cluster: ControlPlane, shipped: list[Object]) -> None:
    cluster.kubectl("apply", "-f", str(MANIFESTS / "base" / "namespace.yaml"))
    told = cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(shipped))
    assert len(told.splitlines()) == len(shipped) == 7


def test_the_pods_keep_to_the_strictest_profile(kube: Api, account: str, shipped: list[Object]) -> None:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube.patch("namespaces", account, {"metadata": {"labels": enforced}})
    template = one(shipped, "Deployment")["spec"]["template"]
    template["metadata"]["name"] = "extender"
    made = kube.create("pods", {"apiVersion": "v1", "kind": "Pod", **template}, account, dry_run=True)
    assert made["spec"]["serviceAccountName"] == ACCOUNT


def test_with_tls_the_certificate_is_mounted_where_it_is_looked_for(cluster: ControlPlane, tmp_path: Path) -> None:
    parts = [MANIFESTS / "components" / name for name in ("extender", "extender-tls")]
    body = {"components": [os.path.relpath(part, tmp_path) for part in parts]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(body))
    rendered = cluster.kubectl("kustomize", str(tmp_path))
    (made,) = (it for it in yaml.safe_load_all(rendered) if it["kind"] == "Deployment")
    spec = made["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert {"--cert=/etc/spotshift/tls/tls.crt", "--key=/etc/spotshift/tls/tls.key"} <= set(container["args"])
    mounts = {it["name"]: it["mountPath"] for it in container["volumeMounts"]}
    assert mounts["tls"] == "/etc/spotshift/tls"
    assert {it["name"]: it for it in spec["volumes"]}["tls"]["secret"]["secretName"] == "spotshift-extender-tls"


def test_every_right_is_used_and_none_is_missing(
    cluster: ControlPlane, account: str, extender: Extender, shipped: list[Object]
) -> None:
    granted = {right for it in one(shipped, "ClusterRole")["rules"] for right in rights.of_rule(it)}

    def used() -> Used:
        found = Used()
        found.take(audit.requests(cluster.layout.audit_log, audit.of_account(account, ACCOUNT)))
        return found

    eventually(lambda: used().rights(ACCOUNT), until=lambda found: found == granted, what="every right in use")
    assert used().refused == {}

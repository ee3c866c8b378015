"""Everything we ship to run is admitted under Pod Security `restricted`, enforced by the API server itself."""

import copy
from typing import Any

import pytest
import yaml

from testbed.api import Api, ApiError, Object
from testbed.bed import ControlPlane
from testbed.install import MANIFESTS

SYSTEM = "spotshift-system"
RUNS = {"Deployment", "DaemonSet", "StatefulSet", "Job"}
FILES = sorted(
    path.relative_to(MANIFESTS.parent).as_posix()
    for path in MANIFESTS.parent.rglob("*.yaml")
    if not {"chart", "examples"} & set(path.parts)
)


def templates() -> dict[str, Object]:
    """The pod template of everything that runs, by file and name."""
    found = {}
    for file in FILES:
        text = (MANIFESTS.parent / file).read_text()
        if not any(kind in text for kind in RUNS):  # every worker reads them to know its tests
            continue
        for document in yaml.safe_load_all(text):
            if isinstance(document, dict) and document.get("kind") in RUNS:
                found[f"{file}: {document['metadata']['name']}"] = document["spec"]["template"]
    return found


TEMPLATES = templates()


@pytest.fixture(scope="module")
def enforcing(cluster: ControlPlane) -> Api:
    """Our namespace with the labels that we ship."""
    cluster.kubectl("apply", "-f", str(MANIFESTS / "namespace.yaml"))
    kube = cluster.api()
    labels = kube.get("namespaces", SYSTEM)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for template in TEMPLATES.values():
        name = template["spec"]["serviceAccountName"]
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_account(name)))
    return kube


def _account(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": SYSTEM}}


def create(kube: Api, template: Object) -> Object:
    body = copy.deepcopy(template)
    body.setdefault("metadata", {})["name"] = "tried"
    return kube.create("pods", {"apiVersion": "v1", "kind": "Pod", **body}, SYSTEM, dry_run=True)


def test_there_is_something_to_look_at() -> None:
    accounts = {it["spec"]["serviceAccountName"] for it in TEMPLATES.values()}
    assert accounts >= {
        f"spotshift-{it}" for it in ("certs", "cleanup", "console", "descheduler", "extender", "webhook")
    }


@pytest.mark.parametrize("name", TEMPLATES)
def test_it_is_admitted(enforcing: Api, name: str) -> None:
    made = create(enforcing, TEMPLATES[name])
    assert made["spec"]["serviceAccountName"] == TEMPLATES[name]["spec"]["serviceAccountName"]
    for container in made["spec"]["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True, "which no profile asks for"


LAXER: dict[str, dict[str, Any]] = {
    "as root": {"runAsNonRoot": False},
    "privileged": {"privileged": True, "allowPrivilegeEscalation": True},
    "with a capability": {"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}},
    "with all capabilities": {"capabilities": {}},
    "by escalation": {"allowPrivilegeEscalation": True},
}


@pytest.mark.parametrize("changed", LAXER.values(), ids=LAXER.keys())
def test_a_laxer_one_is_not(enforcing: Api, changed: dict[str, Any]) -> None:
    template = copy.deepcopy(next(iter(TEMPLATES.values())))
    template["spec"]["containers"][0]["securityContext"] |= changed
    with pytest.raises(ApiError, match='violates PodSecurity "restricted'):
        create(enforcing, template)

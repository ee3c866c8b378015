"""The shipped manifests say what the program needs, and nothing more."""

from pathlib import Path
from typing import Any

import yaml

from certs import options
from certs.settings import Settings

FOLDER = Path(__file__).parents[3] / "manifests"
DEFAULTS = Settings()


def documents(*parts: str) -> list[dict[str, Any]]:
    return [document for part in parts for document in yaml.safe_load_all((FOLDER / part).read_text())]


def one(kind: str) -> dict[str, Any]:
    found = documents("base/certs/rbac.yaml", "base/certs/deployment.yaml")
    return next(document for document in found if document["kind"] == kind)


def test_rights_are_by_name() -> None:
    rules = one("Role")["rules"] + one("ClusterRole")["rules"]
    for rule in rules:
        named = rule.get("resourceNames")
        if rule["resources"] == ["secrets"]:
            assert named == [DEFAULTS.ca_secret, DEFAULTS.leaf_secret] or (
                named is None and rule["verbs"] == ["create"]
            )
        else:
            assert rule["resources"] == ["mutatingwebhookconfigurations"]
            assert named == [DEFAULTS.configuration]
    assert {verb for rule in one("ClusterRole")["rules"] for verb in rule["verbs"]} == {
        "get",
        "list",
        "watch",
        "patch",
    }


def test_the_pod_is_hardened() -> None:
    spec = one("Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= set(container)
    assert container["resources"]["requests"]
    assert container["resources"]["limits"]["memory"]


def test_the_command_is_accepted_and_listens_where_it_is_probed() -> None:
    (container,) = one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "-m", "certs"]
    chosen, settings = options.parse(container["args"])
    assert settings == Settings(at_once=True)
    assert chosen.listen[1] == container["ports"][0]["containerPort"]
    assert one("Deployment")["metadata"]["namespace"] == DEFAULTS.namespace


def test_cert_manager_makes_the_same_leaf() -> None:
    found = documents("components/cert-manager/certificates.yaml")
    leaf = next(document for document in found if document["metadata"]["name"] == "spotshift-webhook")
    assert tuple(leaf["spec"]["dnsNames"]) == DEFAULTS.names
    assert leaf["spec"]["secretName"] == DEFAULTS.leaf_secret
    assert leaf["spec"]["duration"] == "720h"
    names = {document["spec"].get("secretName") for document in found}
    assert DEFAULTS.ca_secret not in names, "a way back: our own CA is not overwritten"

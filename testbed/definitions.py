"""What the API server takes up in its own time: definitions of resources and admission policies."""

import secrets
from typing import Any

from testbed import api
from testbed.waiting import eventually

POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"


def established(kube: api.Api, name: str) -> None:
    """Wait until objects of this definition can be made. `kubectl wait` fails on one that has no conditions yet."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"

    def conditions() -> list[dict[str, Any]]:
        found: dict[str, Any] = kube.request("GET", path).get("status", {})
        return list(found.get("conditions") or ())

    eventually(
        conditions,
        until=lambda found: any((it["type"], it["status"]) == ("Established", "True") for it in found),
        timeout=60,
        what=f"the definition {name}",
    )


def policies_in_force(kube: api.Api) -> None:
    """Wait until every admission policy that was made before is enforced.

    The API server takes up what there is of policies once a second, all at once and in the order in which they were
    made. So one more is made that refuses one ConfigMap: once it does, those before it are in force too.
    """
    name = f"refused-{secrets.token_hex(4)}"
    kube.create(POLICIES, _object("ValidatingAdmissionPolicy", name, _refusing(name)))
    kube.create(BINDINGS, _object("ValidatingAdmissionPolicyBinding", name, _denying(name)))
    try:
        eventually(lambda: _is_refused(kube, name), timeout=60, what="admission policies in force")
    finally:
        kube.delete(BINDINGS, name)
        kube.delete(POLICIES, name)


def _object(kind: str, name: str, spec: api.Object) -> api.Object:
    version = "admissionregistration.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _refusing(name: str) -> api.Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [name]}]},
        "validations": [{"expression": "false"}],
    }


def _denying(policy: str) -> api.Object:
    return {"policyName": policy, "validationActions": ["Deny"]}


def _is_refused(kube: api.Api, name: str) -> bool:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    try:
        kube.create("configmaps", body, "default", dry_run=True)
    except api.ApiError as refusal:
        if refusal.status != 422:
            raise
        return True
    return False

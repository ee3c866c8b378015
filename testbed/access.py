"""Log in as a ServiceAccount, as a pod of it would."""

from pathlib import Path

from testbed import pki
from testbed.api import Api, Object, path
from testbed.bed import ControlPlane

TOKEN_SECONDS = 24 * 3600
"""Longer than any run: nobody renews it as a kubelet would."""


def token(client: Api, name: str, namespace: str, *, seconds: int = TOKEN_SECONDS) -> str:
    """A fresh token of the ServiceAccount; 600 seconds is the shortest the apiserver grants."""
    body: Object = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    answer = client.request("POST", path("serviceaccounts", name, namespace) + "/token", body=body)
    return str(answer["status"]["token"])


def kubeconfig(bed: ControlPlane, name: str, namespace: str, *, server: str | None = None) -> Path:
    """Write a kubeconfig for the ServiceAccount; `server` leads it elsewhere, such as through a proxy."""
    target = bed.home / "pki" / f"{namespace}.{name}.kubeconfig"
    user = {"token": token(bed.api(), name, namespace)}
    return pki.kubeconfig(target, server=server or bed.server, ca=bed.layout.ca.bundle(), user=user)

"""A plain client of the Kubernetes API: JSON in, JSON out, nothing clever.

Independent of the product's own client on purpose: tests use it to look at the cluster from outside.
"""

import base64
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

GROUPS = {
    "apps/v1": ("deployments", "replicasets", "statefulsets", "daemonsets"),
    "batch/v1": ("jobs", "cronjobs"),
    "policy/v1": ("poddisruptionbudgets",),
    "autoscaling/v2": ("horizontalpodautoscalers",),
    "scheduling.k8s.io/v1": ("priorityclasses",),
    "storage.k8s.io/v1": ("storageclasses", "csinodes"),
    "node.k8s.io/v1": ("runtimeclasses",),
    "coordination.k8s.io/v1": ("leases",),
    "admissionregistration.k8s.io/v1": (
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ),
    "apiregistration.k8s.io/v1": ("apiservices",),
    "metrics.k8s.io/v1beta1": ("nodes.metrics", "pods.metrics"),
    "rbac.authorization.k8s.io/v1": ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    "apiextensions.k8s.io/v1": ("customresourcedefinitions",),
    "spotshift.dev/v1alpha1": ("podmigrations",),
}
"""API group of each resource used here; what is not listed belongs to the core group."""


class ApiError(Exception):
    """The apiserver said no. `status` is the HTTP status, `body` its Status object."""

    def __init__(self, status: int, body: Object, headers: Mapping[str, str]) -> None:
        super().__init__(f"{status} {body.get('reason', '')}: {body.get('message', '')}")
        self.status = status
        self.body = body
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Api:
    """A connection to one apiserver as one user."""

    server: str
    pool: urllib3.PoolManager
    token: str | None = None

    def get(self, resource: str, name: str, namespace: str | None = None) -> Object:
        return self.request("GET", path(resource, name, namespace))

    def list(self, resource: str, namespace: str | None = None, *, labels: str = "") -> list[Object]:
        answer = self.request("GET", path(resource, None, namespace), query={"labelSelector": labels})
        return list(answer["items"])

    def create(self, resource: str, body: Object, namespace: str | None = None, *, dry_run: bool = False) -> Object:
        query = {"dryRun": "All"} if dry_run else {}
        return self.request("POST", path(resource, None, namespace), body=body, query=query)

    def patch(
        self,
        resource: str,
        name: str,
        body: object,
        namespace: str | None = None,
        *,
        kind: str = MERGE_PATCH,
        subresource: str = "",
    ) -> Object:
        where = path(resource, name, namespace) + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", where, body=body, content_type=kind)

    def delete(self, resource: str, name: str, namespace: str | None = None, **options: object) -> Object:
        return self.request("DELETE", path(resource, name, namespace), body={"kind": "DeleteOptions", **options})

    def evict(self, pod: str, namespace: str) -> Object:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        return self.request("POST", path("pods", pod, namespace) + "/eviction", body=body)

    def watch(
        self, resource: str, namespace: str | None = None, *, seconds: int = 60, since: str = ""
    ) -> Iterator[Object]:
        """Events as they arrive, after the version `since` or with all that is there first, for at most `seconds`."""
        where = path(resource, None, namespace) + f"?watch=1&timeoutSeconds={seconds}"
        where += f"&resourceVersion={since}&allowWatchBookmarks=true" if since else ""
        response = self._send("GET", where, None, "", preload=False, timeout=seconds + 10)
        with response:
            buffered = b""
            for chunk in response.stream(amt=None):
                *lines, buffered = (buffered + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines)

    def request(
        self,
        method: str,
        where: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> Object:
        """Send one request to any path; a JSON object comes back or `ApiError` is raised."""
        if query := {key: value for key, value in (query or {}).items() if value}:
            where = f"{where}?{urlencode(query)}"
        response = self._send(method, where, body, content_type, preload=True, timeout=timeout)
        return dict(json.loads(response.data)) if response.data.startswith(b"{") else {"text": response.data.decode()}

    def _send(
        self, method: str, where: str, body: object, content_type: str, *, preload: bool, timeout: float
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = content_type
        response = self.pool.request(
            method,
            self.server + where,
            body=None if body is None else json.dumps(body).encode(),
            headers=headers,
            retries=False,
            preload_content=preload,
            timeout=timeout,
        )
        if response.status >= 400:
            raise ApiError(response.status, _status(response.data), dict(response.headers))
        return response


def path(resource: str, name: str | None = None, namespace: str | None = None) -> str:
    """Where a resource lives, such as `/apis/apps/v1/namespaces/default/deployments/web`."""
    group = next((group for group, members in GROUPS.items() if resource in members), "")
    parts = ["apis", group] if group else ["api", "v1"]
    if namespace:
        parts += ["namespaces", namespace]
    parts.append(resource.removesuffix(".metrics"))
    if name:
        parts.append(name)
    return "/" + "/".join(parts)


def connect(kubeconfig: Path, *, server: str | None = None, token: str | None = None) -> Api:
    """Log in as the kubeconfig says; `server` and `token` replace its address and its user."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]).decode())
    context.set_alpn_protocols(["http/1.1"])
    pool = urllib3.PoolManager(maxsize=20, ssl_context=context)
    if token is None and "tokenFile" in user:
        token = Path(user["tokenFile"]).read_text()
    return Api(server or cluster["server"], pool, token or user.get("token"))


def _decoded(text: str) -> bytes:
    return base64.b64decode(text)


def _status(body: bytes) -> Object:
    try:
        return dict(json.loads(body))
    except ValueError:
        return {"message": body[:200].decode(errors="replace")}

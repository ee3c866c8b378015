"""Reviews and views for the tests of this folder."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from policy import settings_load
from policy.settings import API_VERSION, Settings
from webhook import review, snapshot
from webhook.review import Review
from webhook.view import View

Json = dict[str, Any]

NOW = datetime(2026, 11, 16, 5, 0, 0, tzinfo=UTC)
PREFIX = "scheduler.alpha.kubernetes.io/"
CAPACITY = "node.kubernetes.io/capacity"
NODES = ({"labels": {CAPACITY: "on-demand"}}, {"labels": {CAPACITY: "spot"}})
CLASSES = (
    {"name": "high-priority", "value": 1000},
    {"name": "batch-priority", "value": -100, "preemptionPolicy": "Never"},
)


def body(pod: object, **request: Any) -> bytes:
    """The bytes that an API server would send for the creation of this pod."""
    sent = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": ["a", "b"]},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return json.dumps({"apiVersion": review.API_VERSION, "kind": review.KIND, "request": sent | request}).encode()


def parsed(pod: object, **request: Any) -> Review:
    found = review.parse(body(pod, **request))
    assert isinstance(found, Review), found
    return found


def settings(document: Mapping[str, Any] | None = None) -> Settings:
    return settings_load.load(json.dumps({"apiVersion": API_VERSION, "kind": "Policy", **(document or {})}))


def view(
    *,
    policy: Mapping[str, Any] | None = None,
    namespace: Mapping[str, Any] | None = None,
    namespace_known: bool = True,
    nodes: Sequence[Mapping[str, Any]] = NODES,
    classes: Sequence[Mapping[str, Any]] = CLASSES,
    objects: Sequence[Mapping[str, Any]] = (),
) -> View:
    """A cluster with a namespace `shop`, nodes of both capacities and our PriorityClasses, unless told otherwise."""
    made: list[Json] = [_node(index, node) for index, node in enumerate(nodes)]
    made += [_class(it) for it in classes]
    if namespace_known:
        made.append({"kind": "Namespace", "metadata": {"name": "shop", **(namespace or {})}})
    return snapshot.of_objects([*made, *objects], settings(policy))


def _node(index: int, node: Mapping[str, Any]) -> Json:
    metadata = {"name": node.get("name", f"node-{index}"), "labels": node.get("labels", {})}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": node.get("taints", [])}}


def _class(given: Mapping[str, Any]) -> Json:
    rest = {key: value for key, value in given.items() if key != "name"}
    return {"kind": "PriorityClass", "metadata": {"name": given["name"]}, **rest}

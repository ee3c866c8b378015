"""Builders with overrides for what a scheduler asks and what the extender knows."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from extender import view
from extender.view import Move, NodeFacts, View
from extender.wire import Pod
from policy import settings_load
from policy.capacity import CapacityType
from policy.settings import Settings
from policy.signal_table import Kind

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
PREFIX = "scheduler.alpha.kubernetes.io/"
CAPACITY = "node.kubernetes.io/capacity"
SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND
Json = dict[str, Any]


def settings(text: str = "") -> Settings:
    return settings_load.load(f"apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n{text}")


def a_view(*moves: Move, said: str = "", nodes: dict[str, NodeFacts] | None = None, **parts: Any) -> View:
    waiting = {("shop", "rs-1"): moves} if moves else {}
    return replace(view.empty(settings(said)), moves=waiting, nodes=nodes or {}, **parts)


def move(name: str = "m-1", target: str = "c", **more: Any) -> Move:
    made: Json = {
        "key": ("shop", name),
        "id": name,
        "owner_kind": "ReplicaSet",
        "pod_name": "web-1",
        "pod_uid": "old-1",
        "target": target,
        "started": NOW - timedelta(seconds=5),
    }
    return Move(**{**made, **more})


def facts(kind: CapacityType = ON_DEMAND, sign: Kind | None = None, metric: float = 0.5) -> NodeFacts:
    return NodeFacts(kind, sign, metric)


def owner(kind: str = "ReplicaSet", uid: str = "rs-1") -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": uid, "controller": True}


def pod(*, spec: Json | None = None, conditions: tuple[Json, ...] = (), **metadata: Any) -> Json:
    made = {
        "name": "web-2",
        "namespace": "shop",
        "uid": "new-1",
        "creationTimestamp": "2026-11-16T11:59:58Z",
        "ownerReferences": [owner()],
    }
    return {
        "metadata": {**made, **metadata},
        "spec": {"containers": [{"name": "main", "image": "app:1"}], **(spec or {})},
        "status": {"phase": "Pending", "conditions": list(conditions)},
    }


def parsed(made: Json) -> Pod:
    from extender import wire

    return wire.parse(json.dumps({"Pod": made, "NodeNames": []}).encode()).pod


def annotated(**keys: str) -> Json:
    return {PREFIX + key.replace("_", "-"): value for key, value in keys.items()}


def preferring(*values: str, operator: str = "In") -> Json:
    rule = {"key": CAPACITY, "operator": operator, "values": list(values)}
    term = {"weight": 10, "preference": {"matchExpressions": [rule]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def requiring(key: str, *values: str) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def node(name: str, **labels: str) -> Json:
    said = {key.replace("__", "/"): value for key, value in labels.items()}
    return {"metadata": {"name": name, "labels": said}, "spec": {}, "status": {"allocatable": {"cpu": "4"}}}


def by_names(made: Json, *names: str) -> bytes:
    """As a scheduler asks that is told `nodeCacheCapable`."""
    return json.dumps({"Pod": made, "Nodes": None, "NodeNames": list(names)}).encode()


def whole(made: Json, *nodes: Json) -> bytes:
    """As a scheduler asks otherwise."""
    return json.dumps({"Pod": made, "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}).encode()

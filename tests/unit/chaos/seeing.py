"""What a watch would have told."""

from typing import Any

from tests.chaos.watching import Request, Seen


def pod(
    uid: str,
    version: int,
    *,
    name: str = "web-0",
    at: float = 0.0,
    gone: bool = False,
    evicted: bool = False,
    **more: Any,
) -> Seen:
    """A Ready pod; `owned`, `original` and `terminating` say otherwise."""
    conditions = [{"type": "Ready", "status": "True" if more.get("ready", True) else "False"}]
    if evicted:
        conditions.append({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"})
    original = more.get("original")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "chaos",
        "uid": uid,
        "resourceVersion": str(version),
        "labels": {"app": "web"},
        "annotations": {"scheduler.alpha.kubernetes.io/original-pod": original} if original else {},
        "ownerReferences": [{"controller": True}] if more.get("owned", True) else [],
        **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if more.get("terminating") else {}),
    }
    return Seen(at, "pods", {"metadata": metadata, "spec": {}, "status": {"conditions": conditions}})


def move(name: str, version: int, *, at: float = 0.0, uid: str = "u1", **status: Any) -> Seen:
    """A PodMigration of pod `web-0`; the status by its keys."""
    told = {"phase": "InProgress", "intent": {"uid": uid}, "resolved": {"mode": "Evict", "workload": {"name": "web"}}}
    metadata = {"name": name, "namespace": "chaos", "uid": name, "resourceVersion": str(version)}
    spec = {"podRef": {"name": "web-0"}, "strategy": status.pop("strategy", "NodeMaintenance")}
    return Seen(at, "podmigrations", {"metadata": metadata, "spec": spec, "status": {**told, **status}})


def workload(replicas: int, version: int, *, at: float = 0.0, resource: str = "deployments") -> Seen:
    metadata = {"name": "web", "namespace": "chaos", "uid": "w", "resourceVersion": str(version)}
    return Seen(at, resource, {"metadata": metadata, "spec": {"replicas": replicas}})


def budget(allowed: int, version: int, *, at: float = 0.0, name: str = "web") -> Seen:
    metadata = {"name": name, "namespace": "chaos", "uid": name, "resourceVersion": str(version)}
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return Seen(
        at, "poddisruptionbudgets", {"metadata": metadata, "spec": spec, "status": {"disruptionsAllowed": allowed}}
    )


def request(at: float, who: str, verb: str, resource: str, *, name: str = "x", code: int = 200) -> Request:
    return Request(at, "spotshift-descheduler", who, verb, resource, "chaos", name, code)

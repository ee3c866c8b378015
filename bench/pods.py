"""Pods as a real API server sends them: about 6 kB of JSON each, most of it never read by anybody.

Two containers with probes, environment and mounts, an owner, five conditions, a projected token volume with a random
name, tolerations, node and pod affinity, a spread constraint and managedFields. Pods of one template differ in
what siblings differ in: name, UID, node, address, times, container ids and the name of the token volume.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

Object = dict[str, Any]
START = datetime(2026, 1, 1, tzinfo=UTC)
BORN = "2026-01-01T00:00:00Z"
"""The same as the API writes it."""
NODES = 5000


def pod(template: int, number: int, rng: random.Random) -> Object:
    """One pod of a template."""
    app = f"service-{template}"
    suffix = f"{rng.randrange(36**5):05x}"[:5]
    name = f"{app}-7c9d8b6f5-{suffix}{number}"
    token = f"kube-api-access-{rng.randrange(10**5):05d}"
    born = START + timedelta(seconds=rng.randrange(10_000_000))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(app, name, template, number, born, rng),
        "spec": _spec(app, template, token, rng),
        "status": _status(app, born, rng),
    }


def body(pods: int, *, templates: int, seed: int = 1) -> bytes:
    """A PodList with that many pods, in the order of their names, as the server would answer without a limit."""
    rng = random.Random(seed)
    items = [pod(number % templates, number, rng) for number in range(pods)]
    return _list(items, "")


def pages(pods: int, *, templates: int, page_size: int, seed: int = 1) -> Iterator[bytes]:
    """The same list in pages."""
    rng = random.Random(seed)
    for first in range(0, pods, page_size):
        last = min(pods, first + page_size)
        items = [pod(number % templates, number, rng) for number in range(first, last)]
        yield _list(items, str(last) if last < pods else "")


def _list(items: list[Object], token: str) -> bytes:
    metadata = {"resourceVersion": "90000000"} | ({"continue": token} if token else {})
    return msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})


def _metadata(app: str, name: str, template: int, number: int, born: datetime, rng: random.Random) -> Object:
    return {
        "name": name,
        "generateName": f"{app}-7c9d8b6f5-",
        "namespace": f"team-{template % 40}",
        "uid": _uid(rng),
        "resourceVersion": str(40_000_000 + number),
        "generation": 1,
        "creationTimestamp": _time(born),
        "labels": {
            "app.kubernetes.io/name": app,
            "app.kubernetes.io/version": f"1.{template % 30}.0",
            "app.kubernetes.io/part-of": "shop",
            "pod-template-hash": "7c9d8b6f5",
            "team": f"team-{template % 40}",
        },
        "annotations": {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "9090",
            "checksum/config": f"{template:064x}",
        },
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{app}-7c9d8b6f5",
                "uid": f"00000000-0000-4000-8000-{template:012d}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _managed(born),
    }


def _managed(born: datetime) -> list[Object]:
    container: Object = {
        ".": {},
        "f:env": {".": {}, 'k:{"name":"LOG_LEVEL"}': {".": {}, "f:name": {}, "f:value": {}}},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
    }
    condition: Object = {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
    kinds = ("ContainersReady", "Initialized", "Ready")
    return [
        {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "apiVersion": "v1",
            "time": _time(born),
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:pod-template-hash": {}}, "f:generateName": {}},
                "f:spec": {"f:containers": {'k:{"name":"app"}': container}, "f:dnsPolicy": {}},
            },
        },
        {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "time": _time(born),
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:conditions": {f'k:{{"type":"{kind}"}}': condition for kind in kinds}}},
            "subresource": "status",
        },
    ]


def _spec(app: str, template: int, token: str, rng: random.Random) -> Object:
    same_app = {"matchLabels": {"app.kubernetes.io/name": app}}
    spot = {"key": "node.kubernetes.io/capacity", "operator": "In", "values": ["spot"]}
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
            {"name": token, "projected": {"sources": _token_sources(), "defaultMode": 420}},
        ],
        "containers": [_container("app", template, token), _container("proxy", template, token)],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": app,
        "serviceAccount": app,
        "nodeName": _node(rng),
        "securityContext": {"runAsNonRoot": True, "fsGroup": 2000},
        "schedulerName": "default-scheduler",
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "preference": {"matchExpressions": [spot]}}
                ]
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 50,
                        "podAffinityTerm": {"labelSelector": same_app, "topologyKey": "kubernetes.io/hostname"},
                    }
                ]
            },
        },
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": same_app,
            }
        ],
    }


def _token_sources() -> list[Object]:
    root = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": root},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]


def _container(name: str, template: int, token: str) -> Object:
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    return {
        "name": name,
        "image": f"registry.example.com/shop/{name}:1.{template % 30}.0",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu-central-1"}],
        "resources": {
            "limits": {"memory": f"{256 + template % 16}Mi"},
            "requests": {"cpu": f"{100 + template % 400}m", "memory": f"{256 + template % 16}Mi"},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/config", "readOnly": True},
            {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "readinessProbe": probe,
        "imagePullPolicy": "IfNotPresent",
    }


def _status(app: str, born: datetime, rng: random.Random) -> Object:
    ready = born + timedelta(seconds=rng.randrange(2, 40))
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    address = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"
    return {
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": _time(ready if "Ready" in kind else born),
            }
            for kind in kinds
        ],
        "hostIP": f"10.0.{rng.randrange(256)}.{rng.randrange(256)}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _time(born),
        "containerStatuses": [_container_status(name, app, ready, rng) for name in ("app", "proxy")],
        "qosClass": "Burstable",
    }


def _container_status(name: str, app: str, ready: datetime, rng: random.Random) -> Object:
    return {
        "name": name,
        "state": {"running": {"startedAt": _time(ready)}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": f"registry.example.com/shop/{name}:1.0.0",
        "imageID": f"registry.example.com/shop/{name}@sha256:{len(app):064x}",
        "containerID": f"containerd://{rng.getrandbits(256):064x}",
        "started": True,
    }


def _node(rng: random.Random) -> str:
    return f"ip-10-0-{rng.randrange(NODES)}.eu-central-1.compute.internal"


def _uid(rng: random.Random) -> str:
    bits = f"{rng.getrandbits(128):032x}"
    return f"{bits[:8]}-{bits[8:12]}-{bits[12:16]}-{bits[16:20]}-{bits[20:]}"


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")

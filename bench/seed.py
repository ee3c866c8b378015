"""Fills a real control plane with a large cluster in a minute.

A few objects are created through the API, so that they are stored as a real apiserver stores them; all others are
copies of those bytes in etcd, with names, UIDs and numbers replaced by others of the same length. The apiserver
notices them as it notices every write.
"""

from __future__ import annotations

import base64
import itertools
import random
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import urllib3

from bench import pods
from policy import keys
from policy.values import Spot
from testbed import objects
from testbed.api import JSON_PATCH, Api
from testbed.bed import ControlPlane
from testbed.pytest_plugin import make_namespace

NAMESPACES = 10
BASES = 40
"""Pods made through the API, each with other requests."""
PODS_PER_TEMPLATE = 50
SPOT_BASE = "node-99999"
"""The spot node that others are copied from; of the same length as every name."""
IN_ONE_WRITE = 100
"""etcd takes at most 128 in one transaction."""
THREADS = 4
IDLE = ("kube-controller-manager", "kube-scheduler", "kwok", "metrics-server")
"""Not needed for pods that never change, and they would spend the measured machine on them."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a cluster."""

    nodes: int
    pods: int

    @property
    def templates(self) -> int:
        """Deployments with one ReplicaSet each."""
        return max(1, self.pods // PODS_PER_TEMPLATE)


def fill(bed: ControlPlane, sizes: Sizes) -> None:
    """Everything, and nothing but the apiserver runs afterwards."""
    kube = bed.api()
    for number in range(NAMESPACES):
        make_namespace(kube, _namespace(number))
    for name in IDLE:
        bed.stop(name)
    etcd = Etcd(f"http://127.0.0.1:{bed.ports['etcd']}")
    bases = _bases(kube, etcd, min(BASES, sizes.templates))
    rng = random.Random(1)
    etcd.put(_nodes(bases, sizes))
    etcd.put(_workloads(bases, sizes))
    etcd.put(_pods(bases, sizes, rng))
    for key in bases.made:
        etcd.delete(key)


@dataclass(frozen=True, slots=True)
class Bases:
    """Stored objects to copy from."""

    node: bytes
    spot_node: bytes
    deployment: bytes
    replica_set: bytes
    pods: tuple[bytes, ...]
    made: tuple[str, ...]
    """Their keys."""


class Etcd:
    """Its JSON interface."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(maxsize=THREADS)

    def get(self, key: str) -> bytes:
        """The bytes under a key."""
        return base64.b64decode(self._ask("kv/range", {"key": _coded(key.encode())})["kvs"][0]["value"])

    def delete(self, key: str) -> None:
        """Take a key out."""
        self._ask("kv/deleterange", {"key": _coded(key.encode())})

    def put(self, entries: Iterable[tuple[str, bytes]]) -> None:
        """Write many, some at a time."""
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(self._write, _batches(entries)))

    def _write(self, entries: Sequence[tuple[str, bytes]]) -> None:
        puts = [{"requestPut": {"key": _coded(key.encode()), "value": _coded(value)}} for key, value in entries]
        self._ask("kv/txn", {"success": puts})

    def _ask(self, what: str, body: Mapping[str, Any]) -> Any:
        answer = self._pool.request("POST", f"{self._url}/v3/{what}", body=msgspec.json.encode(body))
        if answer.status != 200:
            raise RuntimeError(f"etcd refused {what}: {answer.data[:300]!r}")
        return msgspec.json.decode(answer.data)


# ---- what is copied


def _bases(kube: Api, etcd: Etcd, count: int) -> Bases:
    for name in (_node(0), SPOT_BASE):
        _base_node(kube, name, spot=name == SPOT_BASE)
    deployment = objects.deployment(_app(0), replicas=PODS_PER_TEMPLATE)
    made = kube.create("deployments", deployment, _namespace(0))
    replica_set = deployment | {"kind": "ReplicaSet"}
    replica_set["metadata"] = {
        "name": f"{_app(0)}-7c9d8b6f5",
        "ownerReferences": [_owner("Deployment", _app(0), made["metadata"]["uid"])],
    }
    kube.create("replicasets", replica_set, _namespace(0))
    numbers = range(count)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda number: _base_pod(kube, number), numbers))
    made_pods = [f"/registry/pods/{_namespace(0)}/{_pod_name(number, 0)}" for number in numbers]
    others = (
        f"/registry/minions/{_node(0)}",
        f"/registry/minions/{SPOT_BASE}",
        f"/registry/deployments/{_namespace(0)}/{_app(0)}",
        f"/registry/replicasets/{_namespace(0)}/{_app(0)}-7c9d8b6f5",
    )
    stored = [etcd.get(key) for key in others]
    uid = made["metadata"]["uid"].encode()
    return Bases(
        stored[0],
        stored[1].replace(SPOT_BASE.encode(), _node(0).encode()),
        stored[2].replace(uid, _uid("d", 0).encode()),
        stored[3].replace(uid, _uid("d", 0).encode()),
        tuple(etcd.get(key) for key in made_pods),
        (*made_pods, *others),
    )


def _base_node(kube: Api, name: str, *, spot: bool) -> None:
    node = objects.node(name, spot=spot, cpu="16", memory="64Gi", pods="110")
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "KubeletReady",
    }
    kube.create("nodes", node | {"status": node["status"] | {"conditions": [ready]}})
    kube.patch("nodes", name, [{"op": "add", "path": "/spec/taints", "value": []}], kind=JSON_PATCH)


def _base_pod(kube: Api, number: int) -> None:
    made = pods.pod(number, 0, random.Random(number))
    meta, status = made["metadata"], made.pop("status")
    owner = _owner("ReplicaSet", f"{_app(number)}-7c9d8b6f5", _uid("r", number))
    labels = {**meta["labels"], "app.kubernetes.io/name": _app(number), "team": _namespace(0)}
    wish = {keys.under().spot: Spot.AVOID.value} if number % 2 else {}
    made["metadata"] = {
        "name": _pod_name(number, 0),
        "generateName": f"{_app(number)}-7c9d8b6f5-",
        "labels": labels,
        "annotations": meta["annotations"] | wish,
        "ownerReferences": [owner],
    }
    made["spec"] |= {"nodeName": _node(0), "serviceAccountName": "default", "serviceAccount": "default"}
    kube.create("pods", made, _namespace(0))
    kube.patch("pods", made["metadata"]["name"], {"status": status}, _namespace(0), subresource="status")


def _owner(kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


# ---- copies


def _nodes(bases: Bases, sizes: Sizes) -> Iterator[tuple[str, bytes]]:
    for number in range(1, sizes.nodes + 1):
        changes = {_node(0): _node(number), "zone-a": f"zone-{'abc'[number % 3]}"}
        base = bases.node if number % 2 else bases.spot_node
        yield f"/registry/minions/{_node(number)}", _copied(base, changes, _uid("n", number))


def _workloads(bases: Bases, sizes: Sizes) -> Iterator[tuple[str, bytes]]:
    for number in range(1, sizes.templates + 1):
        space = _namespace(number % NAMESPACES)
        changes = {_app(0): _app(number), _namespace(0): space, _uid("d", 0): _uid("d", number)}
        deployment = _copied(bases.deployment, changes, None)
        yield f"/registry/deployments/{space}/{_app(number)}", deployment
        replica_set = _copied(bases.replica_set, changes, _uid("r", number))
        yield f"/registry/replicasets/{space}/{_app(number)}-7c9d8b6f5", replica_set


def _pods(bases: Bases, sizes: Sizes, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Spread over the nodes one after the other, so that all are about equally full; odd templates avoid spot, and
    odd nodes are not spot.
    """
    nodes = [itertools.cycle(range(2 - odd, sizes.nodes + 1, 2)) for odd in range(2)]
    for number in range(sizes.pods):
        template = number % sizes.templates + 1
        base = template % len(bases.pods)
        space, name = _namespace(template % NAMESPACES), _pod_name(template, number)
        changes = {
            _pod_name(base, 0): name,
            _app(base): _app(template),
            _namespace(0): space,
            _node(0): _node(next(nodes[template % 2])),
            _uid("r", base): _uid("r", template),
        }
        uid = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        yield f"/registry/pods/{space}/{name}", _copied(bases.pods[base], changes, uid)


def _copied(stored: bytes, changes: Mapping[str, str], uid: str | None) -> bytes:
    """Lengths are part of the stored form, so nothing may become longer or shorter."""
    if uid is not None:
        changes = {**changes, _own_uid(stored): uid}
    for old, new in changes.items():
        assert len(old) == len(new)
        stored = stored.replace(old.encode(), new.encode())
    return stored


def _own_uid(stored: bytes) -> str:
    """The first UID in an object is its own: field 5 of the metadata, before owners and everything else."""
    at = stored.index(b"\x2a\x24") + 2
    return stored[at : at + 36].decode()


def _namespace(number: int) -> str:
    return f"team-{number:02}"


def _node(number: int) -> str:
    return f"node-{number:05}"


def _app(number: int) -> str:
    return f"service-{number:05}"


def _pod_name(template: int, number: int) -> str:
    return f"{_app(template)}-7c9d8b6f5-{number:07}"


def _uid(kind: str, number: int) -> str:
    return f"00000000-0000-4000-8{ord(kind):03}-{number:012}"


def _coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _batches(entries: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    rest = iter(entries)
    while batch := list(islice(rest, IN_ONE_WRITE)):
        yield batch

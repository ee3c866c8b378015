"""Pods of one template share one object, so memory grows with templates and not only with pods.

A pod is decoded into a shallow wire form in which the large shared parts stay raw bytes. What is unique to the pod is
taken out of that form; the rest is encoded again and serves as key: equal bytes, equal object, and a template that is
already known is not even decoded. Because the shared object is decoded *from the key*, two pods can share one only if
everything in it is the same. Nothing holds a shared object but the pods themselves (weak values), so a template goes
with its last pod.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

import msgspec

from cluster.meta import ObjectMeta, OwnerReference
from cluster.pod import Pod, PodSpec, PodStatus
from cluster.tolerant import Tolerant
from cluster.wire import MetaWire, PodWire, SpecWire, StatusWire

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""A copy of the whole object in an annotation, kilobytes that nobody here reads."""

V = TypeVar("V")


class StringMap(dict[str, str]):
    """Labels or annotations that many pods point to. Typed as a read-only Mapping wherever it appears."""

    __slots__ = ("__weakref__",)


class Pool(Generic[V]):
    """Equal bytes give the same object for as long as anybody holds it.

    Two threads that meet an unknown key at the same moment may each build their own; that costs a little memory and
    nothing else.
    """

    def __init__(self, build: Callable[[bytes], V]) -> None:
        self._build = build
        self._known: WeakValueDictionary[bytes, V] = WeakValueDictionary()

    def get(self, key: bytes) -> V:
        """The object these bytes stand for."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._build(key)
        return found

    def __len__(self) -> int:
        return len(self._known)


class Interner:
    """Turns shallow pods into pods that share. One per client; safe to use from many threads."""

    def __init__(self) -> None:
        self._maps = Pool(_string_map)
        self._owners = Pool(Tolerant(OwnerReference).decode)
        self._specs = Pool(Tolerant(PodSpec).decode)
        self._statuses = Pool(Tolerant(PodStatus).decode)
        self._encode = msgspec.json.Encoder().encode

    def pod(self, wire: PodWire) -> Pod:
        """The pod; `wire` is used up."""
        spec, status = wire.spec, wire.status
        meta = self._meta(wire.metadata)
        node, hostname, claims = _take_placement(spec, meta.name)
        start, ready = _take_times(status)
        if start == meta.creation_timestamp:
            start = meta.creation_timestamp  # equal in most pods: one object instead of two
        return Pod(
            meta,
            self._specs.get(self._encode(spec)),
            self._statuses.get(self._encode(status)),
            node,
            hostname,
            claims,
            start,
            ready,
        )

    def sizes(self) -> dict[str, int]:
        """How many distinct objects are alive, by kind: the number of templates in use, for a gauge."""
        return {
            "maps": len(self._maps),
            "owners": len(self._owners),
            "specs": len(self._specs),
            "statuses": len(self._statuses),
        }

    def _meta(self, wire: MetaWire) -> ObjectMeta:
        owners = self._owners
        return ObjectMeta(
            wire.name,
            sys.intern(wire.namespace),
            wire.uid,
            wire.resource_version,
            wire.generation,
            wire.creation_timestamp,
            wire.deletion_timestamp,
            wire.deletion_grace_period_seconds,
            self._maps.get(bytes(wire.labels)),
            self._maps.get(bytes(wire.annotations)),
            tuple([owners.get(bytes(owner)) for owner in wire.owner_references]),
            wire.finalizers,
        )


def _take_placement(spec: SpecWire, pod_name: str) -> tuple[str, str, tuple[str, ...]]:
    """Node, host name and claims, removed from the form so that the rest is the same for all siblings."""
    node, hostname = sys.intern(spec.node_name), spec.hostname
    spec.node_name = spec.hostname = ""
    claims: list[str] = []
    for volume in spec.volumes:
        if volume.ephemeral is not None:
            claims.append(f"{pod_name}-{volume.name}")
            continue
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name)
            volume.persistent_volume_claim.claim_name = ""
        if volume.host_path is None and not bytes(volume.empty_dir):
            volume.name = ""
    return node, pod_name if hostname == pod_name else hostname, tuple(claims)


def _take_times(status: StatusWire) -> tuple[datetime | None, datetime | None]:
    """Start time and the time of readiness, removed from the form with all other times."""
    start, ready = status.start_time, None
    status.start_time = None
    for condition in status.conditions:
        if condition.type == "Ready" and condition.status == "True":
            ready = condition.last_transition_time
        condition.last_transition_time = None
    return start, ready


_MAP = Tolerant(dict[str, str])


def _string_map(key: bytes) -> StringMap:
    found = StringMap(_MAP.decode(key)) if key not in _EMPTY else StringMap()
    found.pop(LAST_APPLIED, None)
    return found


_EMPTY = (b"", b"null")

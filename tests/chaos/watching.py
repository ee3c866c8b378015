"""Sees everything that happens in the cluster, straight from the apiserver and past the product.

One thread per resource lists, watches and resumes from the version it has seen last. Where an apiserver that was
restarted no longer knows that version, the versions of PodMigrations between are asked for elsewhere. What they saw
is taken from one queue by one thread.
"""

import json
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import urllib3

from testbed.api import Api, ApiError, Object, path
from tests.chaos.past import Past
from tests.chaos.product import SYSTEM

RESOURCES: Final = (
    "pods",
    "nodes",
    "deployments",
    "statefulsets",
    "poddisruptionbudgets",
    "podmigrations",
    "leases",
)
PAUSE_SECONDS: Final = 0.3
GONE: Final = 410
WATCH_SECONDS: Final = 300
ACCOUNTS: Final = f"system:serviceaccount:{SYSTEM}:"


@dataclass(frozen=True, slots=True)
class Seen:
    """One version of an object, or its end."""

    at: float
    resource: str
    object: Object
    gone: bool = False

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.object["metadata"].get("namespace", ""))

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])

    @property
    def version(self) -> int:
        """Versions of all resources are counted together: what has the lower one came first."""
        return int(self.object["metadata"]["resourceVersion"])


@dataclass(slots=True)
class Watcher:
    """Use it from one thread; the others only fill its queue."""

    kube: Api
    past: Past
    seen: queue.SimpleQueue[Seen] = field(default_factory=queue.SimpleQueue)
    _last: dict[str, int] = field(default_factory=dict)
    """The version seen last, by resource."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _failed: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)

    def start(self) -> None:
        for resource in RESOURCES:
            threading.Thread(target=self._follow, args=(resource,), daemon=True, name=f"watch-{resource}").start()

    def stop(self) -> None:
        self._ended.set()

    def new(self) -> Iterator[Seen]:
        """What was seen since the last call."""
        while not self.seen.empty():
            yield self.seen.get()

    def failures(self) -> Iterator[str]:
        """Watches that ended since the last call: whoever does not see cannot say that all is well."""
        while not self._failed.empty():
            yield self._failed.get()

    def _follow(self, resource: str) -> None:
        try:
            self._repeat(resource)
        except Exception as unexpected:  # noqa: BLE001 - the outermost place of a thread; it is told
            self._failed.put(f"nobody watches {resource} any more: {unexpected!r}")

    def _repeat(self, resource: str) -> None:
        lost = True
        while not self._ended.is_set():
            try:
                if lost:
                    self._list(resource)
                lost = self._watch(resource)
            except (ApiError, urllib3.exceptions.HTTPError, json.JSONDecodeError) as failed:
                lost = lost or (isinstance(failed, ApiError) and failed.status == GONE)
                self._ended.wait(PAUSE_SECONDS)

    def _list(self, resource: str) -> None:
        """All that there are; and what they were meanwhile, if they were seen before."""
        found, last = self.kube.request("GET", path(resource)), self._last.get(resource)
        for item in found["items"]:
            missed = self.past.between(item, last) if last and resource == "podmigrations" else ()
            for version in (*missed, item):
                self.seen.put(Seen(time.time(), resource, version))
        self._last[resource] = int(found["metadata"]["resourceVersion"])

    def _watch(self, resource: str) -> bool:
        """Until the stream ends; whether the version seen last is no longer known."""
        for event in self.kube.watch(resource, seconds=WATCH_SECONDS, since=str(self._last[resource])):
            if event["type"] == "ERROR":
                return bool(event["object"].get("code") == GONE)
            self._last[resource] = int(event["object"]["metadata"]["resourceVersion"])
            if event["type"] != "BOOKMARK":
                self.seen.put(Seen(time.time(), resource, event["object"], event["type"] == "DELETED"))
            if self._ended.is_set():
                break
        return False


@dataclass(frozen=True, slots=True)
class Request:
    """A line of the audit log about a process of the product."""

    at: float
    """When the apiserver had it."""
    account: str
    credential: str
    """Tells apart two processes of one account."""
    verb: str
    resource: str
    """With its subresource."""
    namespace: str
    name: str
    code: int

    @property
    def writes(self) -> bool:
        return self.verb in {"create", "update", "patch", "delete", "deletecollection"}


@dataclass(slots=True)
class Audit:
    """Follows the audit log, also when it is begun anew."""

    log: Path
    _position: int = 0
    _rest: bytes = b""

    def new(self) -> Iterator[Request]:
        """Requests of the product since the last call."""
        if self.log.stat().st_size < self._position:
            self._position, self._rest = 0, b""
        with self.log.open("rb") as lines:
            lines.seek(self._position)
            read = lines.read()
            self._position = lines.tell()
        *whole, self._rest = (self._rest + read).split(b"\n")
        for line in whole:
            if ACCOUNTS.encode() in line:
                found: dict[str, Any] = json.loads(line)
                if found["stage"] == "ResponseComplete" and found["user"]["username"].startswith(ACCOUNTS):
                    yield _request(found)


def _request(found: dict[str, Any]) -> Request:
    ref, user = found.get("objectRef", {}), found["user"]
    part = f"/{ref['subresource']}" if ref.get("subresource") else ""
    credential = user.get("extra", {}).get("authentication.kubernetes.io/credential-id", [""])[0]
    return Request(
        datetime.fromisoformat(found["requestReceivedTimestamp"]).timestamp(),
        user["username"].removeprefix(ACCOUNTS),
        credential.removeprefix("JTI="),
        found["verb"],
        f"{ref.get('resource', '')}{part}",
        ref.get("namespace", ""),
        ref.get("name", ""),
        found.get("responseStatus", {}).get("code", 0),
    )

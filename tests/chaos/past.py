"""Versions of PodMigrations that a watch has missed, from etcd, which keeps them for some minutes.

An apiserver that has just started watches from where it began itself: what was written a moment before, it tells no
watcher. Custom resources are kept as JSON, and the revision of a key is the version of its object.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import urllib3

from testbed.api import Object
from testbed.bed import ControlPlane

FOLDER = "/registry/spotshift.dev/podmigrations"


@dataclass(frozen=True, slots=True)
class Past:
    """Of one control plane."""

    address: str

    @classmethod
    def of(cls, running: ControlPlane) -> "Past":
        return cls(f"http://127.0.0.1:{running.ports['etcd']}")

    def between(self, found: Object, since: int) -> list[Object]:
        """Every version of it before this one and after that, oldest first."""
        return list(self._back(found, since))[::-1]

    def _back(self, found: Object, since: int) -> Iterator[Object]:
        key = f"{FOLDER}/{found['metadata']['namespace']}/{found['metadata']['name']}"
        version = int(found["metadata"]["resourceVersion"])
        while (earlier := self._at(key, version - 1)) is not None:
            version = int(earlier["metadata"]["resourceVersion"])
            if version <= since or earlier["metadata"]["uid"] != found["metadata"]["uid"]:
                return
            yield earlier

    def _at(self, key: str, revision: int) -> Object | None:
        """As it was then; None if it was not there, or if that is forgotten."""
        asked = {"key": base64.b64encode(key.encode()).decode(), "revision": revision}
        answer = urllib3.request("POST", f"{self.address}/v3/kv/range", json=asked, timeout=5.0, retries=False)
        kept: list[dict[str, Any]] = answer.json().get("kvs", []) if answer.status == 200 else []
        if not kept:
            return None
        made: Object = json.loads(base64.b64decode(kept[0]["value"]))
        made["metadata"]["resourceVersion"] = kept[0]["mod_revision"]
        return made

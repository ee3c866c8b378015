"""The requests about copies of pods that have no controller: which pod is the copy, is looked at on the spot.

A copy is known by the UID of its original, which it carries, and never by its name alone: two pods may ask for the
same name, and each must find its own copy Ready before it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster import errors
from cluster.client import Client
from cluster.objects import Pod, PodMigration
from cluster.resources import PODS
from descheduler.migration import copying
from descheduler.migration.actions import CreateCopy, RemoveCopy, SeekCopy
from descheduler.migration.outcomes import MANAGER, REQUEST_SECONDS, Done, Failure, Outcome, Overtaken
from policy import values
from policy.keys import Keys

Json = dict[str, Any]


class Copies:
    """One per process."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def create(self, migration: PodMigration, action: CreateCopy) -> Outcome:
        """Make the copy, unless it is there already."""
        namespace, mark = migration.metadata.namespace, values.label_for_node(migration.metadata.name)
        seen = self._get(namespace, action.source)
        if seen["metadata"]["uid"] != action.uid:
            return Overtaken("another pod has its name", gone=True)
        if (seen["metadata"].get("labels") or {}).get(self._keys.migration_id) != mark:
            return Overtaken("the pod does not carry the marks of this move any more")
        body = copying.of(seen, action.name, mark, self._keys)
        try:
            made: Json = self._client.create(
                PODS, body, namespace=namespace, field_manager=MANAGER, timeout=REQUEST_SECONDS
            )
        except errors.AlreadyExists:
            return self._taken(namespace, action, body)
        except errors.Forbidden as no:
            why = "copying pods takes a right that the component recreate gives, and quota"
            return Failure(f"{no}; {why}", final=True)
        return Done(pod=self._marked(namespace, made, body))

    def serves(self, namespace: str, name: str, uid: str) -> bool:
        """Looked at once more: what was Ready a moment ago may have crashed, or lost its node."""
        pod = self._client.get(PODS, name, namespace=namespace, type=Pod, timeout=REQUEST_SECONDS)
        lives = pod.metadata.deletion_timestamp is None and not pod.terminal
        return pod.metadata.uid == uid and lives and pod.ready

    def seek(self, namespace: str, action: SeekCopy) -> Outcome:
        """Remove a copy that was asked for and that nobody has seen."""
        try:
            found = self._get(namespace, action.name)
        except errors.NotFound:
            return Done(absent=True)
        meta = found["metadata"]
        if not self._is_of(found, action.uid) or meta.get("deletionTimestamp"):
            return Done(absent=True)
        return self.remove(namespace, RemoveCopy(meta["name"], meta["uid"], meta["resourceVersion"]))

    def remove(self, namespace: str, action: RemoveCopy) -> Outcome:
        """Evict a copy, in this very version of it."""
        if action.original is not None and not self._stays(namespace, *action.original):
            return Overtaken("its original is gone, or is being moved")
        self._client.evict(
            namespace, action.name, uid=action.uid, resource_version=action.version, timeout=REQUEST_SECONDS
        )
        return Done()

    def _stays(self, namespace: str, name: str, uid: str, mark: str) -> bool:
        """A move relies on its copy only while the original carries its mark: without it, it does not evict."""
        meta = self._get(namespace, name)["metadata"]
        marked = (meta.get("labels") or {}).get(self._keys.migration_id) == mark
        return meta["uid"] == uid and not marked and not meta.get("deletionTimestamp")

    def _taken(self, namespace: str, action: CreateCopy, body: Json) -> Outcome:
        """Its name has a bearer: an earlier request of ours that was answered too late, or somebody else's pod."""
        found = self._get(namespace, action.name)
        if not self._is_of(found, action.uid):
            return Failure(f"pod {action.name} is no copy of {action.source}", counts=False, taken=True)
        self._marked(namespace, found, body)
        return Overtaken("the copy is there already")

    def _is_of(self, pod: Mapping[str, Any], uid: str) -> bool:
        """Whether it is the copy of this original. A webhook that has not heard of the move yet takes such marks off,
        and then it is ours if we made it.
        """
        meta = pod["metadata"]
        said = (meta.get("annotations") or {}).get(self._keys.original_pod)
        by_us = any(it.get("manager") == MANAGER for it in meta.get("managedFields") or ())
        return bool(said == uid if said else by_us)

    def _marked(self, namespace: str, pod: Json, body: Json) -> Pod | None:
        """With what tells it from others, in this very version of it: whoever is second finds it taken."""
        wanted, meta = body["metadata"], pod["metadata"]
        labels = {self._keys.migration_id: wanted["labels"][self._keys.migration_id]}
        ours = (self._keys.original_pod, self._keys.original_pod_name)
        annotations = {key: wanted["annotations"][key] for key in ours}
        if labels.items() <= (meta.get("labels") or {}).items():
            return None
        version = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        return self._client.merge_patch(
            PODS,
            meta["name"],
            {"metadata": {**version, "labels": labels, "annotations": annotations}},
            namespace=namespace,
            type=Pod,
            field_manager=MANAGER,
            timeout=REQUEST_SECONDS,
        )

    def _get(self, namespace: str, name: str) -> Json:
        found: Json = self._client.get(PODS, name, namespace=namespace, timeout=REQUEST_SECONDS)
        return found

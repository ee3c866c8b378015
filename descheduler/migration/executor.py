"""Carries out what the machine asked for: one action, one request, each with its own precondition.

Nothing is decided here. An answer that says "somebody was faster" or "it is gone" is not an error: whoever asked
looks at the cluster again. Runs on many threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from cluster import errors
from cluster.client import Client
from cluster.objects import Pod, PodMigration
from cluster.resources import DEPLOYMENTS, PODMIGRATIONS, PODS, REPLICASETS, STATEFULSETS, Resource
from descheduler.migration import ownership, surge_turn
from descheduler.migration.actions import (
    Action,
    Adopt,
    CreateCopy,
    Evict,
    MarkPod,
    MarkWorkload,
    Release,
    RemoveCopy,
    Scale,
    SeekCopy,
    Write,
)
from descheduler.migration.copies import Copies
from descheduler.migration.machine import FINALIZER
from descheduler.migration.outcomes import MANAGER, REQUEST_SECONDS, Done, Failure, Outcome, Overtaken, Shown
from descheduler.reasons import Code
from policy.keys import Keys

WORKLOADS: Final[Mapping[str, Resource]] = {
    "Deployment": DEPLOYMENTS,
    "ReplicaSet": REPLICASETS,
    "StatefulSet": STATEFULSETS,
}


class Executor:
    """One per process."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._copies = Copies(client, keys)

    def perform(self, migration: PodMigration, action: Action) -> Outcome:
        """Send the one request of this action."""
        return self._translated(lambda: self._send(migration, action))

    def clear(self, namespace: str, action: MarkPod | MarkWorkload | RemoveCopy) -> Outcome:
        """Take back what belongs to no migration any more."""
        if isinstance(action, RemoveCopy):
            return self._translated(lambda: self._copies.remove(namespace, action))
        return self._translated(lambda: self._marked(namespace, action))

    def _translated(self, send: Callable[[], Outcome]) -> Outcome:
        try:
            return send()
        except (errors.NotFound, errors.Conflict) as changed:
            return Overtaken(str(changed), gone=isinstance(changed, errors.NotFound))
        except errors.DisruptionBlocked as blocked:
            return Failure(f"PDB_NO_BUDGET: {blocked}", blocked=True, budget=blocked.budget or "")
        except errors.MultipleBudgets as several:
            return Failure(f"PDB_MULTIPLE: {several}", final=True, several=True)
        except errors.Throttled as slow:
            return Failure(str(slow), counts=False, retry_after=timedelta(seconds=slow.retry_after or 0))
        except errors.ApiError as error:
            return Failure(str(error), counts=not error.retryable)

    def _send(self, migration: PodMigration, action: Action) -> Outcome:
        namespace = migration.metadata.namespace
        match action:
            case Adopt() | Release() | Write():
                return Done(self._own(migration, action))
            case MarkPod() | MarkWorkload():
                return self._marked(namespace, action)
            case Scale():
                return self._scale(namespace, action)
            case CreateCopy() | RemoveCopy() | SeekCopy():
                return self._copied(migration, action)
            case Evict():
                return self._evict(namespace, action)
        return Done()

    def _own(self, migration: PodMigration, action: Adopt | Release | Write) -> PodMigration:
        if isinstance(action, Write):
            return self._write(migration, action.status)
        others = [it for it in migration.metadata.finalizers if it != FINALIZER]
        return self._finalizers(migration, [*others, FINALIZER] if isinstance(action, Adopt) else others)

    def _finalizers(self, migration: PodMigration, wanted: list[str]) -> PodMigration:
        version = migration.metadata.resource_version
        return self._client.merge_patch(
            PODMIGRATIONS,
            migration.metadata.name,
            {"metadata": {"finalizers": wanted, "resourceVersion": version}},
            namespace=migration.metadata.namespace,
            type=PodMigration,
            field_manager=MANAGER,
            timeout=REQUEST_SECONDS,
        )

    def _write(self, migration: PodMigration, status: Mapping[str, Any]) -> PodMigration:
        full = dict(status)
        if "intent" in full:
            # A merge keeps what it is not told about; an intent is a whole.
            full["intent"] = {**dict.fromkeys(migration.status.intent or {}), **full["intent"]}
        return self._client.merge_patch(
            PODMIGRATIONS,
            migration.metadata.name,
            {"metadata": {"resourceVersion": migration.metadata.resource_version}, "status": full},
            namespace=migration.metadata.namespace,
            subresource="status",
            type=PodMigration,
            field_manager=MANAGER,
            timeout=REQUEST_SECONDS,
        )

    def _marked(self, namespace: str, action: MarkPod | MarkWorkload) -> Outcome:
        if isinstance(action, MarkPod):
            return Done(pod=self._mark(namespace, action))
        return self._mark_workload(namespace, action)

    def _mark(self, namespace: str, action: MarkPod) -> Pod:
        marks: dict[str, Any] = {"labels": dict(action.labels), "annotations": dict(action.annotations)}
        marks["resourceVersion"] = action.version
        return self._client.merge_patch(
            PODS,
            action.name,
            {"metadata": {"uid": action.uid, **{key: value for key, value in marks.items() if value}}},
            namespace=namespace,
            type=Pod,
            field_manager=MANAGER,
            timeout=REQUEST_SECONDS,
        )

    def _mark_workload(self, namespace: str, action: MarkWorkload) -> Outcome:
        answer: dict[str, Any] = self._client.merge_patch(
            WORKLOADS[action.kind],
            action.name,
            {"metadata": {"uid": action.uid, "labels": {self._keys.moving: action.value}}},
            namespace=namespace,
            field_manager=MANAGER,
            timeout=REQUEST_SECONDS,
        )
        meta, replicas = answer["metadata"], answer.get("spec", {}).get("replicas", 1)
        return Done(workload=Shown(action.uid, meta["resourceVersion"], meta.get("labels", {}), replicas))

    def _scale(self, namespace: str, action: Scale) -> Outcome:
        resource = WORKLOADS[action.kind]
        seen: dict[str, Any] = self._client.get(resource, action.name, namespace=namespace, timeout=REQUEST_SECONDS)
        if seen["metadata"]["uid"] != action.uid:
            return Overtaken("another workload has its name", gone=True)
        if ownership.is_called_off(seen, action):
            return Overtaken("the workload does not carry the label of this move")
        refusal = ownership.refusal(seen, action)
        if refusal is not None:
            return Failure(f"{Code.REPLICAS_CONTESTED}: {refusal}", final=True)
        if action.lowest is not None and not self._is_lowest(namespace, *action.lowest):
            return Overtaken("the pod that should go has changed")
        version: str = seen["metadata"]["resourceVersion"]
        if seen["spec"]["replicas"] != action.after:
            scaled = self._client.patch_scale(
                resource,
                action.name,
                namespace,
                action.after,
                field_manager=ownership.MANAGER,
                resource_version=version,
                timeout=REQUEST_SECONDS,
            )
            version = scaled.metadata.resource_version
        return Done(workload=Shown(action.uid, version, replicas=action.after))

    def _copied(self, migration: PodMigration, action: CreateCopy | RemoveCopy | SeekCopy) -> Outcome:
        match action:
            case CreateCopy():
                return self._copies.create(migration, action)
            case RemoveCopy():
                return self._copies.remove(migration.metadata.namespace, action)
            case SeekCopy():
                return self._copies.seek(migration.metadata.namespace, action)

    def _is_lowest(self, namespace: str, name: str, uid: str, cost: int) -> bool:
        """Looked at once more: between our mark and this moment somebody may have written another cost."""
        pod = self._client.get(PODS, name, namespace=namespace, type=Pod, timeout=REQUEST_SECONDS)
        return pod.metadata.uid == uid and pod.ready and surge_turn.cost_of(pod) == cost

    def _evict(self, namespace: str, action: Evict) -> Outcome:
        if action.copy is not None and not self._copies.serves(namespace, *action.copy):
            return Overtaken("the copy is not Ready any more")
        self._client.evict(
            namespace,
            action.name,
            uid=action.uid,
            resource_version=action.version,
            grace_period_seconds=action.grace_period_seconds,
            timeout=REQUEST_SECONDS,
        )
        return Done()

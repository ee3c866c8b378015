"""What each verb of the API looks like on the wire, as request values. Pure: nothing is sent from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cluster import resources
from cluster.resources import Resource
from cluster.transport import Request

Body = Mapping[str, Any] | msgspec.Struct
Query = list[tuple[str, str]]

JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
"""JSON is YAML, and every server that has server-side apply knows this name."""


_VERBS = {"POST": "create", "PUT": "replace", "PATCH": "patch", "DELETE": "delete"}


def selectors(label: str | None, field: str | None) -> Query:
    """Query parameters that narrow a list or a watch."""
    given = (("labelSelector", label), ("fieldSelector", field))
    return [(name, value) for name, value in given if value]


def page(resource: Resource, namespace: str | None, query: Query, *, metadata_only: bool) -> Request:
    """One page of a collection."""
    accept = METADATA_LIST if metadata_only else JSON
    return Request("list", "GET", resource.path(namespace), query, accept=accept)


def watch(
    resource: Resource,
    namespace: str | None,
    *,
    resource_version: str,
    narrowed: Query,
    send_initial_events: bool,
    bookmarks: bool,
    timeout_seconds: int,
    metadata_only: bool,
) -> Request:
    """A watch. Initial events end with a bookmark, so they imply bookmarks."""
    query = [("watch", "true"), ("resourceVersion", resource_version), ("timeoutSeconds", str(timeout_seconds))]
    query += narrowed
    if bookmarks or send_initial_events:
        query.append(("allowWatchBookmarks", "true"))
    if send_initial_events:
        query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
    verb = "stream" if send_initial_events else "watch"
    return Request(verb, "GET", resource.path(namespace), query, accept=METADATA if metadata_only else JSON)


def write(
    method: str,
    path: str,
    body: Body | Sequence[Mapping[str, Any]],
    *,
    verb: str = "",
    content_type: str = JSON,
    dry_run: bool = False,
    field_manager: str | None = None,
    force: bool = False,
) -> Request:
    """Create, replace, patch or apply; `verb` where method and content type do not tell what it is."""
    query: Query = []
    if dry_run:
        query.append(("dryRun", "All"))
    if field_manager:
        query.append(("fieldManager", field_manager))
    if force:
        query.append(("force", "true"))
    told = verb or ("apply" if content_type == APPLY_PATCH else _VERBS[method])
    return Request(told, method, path, query, msgspec.json.encode(body), content_type)


def delete(
    path: str,
    *,
    uid: str | None,
    resource_version: str | None,
    grace_period_seconds: int | None,
    propagation_policy: str | None,
    dry_run: bool,
) -> Request:
    """Delete one object, if it still is the one that was meant."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    options |= _delete_options(uid, resource_version, grace_period_seconds)
    if propagation_policy:
        options["propagationPolicy"] = propagation_policy
    if dry_run:  # a body makes the server ignore the query, which would delete for real
        options["dryRun"] = ["All"]
    return write("DELETE", path, options)


def evict(
    namespace: str,
    name: str,
    *,
    uid: str | None,
    resource_version: str | None,
    grace_period_seconds: int | None,
    dry_run: bool,
) -> Request:
    """Ask for an eviction of this very pod; a namesake with another UID is answered with a conflict."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": _delete_options(uid, resource_version, grace_period_seconds),
    }
    return write("POST", resources.PODS.path(namespace, name, "eviction"), body, verb="evict", dry_run=dry_run)


def scale(path: str, replicas: int, *, field_manager: str, resource_version: str | None) -> Request:
    """Set a number of replicas; the server records the manager as owner of that number."""
    body: dict[str, Any] = {"spec": {"replicas": replicas}}
    if resource_version:
        body["metadata"] = {"resourceVersion": resource_version}
    return write("PATCH", path, body, verb="scale", content_type=MERGE_PATCH, field_manager=field_manager)


def _delete_options(uid: str | None, resource_version: str | None, grace: int | None) -> dict[str, Any]:
    held = {"uid": uid, "resourceVersion": resource_version}
    preconditions = {key: value for key, value in held.items() if value}
    options: dict[str, Any] = {"preconditions": preconditions} if preconditions else {}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return options

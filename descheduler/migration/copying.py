"""The copy of a pod as the API gives it: all that its author said, nothing that others added.   Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policy import keys
from policy.keys import Keys

Json = dict[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""What kubectl applied, under the original's name."""
TOKEN_VOLUME: Final = "kube-api-access-"  # noqa: S105 - the beginning of a volume's name
ADDED: Final = ("nodeName", "priority", "preemptionPolicy", "overhead", "ephemeralContainers", "serviceAccount")
"""Set by the scheduler, by admission or by somebody who debugs; the copy gets its own."""
CONTAINERS: Final = ("containers", "initContainers")


def of(pod: Mapping[str, Any], name: str, migration: str, ours: Keys) -> Json:
    """What to create. The two marks let the webhook know the copy as the replacement of this migration."""
    meta = pod["metadata"]
    labels = _without(meta.get("labels") or {}, ours.migration_labels)
    annotations = _without(
        meta.get("annotations") or {}, (*ours.migration_annotations, LAST_APPLIED, keys.POD_DELETION_COST)
    )
    moved_before = ours.original_pod in (meta.get("annotations") or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**labels, ours.migration_id: migration},
            "annotations": {**annotations, ours.original_pod: meta["uid"], ours.original_pod_name: meta["name"]},
        },
        "spec": _spec(pod["spec"], moved_before=moved_before),
    }


def _spec(spec: Mapping[str, Any], *, moved_before: bool) -> Json:
    made = _without(spec, ADDED)
    tokens = {
        it["name"] for it in spec.get("volumes", ()) if it["name"].startswith(TOKEN_VOLUME) and "projected" in it
    }
    made["volumes"] = [it for it in spec.get("volumes", ()) if it["name"] not in tokens]
    for kind in CONTAINERS:
        if kind in spec:
            made[kind] = [_container(it, tokens) for it in spec[kind]]
    if moved_before and "affinity" in spec:
        made["affinity"] = _unhinted(spec["affinity"])
    return made


def _container(container: Mapping[str, Any], tokens: set[str]) -> Json:
    mounts = [it for it in container.get("volumeMounts", ()) if it["name"] not in tokens]
    return {**_without(container, ("volumeMounts",)), **({"volumeMounts": mounts} if mounts else {})}


def _unhinted(affinity: Mapping[str, Any]) -> Json:
    """Without the hint of the last move, which would draw the copy to the old target."""
    node = dict(affinity.get("nodeAffinity") or {})
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    node[preferred] = [it for it in node.get(preferred, ()) if not _names_nodes(it["preference"])]
    return {**affinity, "nodeAffinity": {key: value for key, value in node.items() if value}}


def _names_nodes(preference: Mapping[str, Any]) -> bool:
    return any(rule["key"] in {keys.HOSTNAME, "metadata.name"} for rule in _rules(preference))


def _rules(preference: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from preference.get("matchExpressions", ())
    yield from preference.get("matchFields", ())


def _without(found: Mapping[str, Any], left_out: tuple[str, ...]) -> Json:
    return {key: value for key, value in found.items() if key not in left_out}

"""What would the webhook do to my pod, and why: a file to reviews, and a decision to a document for people.

Pure: the command reads the files and the clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

import msgspec
import yaml

from policy import placement
from policy.documents import Plain
from policy.keys import CAPACITY
from policy.settings import Settings
from webhook import derive, selfcheck
from webhook.mutate import Decision
from webhook.objects import Meta
from webhook.reasons import Result
from webhook.review import API_VERSION, KIND, Review
from webhook.snapshot import of_objects
from webhook.view import Metadata, View, Workload

UID: Final = "00000000-0000-0000-0000-000000000000"
ASSUMED: Final = (
    f"nodes of both capacities, labelled {CAPACITY}",
    "the PriorityClasses of the settings exist",
    "the namespace has no annotations of ours, and no pod is being moved",
)
"""What is taken for granted where no cluster is given."""
PLACED: Final = "the scheduler chose the node of the pod, which is not yet known when a pod is created"
"""What is taken for granted of a pod that comes from a cluster."""


class NotReviewable(ValueError):
    """A file that holds nothing the webhook could be asked about."""


def documents(text: str) -> list[dict[str, Any]]:
    """The objects in a YAML or JSON text; a List is taken apart."""
    try:
        # PyYAML's C loader: the same data as the safe one, and a dump of a large cluster takes seconds.
        found = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotReviewable(f"not YAML or JSON: {' '.join(str(error).split())}") from error
    flat = [item for document in found if document is not None for item in _items(document)]
    if not all(isinstance(item, dict) for item in flat):
        raise NotReviewable("not a Kubernetes object, which is a mapping with apiVersion and kind")
    return flat


def assumed_cluster(settings: Settings) -> View:
    """A cluster in which every rule can show what it does."""
    nodes = [
        {"kind": "Node", "metadata": {"name": kind, "labels": {CAPACITY: kind}}} for kind in ("on-demand", "spot")
    ]
    classes = settings.placement.priority_classes
    named = [name for name in (classes.critical, classes.standard, classes.batch) if name]
    made = [{"kind": "PriorityClass", "metadata": {"name": name}, "value": 0} for name in named]
    return of_objects([*nodes, *made], settings)


def request(document: Mapping[str, Any], view: View, *, assume: bool) -> tuple[bytes, View]:
    """The review that creating this object, or its next pod, would cause; and the view that knows its workload."""
    if document.get("kind") == KIND:
        return _encoded(document), view
    metadata = _mapping(document, "metadata")
    namespace = str(metadata.get("namespace") or "default")
    if assume and namespace not in view.namespaces:
        view = replace(view, namespaces={**view.namespaces, namespace: _metadata(metadata={}, view=view)})
    pod = {**document, "spec": _unplaced(document)} if was_placed(document) else document
    if document.get("kind") != "Pod":
        pod, view = _next_pod(document, namespace, view)
    body = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "request": {
            "uid": UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": namespace,
            "operation": "CREATE",
            "object": pod,
        },
    }
    return _encoded(body), view


def was_placed(document: Mapping[str, Any]) -> bool:
    """Whether this is a pod as a cluster shows it, with the node it got after admission."""
    created = document.get("kind") == "Pod" and bool(_mapping(document, "metadata").get("uid"))
    return created and bool(_mapping(document, "spec").get("nodeName"))


def report(review: Review, decision: Decision, assumed: Sequence[str] = ()) -> dict[str, Plain]:
    """The decision in words, with its patch."""
    result = decision.result
    if decision.ops and not selfcheck.applies(decision.ops, review.body):
        result = Result.PATCH_UNAPPLICABLE
    found: dict[str, Plain] = {"decision": result.value, "because": _because(decision)}
    if decision.placed is not None:
        found["intent"] = _intent(decision.placed)
    if decision.migration_ids:
        found["migrations"] = list(decision.migration_ids)
    if assumed:
        found["assumed"] = list(assumed)
    found["warnings"] = list(decision.warnings)
    found["patch"] = [op.plain() for op in decision.ops]
    return found


def _because(decision: Decision) -> dict[str, Plain]:
    return {reason.value: reason.sentence for reason in (*decision.skips, *decision.notes)}


def _intent(placed: placement.Decision) -> dict[str, Plain]:
    return {
        name: {"value": _plain(getattr(placed.intent, name)), "from": f"{origin.level} {origin.key}"}
        for name, origin in placed.origins.items()
    }


def _plain(value: Plain) -> Plain:
    return value.value if isinstance(value, StrEnum) else value


def _items(document: Any) -> Iterator[Any]:
    is_list = isinstance(document, dict) and isinstance(document.get("items"), list)
    yield from document["items"] if is_list else (document,)


def _unplaced(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in _mapping(document, "spec").items() if key != "nodeName"}


def _next_pod(document: Mapping[str, Any], namespace: str, view: View) -> tuple[Mapping[str, Any], View]:
    """The pod that the controller of this workload would create next, owned the way it would be."""
    kind, metadata = str(document.get("kind")), _mapping(document, "metadata")
    spec = _mapping(document, "spec")
    template = _mapping(_mapping(_mapping(spec, "jobTemplate"), "spec") if kind == "CronJob" else spec, "template")
    if not template.get("spec"):
        raise NotReviewable(f"{kind} has no pod template; give a Pod, a workload or an {KIND}")
    name = str(metadata.get("name") or "unnamed")
    made_by = {"Deployment": "ReplicaSet", "CronJob": "Job"}.get(kind, kind)
    owner = {"apiVersion": "v1", "kind": made_by, "name": f"{name}-0", "uid": UID, "controller": True}
    top = Workload(
        uid=UID, kind=kind, namespace=namespace, name=name, metadata=_metadata(metadata=metadata, view=view)
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**_mapping(template, "metadata"), **_pod_name(kind, name), "ownerReferences": [owner]},
        "spec": template["spec"],
    }
    return pod, replace(view, workloads={**view.workloads, UID: top})


def _pod_name(kind: str, name: str) -> dict[str, str]:
    return {"name": f"{name}-0"} if kind == "StatefulSet" else {"generateName": f"{name}-"}


def _metadata(*, metadata: Mapping[str, Any], view: View) -> Metadata:
    return derive.metadata(msgspec.convert({"name": "", **metadata}, Meta), view.keys)


def _mapping(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name) or {}
    if not isinstance(found, dict):
        raise NotReviewable(f"{name} is not a mapping")
    return found


def _encoded(document: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotReviewable(f"not a Kubernetes object: {error}") from error

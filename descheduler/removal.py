"""What has to be written so that nothing of ours is left on objects that belong to others.   Pure.

Looks at plain objects as the API shows them, not at the state: whoever takes the product off a cluster must find the
marks of any version. What users wrote stays, also under our prefix: it was never ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cluster.resources import DEPLOYMENTS, NODES, PDBS, PODMIGRATIONS, PODS, REPLICASETS, STATEFULSETS, Resource
from descheduler.migration import surge_turn, temporary_budget
from descheduler.migration.outcomes import MANAGER
from descheduler.requests import Request, Verb
from policy import keys as vocabulary
from policy.keys import FINALIZER, POD_DELETION_COST, Keys

Object = Mapping[str, Any]
MARKED: Final = (PODS, NODES, DEPLOYMENTS, REPLICASETS, STATEFULSETS)
"""What may carry labels or annotations of ours."""
SWEPT: Final = (*MARKED, PDBS, PODMIGRATIONS)


def requests(resource: Resource, found: Object, keys: Keys) -> Iterator[Request]:
    """What takes back what is ours on one object; nothing if nothing is."""
    if resource is PODMIGRATIONS:
        yield from _forgotten(found)
    elif resource is PDBS:
        yield from _temporary(found)
    else:
        body = _cleaned(resource, found, keys)
        if body:
            meta = found["metadata"]
            # A node is tied to the version that was looked at: its cordon may have become somebody else's meanwhile.
            tied = {"uid": meta["uid"]}
            if resource is NODES:
                tied["resourceVersion"] = meta["resourceVersion"]
            body["metadata"] = {**tied, **body.get("metadata", {})}
            yield _request(Verb.PATCH, resource, found, body)


def ours(keys: Keys) -> frozenset[str]:
    """Every key under our prefix that we write ourselves; the others are the words of users."""
    theirs = {
        keys.maintenance,
        keys.maintenance_deadline,
        keys.rescheduling,
        keys.spot,
        keys.spot_percentage,
        keys.min_on_demand,
        keys.tier,
    }
    return frozenset(keys.all) - theirs


def _cleaned(resource: Resource, found: Object, keys: Keys) -> dict[str, Any]:
    meta, mine = found["metadata"], ours(keys)
    labels = dict.fromkeys(sorted(mine & set(meta.get("labels") or ())))
    annotations = dict.fromkeys(sorted(mine & set(meta.get("annotations") or ())))
    if resource is PODS and _is_our_cost(meta):
        annotations[POD_DELETION_COST] = None
    changed = {"labels": labels, "annotations": annotations}
    body: dict[str, Any] = {"metadata": {name: marks for name, marks in changed.items() if marks}}
    if resource is NODES:
        body |= _uncordoned(found, keys)
    return body if body["metadata"] or "spec" in body else {}


def _uncordoned(node: Object, keys: Keys) -> dict[str, Any]:
    """A cordon that somebody else made stays, as in the end of a drain."""
    spec = node.get("spec") or {}
    wanted: dict[str, Any] = {}
    annotations = node["metadata"].get("annotations") or {}
    if spec.get("unschedulable") and keys.cordoned_by in annotations:
        wanted["unschedulable"] = None
    taints: Sequence[Object] = spec.get("taints") or ()
    kept = [dict(it) for it in taints if it["key"] != keys.draining]
    if len(kept) < len(taints):
        wanted["taints"] = kept or None
    return {"spec": wanted} if wanted else {}


def _is_our_cost(meta: Object) -> bool:
    """The least there is, and written by us: a user may have had the same idea."""
    if (meta.get("annotations") or {}).get(POD_DELETION_COST) != str(surge_turn.LOWEST):
        return False
    return any(_wrote_cost(entry) for entry in meta.get("managedFields") or ())


def _wrote_cost(entry: Object) -> bool:
    fields = entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:annotations", {})
    return entry.get("manager") == MANAGER and f"f:{POD_DELETION_COST}" in fields


def _temporary(budget: Object) -> Iterator[Request]:
    meta = budget["metadata"]
    labelled = (meta.get("labels") or {}).get(temporary_budget.MANAGED_BY) == temporary_budget.OURS
    if labelled and meta["name"].endswith(temporary_budget.SUFFIX) and "deletionTimestamp" not in meta:
        yield _request(Verb.DELETE, PDBS, budget)


def _forgotten(migration: Object) -> Iterator[Request]:
    """Records go with the product. The finalizer first: nobody is left who would take it off."""
    meta = migration["metadata"]
    others = [it for it in meta.get("finalizers") or () if it != FINALIZER]
    if len(others) < len(meta.get("finalizers") or ()):
        body = {"metadata": {"uid": meta["uid"], "finalizers": others or None}}
        yield _request(Verb.PATCH, PODMIGRATIONS, migration, body)
    if "deletionTimestamp" not in meta:
        yield _request(Verb.DELETE, PODMIGRATIONS, migration)


def _request(verb: Verb, resource: Resource, found: Object, body: Object | None = None) -> Request:
    meta = found["metadata"]
    return Request(
        verb=verb,
        resource=resource,
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        body=body or {},
        uid=meta["uid"],
    )


def described(request: Request) -> str:
    """For people: what is taken back where."""
    where = f"{request.resource.plural} {f'{request.namespace}/' if request.namespace else ''}{request.name}"
    if request.verb is Verb.DELETE:
        return f"{where}: deleted"
    meta = request.body["metadata"]
    marks = [*meta.get("labels", ()), *meta.get("annotations", ())]
    marks += ["finalizer"] if "finalizers" in meta else []
    marks += sorted(request.body.get("spec", ()))
    return f"{where}: {', '.join(it.removeprefix(vocabulary.DEFAULT_PREFIX) for it in marks)}"

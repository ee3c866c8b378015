"""What must hold when everything has come to rest, read from the cluster as it is.   Pure, but for reading."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from policy import keys
from testbed import objects
from testbed.api import Object
from tests.chaos.bodies import KEYS, NAMESPACE
from tests.chaos.model import Form, Model, Workload
from tests.chaos.records import ENDED

MARKS: Final = frozenset({*KEYS.migration_labels, *KEYS.migration_annotations})
ON_NODES: Final = (
    KEYS.cordoned_by,
    KEYS.maintenance_status,
    KEYS.maintenance_remaining,
    KEYS.maintenance_since,
    KEYS.interruption_cause,
    KEYS.interruption_since,
    KEYS.interruption_deadline,
)
OVER: Final = frozenset({"completed", "failed"})


class Lists(Protocol):
    """Whoever can list what there is."""

    def list(self, resource: str, namespace: str | None = None) -> list[Object]: ...


def problems(kube: Lists, model: Model) -> list[str]:
    """Everything that is not as users left it."""
    pods = kube.list("pods", NAMESPACE)
    found = [
        *_moves(kube.list("podmigrations")),
        *_nodes(kube.list("nodes"), model),
        *_budgets(kube.list("poddisruptionbudgets", NAMESPACE), model),
        *(problem for pod in pods for problem in _marks(pod)),
    ]
    for form in (Form.DEPLOYMENT, Form.STATEFUL_SET):
        there = {it["metadata"]["name"]: it for it in kube.list(form, NAMESPACE)}
        found += [f"{form} {name} was not asked for" for name in sorted(set(there) - set(model.workloads))]
        for workload in model.of(form):
            found += _workload(workload, there.get(workload.name), _of(pods, workload.name))
    for name, alike in _without_controller(pods).items():
        found += _lonely(name, alike, model)
    found += [f"Job {it['metadata']['name']} has failed" for it in kube.list("jobs", NAMESPACE) if _has_failed(it)]
    return found


def _moves(found: Sequence[Object]) -> Iterator[str]:
    for move in found:
        name, status = move["metadata"]["name"], move.get("status") or {}
        if status.get("phase") not in ENDED:
            yield f"{name} is {status.get('phase')} at {status.get('step')}: {status.get('message', '')}"
        elif move["metadata"].get("finalizers"):
            yield f"{name} has ended and keeps its finalizer"


def _nodes(found: Sequence[Object], model: Model) -> Iterator[str]:
    for node in found:
        meta, spec = node["metadata"], node["spec"]
        machine = model.machines.get(meta["name"])
        if machine is None:
            continue
        if bool(spec.get("unschedulable")) != machine.cordoned:
            yield f"node {machine.name} is {'cordoned' if spec.get('unschedulable') else 'not cordoned any more'}"
        left = [key for key in ON_NODES if key in meta.get("annotations", {})]
        left += [it["key"] for it in spec.get("taints", ()) if it["key"] == KEYS.draining]
        if left:
            yield f"node {machine.name} carries {', '.join(left)}"


def _budgets(found: Sequence[Object], model: Model) -> Iterator[str]:
    names = {it["metadata"]["name"] for it in found}
    yield from (f"budget {name} is left" for name in sorted(names - model.budgets()))
    yield from (f"budget {name} is gone" for name in sorted(model.budgets() - names))


def _workload(workload: Workload, found: Object | None, pods: Sequence[Object]) -> Iterator[str]:
    name = workload.name
    if found is None:
        yield f"{workload.form} {name} is gone"
        return
    if found["spec"]["replicas"] != workload.replicas:
        yield f"{name} has {found['spec']['replicas']} replicas, its user wants {workload.replicas}"
    ready = sum(map(objects.is_ready, pods))
    if not len(pods) == ready == workload.replicas:
        yield f"{name} wants {workload.replicas} pods, has {len(pods)}, {ready} of them Ready"
    if KEYS.moving in found["metadata"].get("labels", {}):
        yield f"{name} says that it is moving"


def _marks(pod: Object) -> Iterator[str]:
    """A pod that replaced another says where it came from; any other says nothing."""
    meta = pod["metadata"]
    name, labels, annotations = meta["name"], meta.get("labels", {}), meta.get("annotations", {})
    if "deletionTimestamp" in meta:
        yield f"pod {name} is being deleted"
        return
    marks = sorted(MARKS & {*labels, *annotations})
    if marks and labels.get(KEYS.migration_status) not in OVER:
        yield f"pod {name} carries {', '.join(marks)} ({labels.get(KEYS.migration_status)})"
    if keys.POD_DELETION_COST in annotations:
        yield f"pod {name} has a deletion cost"


def _without_controller(pods: Sequence[Object]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for pod in pods:
        if not pod["metadata"].get("ownerReferences"):
            found.setdefault(pod["metadata"]["labels"]["app"], []).append(pod)
    return found


def _lonely(name: str, pods: Sequence[Object], model: Model) -> Iterator[str]:
    """One at most: it may have gone with its node, but it must not have become two."""
    if name not in model.workloads:
        yield f"pod {pods[0]['metadata']['name']} is left of {name}, which was deleted"
    elif len(pods) > 1:
        yield f"there are {len(pods)} pods of {name}: {', '.join(it['metadata']['name'] for it in pods)}"
    elif not objects.is_ready(pods[0]):
        yield f"pod {pods[0]['metadata']['name']} is not Ready"


def _of(pods: Sequence[Object], app: str) -> list[Object]:
    return [it for it in pods if it["metadata"].get("labels", {}).get("app") == app]


def _has_failed(job: Object) -> bool:
    conditions: list[dict[str, Any]] = job.get("status", {}).get("conditions") or []
    return any(it["type"] == "Failed" and it["status"] == "True" for it in conditions)

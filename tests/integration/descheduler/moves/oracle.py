"""What must hold after anything that was done to a move, read from the cluster and from the apiserver's audit log."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from policy import keys
from testbed import audit, objects
from testbed.api import Api, Object
from testbed.audit import Request
from testbed.bed import ControlPlane
from testbed.waiting import NeverCame, eventually
from tests.integration.descheduler.moves import product

KEYS: Final = keys.under()
ENDED: Final = frozenset({"Completed", "Failed", "Cancelled"})
USER: Final = audit.of_account(product.SYSTEM, product.ACCOUNT)
ON_NODES: Final = frozenset(
    {KEYS.cordoned_by, KEYS.maintenance_status, KEYS.maintenance_remaining, KEYS.maintenance_since}
)
WORKLOADS: Final = ("deployments", "replicasets", "statefulsets")


def requests(bed: ControlPlane) -> Iterator[Request]:
    """What the descheduler's account has asked for so far."""
    return audit.requests(bed.layout.audit_log, USER)


def seen(bed: ControlPlane, namespace: str, verb: str, resource: str) -> int:
    """How many such requests were answered in a namespace; the resource without its group."""
    group = re.compile(r"\.[^/]+")
    return sum(
        1
        for it in requests(bed)
        if (it.namespace, it.verb, group.sub("", it.resource)) == (namespace, verb, resource)
    )


def settled(look: Callable[[], list[str]], *, timeout: float = 60.0) -> list[str]:
    """Wait until nothing is wrong any more; what still is when the time is up."""
    try:
        return eventually(look, until=lambda it: not it, timeout=timeout, interval=0.2)
    except NeverCame:
        return look()


def problems(kube: Api, namespace: str) -> list[str]:
    """Open moves, lost pods, and anything that is left behind, as they are now."""
    moves = product.migrations(kube, namespace)
    pods = kube.list("pods", namespace)
    replacements = {it["status"]["replacement"]["uid"] for it in moves if it.get("status", {}).get("replacement")}
    found = [*under_way(moves), *_lost(kube, namespace), *budgets(kube, namespace)]
    for pod in pods:
        found += _marks_of(pod, moved=pod["metadata"]["uid"] in replacements)
    for resource in WORKLOADS:
        for item in kube.list(resource, namespace):
            if KEYS.moving in item["metadata"].get("labels", {}):
                found.append(f"{resource} {item['metadata']['name']} says that it is moving")
    return found


def touched(kube: Api, nodes: Sequence[str]) -> Iterator[str]:
    """Cordons and marks on nodes that nobody is to leave, as far as they are still there."""
    for node in kube.list("nodes"):
        name = node["metadata"]["name"]
        if name not in nodes:
            continue
        if node["spec"].get("unschedulable"):
            yield f"node {name} is cordoned"
        yield from (f"node {name} carries {key}" for key in ON_NODES & {*node["metadata"].get("annotations", {})})


def budgets(kube: Api, namespace: str) -> Iterator[str]:
    """Temporary ones that are still there."""
    for item in kube.list("poddisruptionbudgets", namespace):
        if item["metadata"]["name"].endswith("-rescheduler-pdb"):
            yield f"temporary budget {item['metadata']['name']} is there"


def under_way(moves: Sequence[Object]) -> Iterator[str]:
    """Moves that have not ended, or not let go."""
    for move in moves:
        name, status = move["metadata"]["name"], move.get("status", {})
        if status.get("phase") not in ENDED:
            yield f"{name} is {status.get('phase')} at {status.get('step')}: {status.get('message', '')}"
        if move["metadata"].get("finalizers"):
            yield f"{name} has a finalizer, {status.get('phase')}"


def _lost(kube: Api, namespace: str) -> Iterator[str]:
    for item in kube.list("deployments", namespace):
        name, wanted = item["metadata"]["name"], item["spec"]["replicas"]
        pods = product.running_pods(kube, namespace, name)
        ready = sum(map(objects.is_ready, pods))
        if not len(pods) == ready == wanted:
            yield f"{name} wants {wanted}, has {len(pods)}, {ready} of them Ready"


def _marks_of(pod: Object, *, moved: bool) -> Iterator[str]:
    """A pod that replaced another says where it came from; any other says nothing."""
    meta = pod["metadata"]
    ours = {*KEYS.migration_labels, *KEYS.migration_annotations}
    marks = sorted(ours & {*meta.get("labels", {}), *meta.get("annotations", {})})
    status = meta.get("labels", {}).get(KEYS.migration_status)
    if marks and not (moved and status in {"completed", "failed"}):
        yield f"pod {meta['name']} carries {', '.join(marks)} ({status})"


def evictions(bed: ControlPlane) -> list[Request]:
    """Those that were accepted."""
    return [it for it in requests(bed) if it.resource == "pods/eviction" and it.code == 201]


def effects(bed: ControlPlane, kube: Api, namespace: str) -> list[str]:
    """Second effects: a pod evicted twice, or evicted when its move was over."""
    mine = [it for it in evictions(bed) if it.namespace == namespace]
    counted = Counter(it.name for it in mine)
    found = [f"pod {name} was evicted {count} times" for name, count in counted.items() if count > 1]
    times = {it.name: it.at for it in mine}
    moves = product.migrations(kube, namespace)
    carried_out = {_pod(it) for it in moves if it.get("status", {}).get("phase") != "Cancelled"}
    for move in moves:
        at, ended = times.get(_pod(move)), move.get("status", {}).get("finishedAt")
        if at is None or ended is None or _pod(move) in carried_out:
            continue  # of two moves of one pod the second is called off, and the first goes on
        if at > datetime.fromisoformat(ended):
            found.append(f"{move['metadata']['name']} evicted its pod at {at}, after it was cancelled at {ended}")
    return found


def _pod(move: Object) -> str:
    return str(move["spec"]["podRef"]["name"])

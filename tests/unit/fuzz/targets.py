"""What is attacked: each target takes one random input and says what became of it, or raises where we failed.

`taken` and `refused` are both right. Wrong is an exception that nobody expects, a denied pod, or a patch beyond our
own fields.
"""

import base64
import copy
import json
import random
from collections.abc import Callable
from typing import Any

import msgspec

from cluster import errors
from cluster.decode import Decoders
from cluster.objects import PodMigration
from cluster.resources import NODES, PODMIGRATIONS
from descheduler import dump
from descheduler.dump import File, Refused
from descheduler.state import ClusterState
from extender import answer, parts
from extender.promises import Promises
from policy import keys
from policy.quantities import InvalidQuantity
from policy.settings import Settings
from tests.integration.webhook.test_hostile import SPOILS, many
from tests.unit.descheduler import build
from tests.unit.extender.building import by_names
from tests.unit.extender.building import pod as asked_pod
from tests.unit.fuzz import hostile, readers, workloads
from tests.unit.webhook import building
from tests.unit.webhook.pods import TWO_LABELS
from webhook import snapshot
from webhook.handle import handle
from webhook.reasons import Result
from webhook.spot import NARROWED_AT_MOST

Json = dict[str, Any]
KEYS = keys.under()
SETTINGS = Settings()
OWN_PATHS = ("/metadata/labels", "/metadata/annotations", "/spec/affinity", "/spec/tolerations", "/spec/priority",
             "/spec/preemptionPolicy")  # fmt: skip
"""Where a patch of ours may reach; `/spec/priority` is the class as well."""
OPERATIONS_AT_MOST = 50 + (2 * len(TWO_LABELS) - 1) * NARROWED_AT_MOST
"""Each term is copied for all labels but one, and joined for each."""

OWNER = build.owner("ReplicaSet", "web-1")
TEMPLATE: Json = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": build.LONG_AGO}
NODE: Json = {
    "kind": "Node",
    "metadata": build.meta("n0", labels={"kubernetes.io/hostname": "n0", keys.CAPACITY: "spot"}, annotations={}),
    "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "conditions": [READY]},
}
POD: Json = {
    "kind": "Pod",
    "metadata": build.meta("web-1-a", "default", labels={"app": "web"}, annotations={}, ownerReferences=[OWNER]),
    "spec": {"nodeName": "n0", **TEMPLATE},
    "status": {"phase": "Running", "startTime": build.LONG_AGO, "conditions": [READY]},
}
MIGRATION: Json = {
    "kind": "PodMigration",
    "metadata": build.meta("m-1", "default", finalizers=[keys.FINALIZER]),
    "spec": {
        "podRef": {"name": "web-1-a", "uid": "uid-default-web-1-a"},
        "targetNode": "n1",
        "mode": "Evict",
        "strategy": "NodeMaintenance",
        "weight": 120,
        "deadline": "2026-11-16T07:00:00Z",
        "cause": "maintenance",
    },
    "status": {
        "phase": "InProgress",
        "step": "Evict",
        "attempts": 1,
        "holder": "me",
        "startedAt": build.LONG_AGO,
        "resolved": {
            "podUid": "uid-default-web-1-a",
            "owner": {"kind": "ReplicaSet", "name": "web-1", "uid": "uid-default-web-1"},
            "sourceNode": "n0",
            "targetNode": "n1",
        },
        "intent": {"action": "evict", "at": build.LONG_AGO},
        "exchange": {"migration": "m-2", "targetNode": "n1"},
        "message": "under way",
    },
}
OTHERS: tuple[Json, ...] = (
    {**NODE, "metadata": build.meta("n1", labels={keys.CAPACITY: "on-demand", "kubernetes.io/hostname": "n1"})},
    {"kind": "Namespace", "metadata": build.meta("default")},
    {"kind": "ReplicaSet", "metadata": build.meta("web-1", "default"), "spec": {"replicas": 2}},
    {**POD, "metadata": build.meta("web-1-b", "default", labels={"app": "web"}, ownerReferences=[OWNER])},
)


def state_of(documents: list[Json], *, steps: bool = True) -> ClusterState | None:
    """As watches would tell it; an object that cannot be read or counted is left out, as the product does it."""
    made, decoders, left_out = ClusterState(SETTINGS), Decoders(), False
    for it in documents:
        try:
            made.apply(None, decoders.of(build.TYPES[it["kind"]]).decode(msgspec.json.encode(it)))
        except (errors.Malformed, InvalidQuantity):
            left_out = True
    readers.read(made, SETTINGS, steps=steps)
    return None if left_out else made


def reviews(rng: random.Random) -> str:
    """Bodies that no API server would send."""
    document = json.loads(building.body(_said(rng)))
    if rng.random() < 0.5:
        hostile.spoil(document["request"]["object"], rng, times=rng.randint(1, 4))
        return _reviewed(json.dumps(document).encode(), building.view())
    return _reviewed(rng.choice(SPOILS)(rng, json.dumps(document).encode()), building.view())


def terms(rng: random.Random) -> str:
    """Required affinities of any size, some spoilt, where spot is required and nodes carry up to three labels."""
    document = json.loads(many(rng, building.body(_said(rng))))
    if rng.random() < 0.7:
        hostile.spoil(document["request"]["object"]["spec"]["affinity"], rng, times=rng.randint(1, 4))
    view = building.view(nodes=TWO_LABELS[: rng.randint(1, len(TWO_LABELS))])
    return _reviewed(json.dumps(document).encode(), view)


def annotations(rng: random.Random) -> str:
    """Every key of ours, on a pod, its workload and its namespace, at admission and in a plan."""
    pod, owner = _said(rng), {"kind": "ReplicaSet", "metadata": build.meta("web-1", "shop", **_marks(rng))}
    view = building.view(namespace=_marks(rng), objects=[owner])
    outcome = _reviewed(building.body(pod), view)
    known = copy.deepcopy(POD)
    known["metadata"] |= _marks(rng)
    around = [{**it, "metadata": it["metadata"] | _marks(rng)} for it in copy.deepcopy(OTHERS)]
    state_of([NODE, *around, known])
    return outcome


def pods(rng: random.Random) -> str:
    """Specs of pods and workloads, budgets, autoscalers and volumes, on a node that is to be emptied."""
    node = copy.deepcopy(NODE)
    node["metadata"]["labels"] |= {KEYS.maintenance: "true", "a": "5"}
    node["spec"] = rng.choice(({}, {"taints": [{"key": "aws-node-termination-handler/spot-itn"}]}))
    read = state_of([node, *OTHERS[:2], *workloads.spoilt(rng, POD)])
    return "refused" if read is None else "taken"


def nodes(rng: random.Random) -> str:
    """Names, labels, annotations, taints and conditions of nodes, for the plan, the webhook and the extender."""
    node = copy.deepcopy(NODE)
    node["metadata"] |= {"name": hostile.text(rng) or "x", **_marks(rng)}
    node["metadata"]["labels"] |= {keys.HOSTNAME: hostile.text(rng), hostile.text(rng): hostile.text(rng)}
    if rng.random() < 0.5:  # few hostile texts are the one that drains a node
        node["metadata"]["labels"][KEYS.maintenance] = "true"
        node["metadata"]["annotations"][KEYS.maintenance_status] = rng.choice(
            (hostile.text(rng), rng.choice(hostile.STATUSES))
        )
    if rng.random() < 0.3:
        node["spec"]["taints"] = [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}]
    hostile.spoil(node, rng, times=rng.choice((0, 1, 2)))
    node["kind"] = "Node"
    pod = copy.deepcopy(POD)
    pod["spec"]["nodeName"] = node["metadata"].get("name", "x") if isinstance(node["metadata"], dict) else "x"
    read = state_of([node, *OTHERS, pod])
    _asked(rng, NODES, node)
    return _seen_by_webhook(rng, node) if read is not None else "refused"


def migrations(rng: random.Random) -> str:
    """PodMigrations as users may write them, who do not get at the status, and whole ones for those who only look."""
    migration, by_user = copy.deepcopy(MIGRATION), rng.random() < 0.5
    if by_user:
        migration["status"] = rng.choice(({}, migration["status"]))
        for part in ("spec", "metadata"):
            hostile.spoil(migration[part], rng, times=rng.randint(1, 3))
    else:
        hostile.spoil(migration, rng, times=rng.randint(1, 4))
    migration["kind"] = "PodMigration"
    read = state_of([NODE, *OTHERS, POD, migration], steps=by_user)
    _asked(rng, PODMIGRATIONS, migration)
    return _seen_by_webhook(rng, migration) if read is not None else "refused"


def dumps(rng: random.Random) -> str:
    """Files given to a command."""
    listed = {"kind": "List", "items": [copy.deepcopy(it) for it in (NODE, POD, *OTHERS, MIGRATION)]}
    hostile.spoil(listed, rng, times=rng.randint(1, 3))
    text = json.dumps(listed).encode()
    if rng.random() < 0.3:
        text = rng.choice(SPOILS)(rng, text)
    try:
        found = dump.read([File("dump.json", text)], SETTINGS, none=())
    except Refused:
        return "refused"
    readers.read(found.state, SETTINGS, steps=False)
    return "taken"


TARGETS: dict[str, Callable[[random.Random], str]] = {
    "reviews": reviews,
    "terms": terms,
    "annotations": annotations,
    "pods": pods,
    "nodes": nodes,
    "migrations": migrations,
    "dumps": dumps,
}


def _marks(rng: random.Random) -> Json:
    """Labels and annotations under keys that mean something to us, with values that need not."""
    known = (*KEYS.all, keys.POD_DELETION_COST, keys.SAFE_TO_EVICT, keys.DO_NOT_DISRUPT, keys.DESCHEDULER_EVICT)
    drawn = [{key: hostile.text(rng) for key in rng.sample(known, rng.randrange(6))} for _ in range(2)]
    return {"labels": drawn[0], "annotations": drawn[1]}


def _said(rng: random.Random) -> Json:
    owner = {**OWNER, "uid": "uid-shop-web-1"}
    return {
        "metadata": {"name": "web", "ownerReferences": [owner], **_marks(rng)},
        "spec": {**TEMPLATE, "priority": 0},
    }


def _reviewed(body: bytes, view: Any) -> str:
    """Answered, never denied, never by an error of ours, and only our own fields are touched."""
    outcome = handle(body, view, readers.NOW)
    assert outcome.result is not Result.INTERNAL_ERROR, outcome.error
    if outcome.status == 400:
        return "refused"
    response = json.loads(outcome.body)["response"]
    assert response["allowed"] is True
    patch = json.loads(base64.b64decode(response.get("patch", "")) or b"[]")
    assert len(patch) <= OPERATIONS_AT_MOST
    for change in patch:
        assert change["path"].startswith(OWN_PATHS), change
    return "taken"


def _seen_by_webhook(rng: random.Random, item: Json) -> str:
    try:
        view = snapshot.of_objects([{"kind": "Namespace", "metadata": {"name": "shop"}}, item], SETTINGS)
    except snapshot.NotUnderstood:
        return "refused"
    return _reviewed(building.body(_said(rng)), view)


def _asked(rng: random.Random, resource: Any, item: Json) -> None:
    """A scheduler asks the extender, which has seen the item."""
    kind = PodMigration if resource is PODMIGRATIONS else build.TYPES[item["kind"]]
    made = parts.Parts(SETTINGS, now=lambda: readers.NOW)
    try:
        made.put(resource, Decoders().of(kind).decode(msgspec.json.encode(item)))
    except errors.Malformed:
        return
    view = made.view()
    body = by_names(asked_pod(**_marks(rng)), "n0", "n1", hostile.text(rng))
    for decide in (answer.to_filter, answer.to_prioritize):
        outcome = decide(body, view, readers.NOW, Promises())
        assert outcome.result is not answer.Result.PASSED, outcome.error

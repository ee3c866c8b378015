"""Pods that nobody would write, and clusters to put them in, for property tests."""

from typing import Any

from hypothesis import strategies as st

from tests.unit.webhook import building
from tests.unit.webhook.building import CAPACITY, PREFIX
from webhook.view import View

Json = dict[str, Any]

AZURE = "kubernetes.azure.com/scalesetpriority"
HOST = "kubernetes.io/hostname"
OWNER = "u-rs"
TAINTED: Json = {"labels": {AZURE: "spot"}, "taints": [{"key": AZURE, "value": "spot", "effect": "NoSchedule"}]}
TWO_LABELS: tuple[Json, ...] = (
    {"labels": {"karpenter.sh/capacity-type": "spot"}},
    {"labels": {CAPACITY: "spot"}},
    TAINTED,
)


def move(name: str, source: str, target: str, *, owner: Json | None) -> Json:
    return {
        "kind": "PodMigration",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-11-16T04:00:00Z"},
        "spec": {"podRef": {"name": "web-old", "uid": "u-old"}, "strategy": "LoadBalancing"},
        "status": {"phase": "InProgress", "resolved": {"owner": owner, "sourceNode": source, "targetNode": target}},
    }


_RS = {"kind": "ReplicaSet", "name": "web-6f7", "uid": OWNER}
_MOVES = [move("migration-1790000000000-a", "w-1", "w-2", owner=_RS), move("b", "w-3", "w" * 90, owner=_RS)]
_CRITICAL = {"placement": {"criticalNamespaces": ["*"], "spotWeight": 70}}
_DEFAULT_CLASS = [{"name": "normal", "value": 1, "globalDefault": True}, *building.CLASSES]

VIEWS: dict[str, View] = {
    "ordinary": building.view(),
    "tainted": building.view(nodes=[TAINTED], policy=_CRITICAL),
    "two labels": building.view(nodes=TWO_LABELS, classes=_DEFAULT_CLASS, policy=_CRITICAL),
    "any value": building.view(nodes=[{"labels": {"node-role.kubernetes.io/spot-worker": ""}}]),
    "empty": building.view(nodes=(), classes=()),
    "moving": building.view(objects=_MOVES, policy=_CRITICAL),
    "moving a bare pod": building.view(objects=[move("c", "w-1", "w-2", owner=None)]),
    "requires": building.view(nodes=TWO_LABELS, policy={"placement": {"spot": "require"}}, objects=_MOVES),
    "avoids": building.view(nodes=[TAINTED], policy={"placement": {"spot": "avoid"}}),
    "mixes": building.view(objects=_MOVES[:1], policy={"placement": {"spotPercentage": 50, "minOnDemand": 1}}),
    "observes": building.view(objects=_MOVES, policy={"mode": "observe"}),
}

OURS = [
    f"{PREFIX}{name}"
    for name in (
        "spot",
        "tier",
        "rescheduling",
        "spot-percentage",
        "min-on-demand",
        "managed",
        "mixed",
        "migration-id",
    )
] + [f"{PREFIX}{name}" for name in ("migration-status", "migrated-from", "migration-time", "original-pod")]
NASTY = ["", "~", "/", "~1", "~0", "a/b~c", "a~1b/c", "-", "0", "ä ö", '"', "\\", "\n"]
WORDS = ["prefer", "require", "avoid", "ignore", "critical", "batch", "standard", "enabled", "disabled", "true"]
VALUES = [*WORDS, "50", "spot", "on-demand", "w-1", "b", "u-old", "\u0000", "x" * 300]
NODE_KEYS = [CAPACITY, AZURE, "karpenter.sh/capacity-type", "node-role.kubernetes.io/spot-worker", "zone", HOST, ""]
OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Wrong"]


def nullable(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """A mapping with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def lists(of: st.SearchStrategy[Any], size: int = 3) -> st.SearchStrategy[Any]:
    return nullable(st.lists(of, max_size=size))


texts = st.dictionaries(st.sampled_from([*OURS, *NASTY]), st.sampled_from(VALUES), max_size=5)
node_values = st.sampled_from(["spot", "on-demand", "regular", "a", "w-1", "w-2", "3"])
rules = some(
    key=st.sampled_from(NODE_KEYS), operator=st.sampled_from(OPERATORS), values=lists(node_values), future=st.just(1)
)
fields = st.fixed_dictionaries(
    {"key": st.just("metadata.name"), "operator": st.sampled_from(["In", "NotIn"]), "values": lists(node_values, 1)}
)
terms = some(matchExpressions=lists(rules), matchFields=lists(fields, 1), future=st.just({}))
node_affinity = some(
    requiredDuringSchedulingIgnoredDuringExecution=nullable(some(nodeSelectorTerms=lists(terms))),
    preferredDuringSchedulingIgnoredDuringExecution=lists(
        some(weight=st.integers(1, 100), preference=nullable(terms))
    ),
)
affinity = some(nodeAffinity=nullable(node_affinity), podAffinity=st.just({"x": [1]}))
tolerations = some(
    key=nullable(st.sampled_from([AZURE, "other"])),
    operator=nullable(st.sampled_from(["Exists", "Equal", "", "Gt"])),
    value=nullable(st.sampled_from(["spot", ""])),
    effect=nullable(st.sampled_from(["NoSchedule", "NoExecute", ""])),
    tolerationSeconds=st.just(300),
)
owners = st.fixed_dictionaries(
    {"uid": st.sampled_from([OWNER, "u-x"]), "name": st.just("web-6f7")},
    optional={"kind": st.sampled_from(["ReplicaSet", "Job", "Node", "Odd"]), "controller": st.booleans()},
)
specs = some(
    containers=st.just([{"name": "main", "image": "app"}]),
    affinity=nullable(affinity),
    tolerations=lists(tolerations),
    nodeSelector=nullable(st.dictionaries(st.sampled_from(NODE_KEYS), node_values, max_size=1)),
    priorityClassName=nullable(st.sampled_from(["", "normal", "mine", "batch-priority"])),
    priority=nullable(st.integers(-100, 1000)),
    preemptionPolicy=nullable(st.just("PreemptLowerPriority")),
    schedulerName=nullable(st.just("default-scheduler")),
)
metadata = some(
    name=nullable(st.just("web-old")),
    labels=nullable(texts),
    annotations=nullable(texts),
    ownerReferences=lists(owners, 1),
)
pods = st.fixed_dictionaries({"metadata": metadata, "spec": specs})

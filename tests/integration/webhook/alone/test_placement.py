"""What a pod carries and where the real scheduler puts it: every kind of workload, intent and kind of cluster."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from testbed import objects
from testbed.api import Api, Object
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually
from tests.integration.webhook.serving import Serving
from tests.unit.webhook.building import CAPACITY, PREFIX
from tests.unit.webhook.pods import AZURE

MANAGED = PREFIX + "managed"
ALWAYS_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""By the API server's own defaults, in every pod."""

KINDS: Mapping[str, tuple[str, Callable[..., Object]]] = {
    "Deployment": ("deployments", objects.deployment),
    "StatefulSet": ("statefulsets", objects.stateful_set),
    "Job": ("jobs", objects.job),
    "DaemonSet": ("daemonsets", objects.daemon_set),
    "Pod": ("pods", objects.pod),
}
INTENTS = ("prefer", "require", "avoid", "ignore", "unsaid")
PENDING = frozenset[str]()
SPOT, ON_DEMAND, EITHER = frozenset({"spot"}), frozenset({"on-demand"}), frozenset({"spot", "on-demand"})


@dataclass(frozen=True, slots=True)
class Gets:
    """What is right for a pod of one intent in one cluster."""

    rule: str
    """`preferred` or `required`, and the operator on the capacity label; empty for no affinity at all."""
    lands: frozenset[str]
    """Capacity of the nodes it may end up on; empty if it has to wait."""
    tolerates: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes, and what each intent means among them."""

    label: str
    spot: int
    taints: tuple[Mapping[str, str], ...]
    gets: Mapping[str, Gets]
    daemons: frozenset[str]
    """Capacity of the nodes with a pod of each DaemonSet, which is left alone."""


CLUSTERS = {
    "no spot nodes": Cluster(
        label=CAPACITY,
        spot=0,
        taints=(),
        gets={
            "prefer": Gets("preferred In", ON_DEMAND),
            "require": Gets("required In", PENDING),
            "avoid": Gets("preferred NotIn", ON_DEMAND),
            "ignore": Gets("", ON_DEMAND),
            "unsaid": Gets("preferred In", ON_DEMAND),
        },
        daemons=ON_DEMAND,
    ),
    "labelled spot nodes": Cluster(
        label=CAPACITY,
        spot=1,
        taints=(),
        gets={
            "prefer": Gets("preferred In", SPOT),
            "require": Gets("required In", SPOT),
            "avoid": Gets("preferred NotIn", ON_DEMAND),
            "ignore": Gets("", EITHER),
            "unsaid": Gets("preferred In", SPOT),
        },
        daemons=EITHER,
    ),
    "tainted spot nodes": Cluster(  # as on AKS, where only the spot nodes have the label
        label=AZURE,
        spot=1,
        taints=({"key": AZURE, "value": "spot", "effect": "NoSchedule"},),
        gets={
            "prefer": Gets("preferred In", SPOT, tolerates=True),
            "require": Gets("required In", SPOT, tolerates=True),
            "avoid": Gets("preferred NotIn", ON_DEMAND),
            "ignore": Gets("", ON_DEMAND),
            "unsaid": Gets("preferred In", SPOT, tolerates=True),
        },
        daemons=ON_DEMAND,
    ),
}


def made(cluster: Cluster, prefix: str) -> list[Object]:
    """One node that is not spot, and the spot nodes."""
    pool = objects.pool(f"{prefix}-", on_demand=1, spot=cluster.spot)
    for node in pool:
        capacity = node["metadata"]["labels"].pop(CAPACITY)
        if cluster.label == CAPACITY or capacity == "spot":
            node["metadata"]["labels"][cluster.label] = capacity
        if capacity == "spot":
            node["spec"]["taints"] = [dict(taint) for taint in cluster.taints]
    return pool


def affinity(rule: str, label: str) -> Object | None:
    """The whole of it, so that nothing else can hide in there."""
    if not rule:
        return None
    strength, operator = rule.split()
    term = {"matchExpressions": [{"key": label, "operator": operator, "values": ["spot"]}]}
    name = f"{strength}DuringSchedulingIgnoredDuringExecution"
    whole: Any = {"nodeSelectorTerms": [term]} if strength == "required" else [{"weight": 10, "preference": term}]
    return {"nodeAffinity": {name: whole}}


def tolerations(pod: Object) -> list[Object]:
    return [it for it in pod["spec"]["tolerations"] if it.get("key") not in ALWAYS_TOLERATED]


def is_decided(pod: Object) -> bool:
    """The scheduler has bound it, or said that it cannot."""
    conditions = {it["type"]: it for it in pod.get("status", {}).get("conditions", ())}
    waits = conditions.get("PodScheduled", {}).get("reason") == "Unschedulable"
    return bool(pod["spec"].get("nodeName")) or waits


def capacities(pods: list[Object]) -> frozenset[str]:
    bound = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]
    return frozenset("spot" if "-spot-" in name else "on-demand" for name in bound)


def check(cluster: Cluster, kind: str, intent: str, pods: list[Object]) -> None:
    """One row of the table."""
    if kind == "DaemonSet":
        assert capacities(pods) == cluster.daemons
        for pod in pods:
            assert MANAGED not in pod["metadata"]["labels"]
            assert AZURE not in str(pod["spec"]["tolerations"])
            assert cluster.label not in str(pod["spec"]["affinity"]), "which is the controller's own"
        return
    (pod,) = pods
    gets = cluster.gets[intent]
    assert pod["metadata"]["labels"][MANAGED] == "true"
    assert pod["spec"].get("affinity") == affinity(gets.rule, cluster.label)
    tolerated = [{"operator": "Equal", **taint} for taint in cluster.taints]
    assert tolerations(pod) == (tolerated if gets.tolerates else [])
    found = capacities(pods)
    assert found <= gets.lands
    assert bool(found) is bool(gets.lands)


@pytest.mark.parametrize("cluster_", CLUSTERS.values(), ids=CLUSTERS.keys())
def test_what_pods_carry_and_where_they_land(
    kube: Api, namespace: str, nodes: Nodes, webhook: Serving, subtests: pytest.Subtests, cluster_: Cluster
) -> None:
    nodes.add(made(cluster_, namespace))
    eventually(
        lambda: kube.create("pods", objects.pod("probe"), namespace, dry_run=True)["spec"].get("affinity"),
        until=lambda found: found == affinity(cluster_.gets["unsaid"].rule, cluster_.label),
        what="the nodes in the view of the webhook",
    )
    for kind, (resource, build) in KINDS.items():
        for intent in INTENTS:
            said = {} if intent == "unsaid" else {PREFIX + "spot": intent}
            kube.create(resource, build(f"{kind.lower()}-{intent}", annotations=said), namespace)
    expected = {
        f"{kind.lower()}-{intent}": len(cluster_.daemons) if kind == "DaemonSet" else 1
        for kind in KINDS
        for intent in INTENTS
    }
    placed = eventually(
        lambda: by_workload(kube, namespace),
        until=lambda found: (
            {name: len(pods) for name, pods in found.items()} == expected
            and all(is_decided(pod) for pods in found.values() for pod in pods)
        ),
        what="a decision of the scheduler on every pod",
    )
    for kind in KINDS:
        for intent in INTENTS:
            with subtests.test(f"{kind} {intent}"):
                check(cluster_, kind, intent, placed[f"{kind.lower()}-{intent}"])


def by_workload(kube: Api, namespace: str) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = defaultdict(list)
    for pod in kube.list("pods", namespace):
        found[pod["metadata"]["labels"]["app"]].append(pod)
    return dict(found)

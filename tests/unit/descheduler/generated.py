"""Clusters of all sorts from a seed: uneven, tainted, zoned, with budgets, opt-outs, rules between pods and pods that
wait. Every pod that has a node could have been put there by a scheduler.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cluster.objects import Pod
from tests.unit.descheduler import build, naive

ZONES = ("a", "b", "c")
PREFIX = "scheduler.alpha.kubernetes.io/"
SPOT_TAINT = {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}
DEDICATED = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


@dataclass
class World:
    """The objects of a cluster."""

    nodes: list[Any] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)

    @property
    def objects(self) -> list[Any]:
        return [*self.nodes, *self.others, *self.pods]


def world(seed: int, *, plain: bool = False, stateful: bool = True, nodes: int | None = None) -> World:
    """`plain` leaves out everything that keeps a pod from moving but room and load, `stateful` only StatefulSets."""
    rng = random.Random(seed)
    made = World()
    made.nodes = [_node(rng, number, plain) for number in range(nodes or rng.randint(3, 10))]
    favourites = rng.sample(made.nodes, k=max(1, len(made.nodes) // 3))
    if not plain:
        made.others.append(build.thing("DaemonSet", "agent"))
        for node in made.nodes:
            name = node.metadata.name
            made.pods.append(build.pod(f"agent-{name}", on=name, of=build.owner("DaemonSet", "agent"), cpu="100m"))
    for number in range(rng.randint(2, 8)):
        _workload(rng, number, made, favourites, plain=plain, stateful=stateful)
    return made


def _node(rng: random.Random, number: int, plain: bool) -> Any:
    size = rng.choice((4, 8, 16))
    spot = rng.random() < 0.4
    taints = [] if plain else [*([SPOT_TAINT] if spot and rng.random() < 0.3 else [])]
    if not plain and rng.random() < 0.1:
        taints.append(DEDICATED)
    return build.node(
        f"n{number}",
        cpu=str(size),
        memory=f"{size * 4}Gi",
        pods=str(rng.choice((20, 60, 110))),
        zone=rng.choice(ZONES),
        spot=None if plain else spot,
        taints=taints,
        unschedulable=not plain and rng.random() < 0.08,
        ready=plain or rng.random() > 0.05,
    )


def _workload(
    rng: random.Random, number: int, made: World, favourites: list[Any], *, plain: bool, stateful: bool
) -> None:
    app, namespace = f"app{number}", "kube-system" if not plain and rng.random() < 0.1 else "default"
    replicas = rng.choice((1, 2, 3, 5, 8, 12))
    kind = "StatefulSet" if not plain and rng.random() < 0.2 and stateful else "ReplicaSet"
    spec, annotations = ({}, {}) if plain else (_rules(rng, app), _wishes(rng))
    cpu, memory = rng.choice(("", "100m", "250m", "500m", "1", "2")), rng.choice(("", "256Mi", "1Gi", "3Gi"))
    owner = build.owner(kind, app, namespace)
    status = {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas}
    made.others.append(build.thing(kind, app, namespace, spec={"replicas": replicas}, status=status))
    if not plain and rng.random() < 0.3:
        made.others.append(build.budget(app, allowed=rng.randint(0, 3), labels={"app": app}, namespace=namespace))
    for index in range(replicas):
        bare = not plain and rng.random() < 0.03
        pod = build.pod(
            f"{app}-{index}",
            namespace=namespace,
            of=None if bare else owner,
            cpu=cpu,
            memory=memory,
            labels={"app": app},
            annotations=annotations,
            spec=spec,
        )
        made.pods.append(_placed(rng, pod, made, favourites, plain))


def _rules(rng: random.Random, app: str) -> dict[str, Any]:
    found: dict[str, Any] = {"priority": rng.choice((0, 0, 0, 1000)), "tolerations": []}
    selector = {"matchLabels": {"app": app}}
    if rng.random() < 0.4:
        found["tolerations"] = [{"key": SPOT_TAINT["key"], "operator": "Exists"}]
    if rng.random() < 0.1:
        found["tolerations"] += [{"key": "dedicated", "operator": "Exists"}]
    choice = rng.random()
    if choice < 0.15:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        found["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif choice < 0.3:
        found["nodeSelector"] = {"topology.kubernetes.io/zone": rng.choice(ZONES)}
    elif choice < 0.45:
        key = "topology.kubernetes.io/zone"
        constraint = {"maxSkew": rng.randint(1, 3), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        found["topologySpreadConstraints"] = [constraint | {"labelSelector": selector}]
    elif choice < 0.5:
        ports = [{"containerPort": 80, "hostPort": 8080}]
        found["containers"] = [{"name": "main", "resources": {"requests": {"cpu": "200m"}}, "ports": ports}]
    return found


def _wishes(rng: random.Random) -> dict[str, str]:
    found = {}
    if rng.random() < 0.1:
        found[f"{PREFIX}rescheduling"] = "disabled"
    if rng.random() < 0.3:
        found[f"{PREFIX}spot"] = rng.choice(("prefer", "avoid", "ignore"))
    return found


def _placed(rng: random.Random, pod: Pod, made: World, favourites: list[Any], plain: bool) -> Pod:
    """On a node that suits it, favourites first, so that some are crowded; without one if none does."""
    if not plain and rng.random() < 0.03:
        return pod
    others = rng.sample(made.nodes, k=len(made.nodes))
    for node in (*(rng.sample(favourites, k=len(favourites)) if rng.random() < 0.75 else ()), *others):
        if not naive.broken(pod, node, made.nodes, made.pods):
            return running(pod, node.metadata.name)
    return pod


def running(pod: Pod, node: str) -> Pod:
    """The pod, Running and Ready on a node."""
    template = build.pod("template", on=node)
    return msgspec.structs.replace(
        pod,
        node_name=node,
        status=template.status,
        start_time=template.start_time,
        ready_since=template.ready_since,
    )


def applied(pods: list[Pod], moves: Iterator[Any] | tuple[Any, ...]) -> list[Pod]:
    """The pods after the moves; a replacement keeps the name, so that a second move of it shows."""
    to = {move.pod.metadata.key: move.target for move in moves}
    return [
        msgspec.structs.replace(pod, node_name=to[pod.metadata.key]) if pod.metadata.key in to else pod
        for pod in pods
    ]

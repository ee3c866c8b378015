"""The scheduler's rules written down a second time, slowly and with nothing of the product's in it but the types.

Looks at every pod for every question. What the plan does is judged by this and not by the code that made it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from cluster.objects import Node, Pod

UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def milli_cpu(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def in_bytes(text: str) -> int:
    return int(text[:-2]) * UNITS[text[-2:]] if text[-2:] in UNITS else int(text)


def asked(pod: Pod) -> tuple[int, int, int]:
    """Thousandths of a cpu, bytes, pods."""
    requests = [container.resources.requests for container in pod.spec.containers]
    return (
        sum(milli_cpu(it.get("cpu", "0")) for it in requests),
        sum(in_bytes(it.get("memory", "0")) for it in requests),
        1,
    )


def offered(node: Node) -> tuple[int, int, int]:
    room = node.status.allocatable
    return milli_cpu(room["cpu"]), in_bytes(room["memory"]), int(room["pods"])


def used(node: Node, pods: Iterable[Pod]) -> tuple[int, int, int]:
    held = [asked(pod) for pod in pods if pod.node_name == node.metadata.name]
    return sum(it[0] for it in held), sum(it[1] for it in held), sum(it[2] for it in held)


def broken(pod: Pod, node: Node, nodes: Sequence[Node], others: Sequence[Pod]) -> list[str]:
    """Every rule that the pod would break on the node, with the others where they are."""
    rest = [it for it in others if it.metadata.key != pod.metadata.key]
    return [
        *_room(pod, node, rest),
        *_node_rules(pod, node),
        *_ports(pod, node, rest),
        *_apart(pod, node, nodes, rest),
        *_spread(pod, node, nodes, rest),
    ]


def _room(pod: Pod, node: Node, rest: Sequence[Pod]) -> Iterator[str]:
    names = ("cpu", "memory", "pods")
    for name, taken, more, room in zip(names, used(node, rest), asked(pod), offered(node), strict=True):
        if taken + more > room:
            yield f"{name} on {node.metadata.name}"


def _node_rules(pod: Pod, node: Node) -> Iterator[str]:
    if node.spec.unschedulable:
        yield "cordoned"
    if not any(it.type == "Ready" and it.status == "True" for it in node.status.conditions):
        yield "not ready"
    for key, value in pod.spec.node_selector.items():
        if node.metadata.labels.get(key) != value:
            yield f"selector {key}"
    tolerated = {it.key for it in pod.spec.tolerations}
    yield from (f"taint {it.key}" for it in node.spec.taints if it.effect == "NoSchedule" and it.key not in tolerated)


def _ports(pod: Pod, node: Node, rest: Sequence[Pod]) -> Iterator[str]:
    def ports(it: Pod) -> set[int]:
        return {port.host_port for container in it.spec.containers for port in container.ports if port.host_port}

    for other in rest:
        if other.node_name == node.metadata.name and ports(pod) & ports(other):
            yield f"port of {other.metadata.name}"


def _terms(pod: Pod) -> Sequence[Any]:
    affinity = pod.spec.affinity
    return () if affinity is None or affinity.pod_anti_affinity is None else affinity.pod_anti_affinity.required


def _selects(selector: Any, pod: Pod) -> bool:
    return all(pod.metadata.labels.get(key) == value for key, value in selector.match_labels.items())


def _apart(pod: Pod, node: Node, nodes: Sequence[Node], rest: Sequence[Pod]) -> Iterator[str]:
    labels = {it.metadata.name: it.metadata.labels for it in nodes}
    for other in rest:
        if not other.node_name or other.metadata.namespace != pod.metadata.namespace:
            continue
        for one, two in ((pod, other), (other, pod)):
            for term in _terms(one):
                key = term.topology_key
                near = labels[other.node_name].get(key) == node.metadata.labels.get(key)
                if near and _selects(term.label_selector, two):
                    yield f"must keep away from {other.metadata.name}"


def _spread(pod: Pod, node: Node, nodes: Sequence[Node], rest: Sequence[Pod]) -> Iterator[str]:
    for constraint in pod.spec.topology_spread_constraints:
        counts = domains(pod, constraint, nodes, rest)
        domain = node.metadata.labels.get(constraint.topology_key)
        if domain is None or domain not in counts:
            yield "no domain"
        elif counts[domain] + 1 - min(counts.values()) > constraint.max_skew:
            yield f"skew in {domain}"


def domains(pod: Pod, constraint: Any, nodes: Sequence[Node], pods: Sequence[Pod]) -> Counter[str]:
    """Pods that the constraint counts, by domain; nodes that the pod's selector leaves out do not count."""
    key = constraint.topology_key
    suited = [
        it
        for it in nodes
        if key in it.metadata.labels
        and all(it.metadata.labels.get(name) == value for name, value in pod.spec.node_selector.items())
    ]
    counts: Counter[str] = Counter({it.metadata.labels[key]: 0 for it in suited})
    by_name = {it.metadata.name: it.metadata.labels[key] for it in suited}
    for other in pods:
        same = other.metadata.namespace == pod.metadata.namespace and _selects(constraint.label_selector, other)
        if same and other.node_name in by_name:
            counts[by_name[other.node_name]] += 1
    return counts


def load(node: Node, pods: Iterable[Pod]) -> float:
    """The largest of the shares, with 100m and 200Mi for a container that asks for none."""
    cpu = memory = count = 0
    for pod in pods:
        if pod.node_name == node.metadata.name:
            count += 1
            for container in pod.spec.containers:
                requests = container.resources.requests
                cpu += milli_cpu(requests.get("cpu", "100m"))
                memory += in_bytes(requests.get("memory", "200Mi"))
    room = offered(node)
    return max(100 * cpu / room[0], 100 * memory / room[1], 100 * count / room[2])


def most_placed(pending: Sequence[Pod], nodes: Sequence[Node], pods: Sequence[Pod]) -> int:
    """How many of the pods that wait could be placed, by trying everything. For a handful of them."""
    if not pending:
        return 0
    first, rest = pending[0], pending[1:]
    best = most_placed(rest, nodes, pods)
    for node in nodes:
        if best == len(pending):
            break
        if not broken(first, node, nodes, pods):
            best = max(best, 1 + most_placed(rest, nodes, [*pods, _on(first, node.metadata.name)]))
    return best


def _on(pod: Pod, name: str) -> Pod:
    return msgspec.structs.replace(pod, node_name=name)

"""Pods on nodes that keep others away by required anti-affinity, found by whom they keep away.

Pods of one template in one namespace keep away the same pods, so they are one group with a count per node. A pod
that looks for a place has to be held against the groups that are about its namespace, not against all pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cluster.objects import Pod, PodSpec
from descheduler import pod_terms
from descheduler.pod_terms import Term

GroupKey = tuple[str, int]
"""Namespace, and identity of the spec, which the group keeps alive."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one template."""

    spec: PodSpec
    terms: tuple[Term, ...]
    nodes: dict[str, int] = field(default_factory=dict)
    """How many are on each node."""


class Repelling:
    """Kept by the one writer of the state; cheap to change, cheap to ask."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, Group] = {}
        self._by_namespace: dict[str, dict[GroupKey, Group]] = {}
        self._wide: dict[GroupKey, Group] = {}
        """Groups that choose namespaces by their labels."""

    def __len__(self) -> int:
        return len(self._groups)

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Every group with the namespace of its pods."""
        return ((key[0], group) for key, group in self._groups.items())

    def about(self, namespace: str) -> Iterator[Group]:
        """Groups that may be about pods of a namespace; their terms decide."""
        near = self._by_namespace.get(namespace, {})
        yield from near.values()
        yield from (group for key, group in self._wide.items() if key not in near)

    def add(self, pod: Pod) -> None:
        """The pod runs on its node now."""
        if not repels(pod):
            return
        key = pod.metadata.namespace, id(pod.spec)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(pod.spec, pod_terms.repelling(pod.spec, key[0]))
            self._index(key, group)
        group.nodes[pod.node_name] = group.nodes.get(pod.node_name, 0) + 1

    def remove(self, pod: Pod) -> None:
        """The pod does not run there any more."""
        key = pod.metadata.namespace, id(pod.spec)
        group = self._groups.get(key) if repels(pod) else None
        if group is None:
            return
        group.nodes[pod.node_name] -= 1
        if not group.nodes[pod.node_name]:
            del group.nodes[pod.node_name]
        if not group.nodes:
            self._unindex(key, group)
            del self._groups[key]

    def _index(self, key: GroupKey, group: Group) -> None:
        for term in group.terms:
            if term.namespace_selector is not None:
                self._wide[key] = group
            for name in term.namespaces:
                self._by_namespace.setdefault(name, {})[key] = group

    def _unindex(self, key: GroupKey, group: Group) -> None:
        self._wide.pop(key, None)
        for name in {name for term in group.terms for name in term.namespaces}:
            found = self._by_namespace[name]
            del found[key]
            if not found:
                del self._by_namespace[name]


def repels(pod: Pod) -> bool:
    """Whether the pod has required anti-affinity."""
    affinity = pod.spec.affinity
    return (
        affinity is not None and affinity.pod_anti_affinity is not None and bool(affinity.pod_anti_affinity.required)
    )

"""Pods and nodes of a state, grouped once for all who count them.   Pure.

Pods with the same labels answer every selector alike, and a selector is asked once per group instead of once per pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cluster.objects import Node
from descheduler.state import ClusterState


@dataclass(frozen=True, slots=True)
class Alike:
    """Pods of one namespace with the same labels."""

    labels: Mapping[str, str]
    nodes: dict[str, int] = field(default_factory=dict)
    """How many are on each node."""
    leaving: dict[str, int] = field(default_factory=dict)
    """How many of them are being deleted."""


class Crowd:
    """Holds for one state as it is; made anew for every plan, and only as far as somebody asks."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._pods: dict[str, tuple[Alike, ...]] = {}
        self._nodes: dict[tuple[str, ...], tuple[Node, ...]] = {}
        self._domains: dict[tuple[str, ...], Mapping[str, str]] = {}

    def pods(self, namespace: str) -> tuple[Alike, ...]:
        """Those of a namespace that are on nodes."""
        found = self._pods.get(namespace)
        if found is None:
            found = self._pods[namespace] = self._group(namespace)
        return found

    def nodes(self, keys: Iterable[str]) -> tuple[Node, ...]:
        """Those that have all these labels."""
        wanted = tuple(sorted(set(keys)))
        found = self._nodes.get(wanted)
        if found is None:
            known = (it.node for it in self._state.nodes.values())
            found = tuple(it for it in known if it is not None and all(key in it.metadata.labels for key in wanted))
            self._nodes[wanted] = found
        return found

    def domains(self, keys: Iterable[str], key: str) -> Mapping[str, str]:
        """The value of one label by node, for the nodes that have all of them."""
        wanted = (key, *sorted(set(keys)))
        found = self._domains.get(wanted)
        if found is None:
            found = {it.metadata.name: it.metadata.labels[key] for it in self.nodes(wanted)}
            self._domains[wanted] = found
        return found

    def _group(self, namespace: str) -> tuple[Alike, ...]:
        groups: dict[int, Alike] = {}
        for pod in self._state.by_namespace.get(namespace, {}).values():
            name = pod.node_name
            if not name:
                continue
            labels = pod.metadata.labels
            group = groups.get(id(labels))
            if group is None:
                group = groups[id(labels)] = Alike(labels)
            group.nodes[name] = group.nodes.get(name, 0) + 1
            if pod.metadata.deletion_timestamp is not None:
                group.leaving[name] = group.leaving.get(name, 0) + 1
        return tuple(groups.values())

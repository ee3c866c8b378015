"""Required affinity and anti-affinity between pods, in both directions.   Pure.

Counted once per template and kept right by following the changes of the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cluster.objects import Node, Pod
from descheduler import pod_terms, selectors
from descheduler.fit.crowd import Crowd
from descheduler.fit.misfit import FitCode, Misfit
from descheduler.picture import Change, Picture
from descheduler.pod_terms import Term
from descheduler.state import ClusterState

Domains = dict[tuple[str, str], int]
"""How many pods are in a topology domain, by key and value of its label."""


class Neighbours:
    """What pods elsewhere say about one that looks for a place, and it about them."""

    def __init__(self, picture: Picture, crowd: Crowd, pod: Pod) -> None:
        self._picture = picture
        self._pod = pod
        self._namespace = pod.metadata.namespace
        self._near = pod_terms.attracting(pod.spec, self._namespace)
        self._far = pod_terms.repelling(pod.spec, self._namespace)
        self._attracted: Domains = {}
        self._avoided: Domains = {}
        self._repelled: Domains = {}
        self._count_repelling()
        self._count_others(crowd)
        self._seen = 0

    @property
    def indifferent(self) -> bool:
        """Whether every node will do, as things stand."""
        return not (self._near or self._far or self._repelled)

    def fits(self, node: Node) -> bool:
        """Whether `misfits` would be empty."""
        self._follow()
        return self.indifferent or not any(self.misfits(node))

    def misfits(self, node: Node) -> Iterator[Misfit]:
        """Every reason on this side."""
        self._follow()
        labels = node.metadata.labels
        yield from self._lonely(labels)
        for term in self._far:
            value = labels.get(term.key)
            if value is not None and self._avoided.get((term.key, value)):
                yield Misfit(FitCode.POD_ANTI_AFFINITY, f"a pod to keep away from is in {term.key}={value}")
        if self._repelled:
            for pair in labels.items():
                if self._repelled.get(pair):
                    yield Misfit(FitCode.REPELLED, f"a pod in {pair[0]}={pair[1]} keeps pods like this one away")

    def _lonely(self, labels: Mapping[str, str]) -> Iterator[Misfit]:
        absent = [term.key for term in self._near if term.key not in labels]
        if absent:
            yield Misfit(FitCode.POD_AFFINITY, f"the node has no label {absent[0]}")
            return
        missing = [term.key for term in self._near if not self._attracted.get((term.key, labels[term.key]))]
        if missing and not self._first():
            yield Misfit(FitCode.POD_AFFINITY, f"no pod to be near to is in {missing[0]}={labels[missing[0]]}")

    def _first(self) -> bool:
        """The first of pods that want to be near each other may go anywhere."""
        return not self._attracted and self._wants(self._namespace, self._pod.metadata.labels)

    # ---- counting

    def _count_repelling(self) -> None:
        for group in self._picture.state.repelling.about(self._namespace):
            for term in group.terms:
                if self._is_meant(term):
                    for name, count in group.nodes.items():
                        self._add(self._repelled, term.key, name, count)

    def _count_others(self, crowd: Crowd) -> None:
        terms = (*self._near, *self._far)
        if not terms:
            return
        for namespace in self._picture.state.by_namespace:
            labels = labels_of(self._picture.state, namespace)
            if any(term.covers(namespace, labels) for term in terms):
                for alike in crowd.pods(namespace):
                    self._count(namespace, alike.labels, alike.nodes)

    def _count(self, namespace: str, labels: Mapping[str, str], nodes: Mapping[str, int]) -> None:
        """A pod that must be near counts only if all terms are about it, one to avoid for each that is."""
        if self._near and self._wants(namespace, labels):
            for term in self._near:
                for name, count in nodes.items():
                    self._add(self._attracted, term.key, name, count)
        for term in self._far:
            if self._about(term, namespace, labels):
                for name, count in nodes.items():
                    self._add(self._avoided, term.key, name, count)

    def _wants(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return all(self._about(term, namespace, labels) for term in self._near)

    def _about(self, term: Term, namespace: str, labels: Mapping[str, str]) -> bool:
        covered = term.covers(namespace, labels_of(self._picture.state, namespace))
        return covered and selectors.matches(term.selector, labels)

    def _add(self, domains: Domains, key: str, name: str, count: int) -> None:
        node = self._picture.state.nodes[name].node
        value = None if node is None else node.metadata.labels.get(key)
        if value is None:
            return
        total = domains.get((key, value), 0) + count
        if total:
            domains[key, value] = total
        else:
            domains.pop((key, value), None)

    def _is_meant(self, term: Term) -> bool:
        return self._about(term, self._namespace, self._pod.metadata.labels)

    # ---- following

    def _follow(self) -> None:
        """A pod without terms of its own minds only pods that keep others away. Every proposal that is looked at
        changes the picture twice, so following all of them would cost templates times proposals.
        """
        changes = self._picture.changes if self._near or self._far else self._picture.repelling
        while self._seen < len(changes):
            self._apply(changes[self._seen])
            self._seen += 1

    def _apply(self, change: Change) -> None:
        meta = change.pod.metadata
        if self._near or self._far:
            self._count(meta.namespace, meta.labels, {change.node: change.sign})
        for term in pod_terms.repelling(change.pod.spec, meta.namespace):
            if self._is_meant(term):
                self._add(self._repelled, term.key, change.node, change.sign)


def labels_of(state: ClusterState, namespace: str) -> Mapping[str, str]:
    """Labels of a namespace; none while it is not known."""
    found = state.namespaces.get(namespace)
    return {} if found is None else found.metadata.labels

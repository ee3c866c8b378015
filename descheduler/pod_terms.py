"""Required pod affinity and anti-affinity: which pods a term is about, as the scheduler reads it.   Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.affinity import PodAffinityTerm
from cluster.objects import LabelSelector, PodSpec
from descheduler import selectors


@dataclass(frozen=True, slots=True)
class Term:
    """One required term of a pod in a namespace. `matchLabelKeys` are part of the selector since admission."""

    key: str
    """The topology key."""
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether the term is about pods of a namespace with these labels of its own."""
        return namespace in self.namespaces or selectors.matches(self.namespace_selector, labels)


def attracting(spec: PodSpec, namespace: str) -> tuple[Term, ...]:
    """Pods that must be near."""
    affinity = spec.affinity
    if affinity is None or affinity.pod_affinity is None:
        return ()
    return tuple(_term(it, namespace) for it in affinity.pod_affinity.required)


def repelling(spec: PodSpec, namespace: str) -> tuple[Term, ...]:
    """Pods that must be far."""
    affinity = spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return tuple(_term(it, namespace) for it in affinity.pod_anti_affinity.required)


def _term(term: PodAffinityTerm, namespace: str) -> Term:
    """A term that says nothing about namespaces is about the pod's own."""
    own = not term.namespaces and term.namespace_selector is None
    named = frozenset({namespace}) if own else frozenset(term.namespaces)
    return Term(term.topology_key, named, term.namespace_selector, term.label_selector)

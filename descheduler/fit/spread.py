"""Topology spread constraints that must hold (DoNotSchedule).   Pure.

The scheduler's own default constraints are ScheduleAnyway: they cost score and never filter. Counted once per
template and kept right by following the changes of the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cluster.affinity import TopologySpreadConstraint
from cluster.objects import LabelSelector, Node, Pod
from descheduler import selectors
from descheduler.fit import node_rules
from descheduler.fit.misfit import FitCode, Misfit
from descheduler.picture import Change, Picture


def binding(pod: Pod) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints that filter."""
    return tuple(it for it in pod.spec.topology_spread_constraints if it.when_unsatisfiable == "DoNotSchedule")


class Spread:
    """How the pods of a template's constraints are spread now."""

    def __init__(self, picture: Picture, pod: Pod) -> None:
        constraints = binding(pod)
        self._picture = picture
        self._pod = pod
        keyed = [
            (found.name, found.node)
            for found in picture.state.nodes.values()
            if found.node is not None and all(it.topology_key in found.node.metadata.labels for it in constraints)
        ]
        self._balances = [_Balance(it, pod, keyed) for it in constraints]
        for other in picture.state.by_namespace.get(pod.metadata.namespace, {}).values():
            if other.node_name and other.metadata.deletion_timestamp is None:
                self._count(other, other.node_name, 1)
        self._seen = 0

    def fits(self, node: Node) -> bool:
        """Whether `misfits` would be empty."""
        return not any(self.misfits(node))

    def misfits(self, node: Node) -> Iterator[Misfit]:
        """One for each constraint that would not hold."""
        self._follow()
        for balance in self._balances:
            yield from balance.misfits(node.metadata.labels)

    def _follow(self) -> None:
        changes = self._picture.changes
        while self._seen < len(changes):
            self._apply(changes[self._seen])
            self._seen += 1

    def _apply(self, change: Change) -> None:
        if change.pod.metadata.namespace != self._pod.metadata.namespace:
            return
        if change.replacement or change.pod.metadata.deletion_timestamp is None:
            self._count(change.pod, change.node, change.sign)

    def _count(self, pod: Pod, name: str, sign: int) -> None:
        for balance in self._balances:
            balance.count(pod, name, sign)


class _Balance:
    """One constraint."""

    def __init__(self, constraint: TopologySpreadConstraint, pod: Pod, nodes: list[tuple[str, Node]]) -> None:
        self._constraint = constraint
        self._selector = _selector(constraint, pod.metadata.labels)
        self._self = int(selectors.matches(self._selector, pod.metadata.labels))
        self._empty = self._selector is not None and self._selector == LabelSelector()
        self._domains = {
            name: node.metadata.labels[constraint.topology_key]
            for name, node in nodes
            if _included(constraint, pod, node)
        }
        self._counts = dict.fromkeys(self._domains.values(), 0)
        self._least: int | None = None
        self._known: dict[int, tuple[Mapping[str, str], bool]] = {}

    def count(self, pod: Pod, name: str, sign: int) -> None:
        """A pod on a node that counts. An empty selector counts nobody, which is the scheduler's own oddity."""
        domain = self._domains.get(name)
        if domain is not None and not self._empty and self._selects(pod.metadata.labels):
            self._counts[domain] += sign
            self._least = None

    def misfits(self, labels: Mapping[str, str]) -> Iterator[Misfit]:
        """Too uneven, or the node is in no domain."""
        key, allowed = self._constraint.topology_key, self._constraint.max_skew
        domain = labels.get(key)
        if domain is None:
            yield Misfit(FitCode.TOPOLOGY_SPREAD, f"the node has no label {key}")
            return
        skew = self._counts.get(domain, 0) + self._self - self._minimum()
        if skew > allowed:
            yield Misfit(FitCode.TOPOLOGY_SPREAD, f"skew over {key} would be {skew}, at most {allowed} is allowed")

    def _minimum(self) -> int:
        """Of the domains there are; with fewer than wanted, the missing ones are taken for empty."""
        if self._least is None:
            few = len(self._counts) < (self._constraint.min_domains or 1)
            self._least = 0 if few else min(self._counts.values())
        return self._least

    def _selects(self, labels: Mapping[str, str]) -> bool:
        found = self._known.get(id(labels))
        if found is None:
            found = self._known[id(labels)] = labels, selectors.matches(self._selector, labels)
        return found[1]


def _included(constraint: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    """Whether the pods of a node count, and its domain is one to be filled."""
    if constraint.node_affinity_policy == "Honor" and not node_rules.wanted(pod.spec, node):
        return False
    honoured = constraint.node_taints_policy == "Honor"
    return not (honoured and node_rules.untolerated(pod.spec.tolerations, node.spec.taints))


def _selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> LabelSelector | None:
    """With the values the pod itself has for `matchLabelKeys`."""
    selector = constraint.label_selector
    if selector is None:
        return None
    own = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    if not own:
        return selector
    if any(selector.match_labels.get(key, value) != value for key, value in own.items()):
        return None  # two values for one label: nothing can match
    return LabelSelector({**selector.match_labels, **own}, selector.match_expressions)

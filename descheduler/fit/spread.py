"""Topology spread constraints that must hold (DoNotSchedule).   Pure.

The scheduler's own default constraints are ScheduleAnyway: they cost score and never filter. Counted once per
template and kept right by following the changes of the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from cluster.affinity import TopologySpreadConstraint
from cluster.objects import LabelSelector, Node, Pod
from descheduler import selectors
from descheduler.fit import node_rules
from descheduler.fit.crowd import Crowd
from descheduler.fit.misfit import FitCode, Misfit
from descheduler.picture import Change, Picture


def binding(pod: Pod) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints that filter."""
    return tuple(it for it in pod.spec.topology_spread_constraints if it.when_unsatisfiable == "DoNotSchedule")


class Spread:
    """How the pods of a template's constraints are spread now."""

    def __init__(self, picture: Picture, crowd: Crowd, pod: Pod) -> None:
        constraints = binding(pod)
        self._picture = picture
        self._pod = pod
        keys = {it.topology_key for it in constraints}
        self._balances = [_Balance(it, pod, _domains(it, pod, crowd, keys)) for it in constraints]
        for alike in crowd.pods(pod.metadata.namespace):
            for balance in self._balances:
                balance.count(alike.labels, alike.nodes, 1)
                balance.count(alike.labels, alike.leaving, -1)
        self._seen = 0

    def fits(self, node: Node) -> bool:
        """Whether `misfits` would be empty."""
        return not any(self.misfits(node))

    def misfits(self, node: Node) -> Iterator[Misfit]:
        """One for each constraint that would not hold."""
        self._follow()
        for balance in self._balances:
            yield from balance.misfits(node.metadata.labels)

    def stays_even(self, source: Node, target: Node) -> bool:
        """Whether a pod that has left the source makes nothing more uneven, beyond what is allowed, on the target.

        The scheduler looks at the domain a pod comes to. The one it leaves may become the least filled of all.
        """
        self._follow()
        return all(it.stays_even(source.metadata.labels, target.metadata.labels) for it in self._balances)

    def _follow(self) -> None:
        changes = self._picture.changes
        while self._seen < len(changes):
            self._apply(changes[self._seen])
            self._seen += 1

    def _apply(self, change: Change) -> None:
        if change.pod.metadata.namespace != self._pod.metadata.namespace:
            return
        if change.replacement or change.pod.metadata.deletion_timestamp is None:
            for balance in self._balances:
                balance.count(change.pod.metadata.labels, {change.node: 1}, change.sign)


class _Balance:
    """One constraint."""

    def __init__(self, constraint: TopologySpreadConstraint, pod: Pod, domains: Mapping[str, str]) -> None:
        self._constraint = constraint
        self._selector = _selector(constraint, pod.metadata.labels)
        self._self = int(selectors.matches(self._selector, pod.metadata.labels))
        self._empty = self._selector is not None and self._selector == LabelSelector()
        self._domains = domains
        self._counts = dict.fromkeys(self._domains.values(), 0)
        self._least: int | None = None

    def count(self, labels: Mapping[str, str], nodes: Mapping[str, int], sign: int) -> None:
        """Pods with these labels. An empty selector counts nobody, which is the scheduler's own oddity."""
        if self._empty or not nodes or not selectors.matches(self._selector, labels):
            return
        for name, count in nodes.items():
            domain = self._domains.get(name)
            if domain is not None:
                self._counts[domain] += sign * count
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

    def stays_even(self, source: Mapping[str, str], target: Mapping[str, str]) -> bool:
        """The skew with the pod on the target is allowed, or no larger than with it on the source."""
        after = self._skew_with(target.get(self._constraint.topology_key))
        return after <= self._constraint.max_skew or after <= self._skew_with(
            source.get(self._constraint.topology_key)
        )

    def _skew_with(self, domain: str | None) -> int:
        if domain not in self._counts:
            return max(self._counts.values(), default=0) - self._minimum()
        self._counts[domain] += self._self
        found = max(self._counts.values()) - min(self._counts.values())
        self._counts[domain] -= self._self
        return found

    def _minimum(self) -> int:
        """Of the domains there are; with fewer than wanted, the missing ones are taken for empty."""
        if self._least is None:
            few = len(self._counts) < (self._constraint.min_domains or 1)
            self._least = 0 if few else min(self._counts.values())
        return self._least


def _domains(
    constraint: TopologySpreadConstraint, pod: Pod, crowd: Crowd, keys: Collection[str]
) -> Mapping[str, str]:
    """The domain of each node that counts. A node without the keys of all constraints counts for none."""
    key, counts = constraint.topology_key, _inclusion(constraint, pod)
    if counts is None:
        return crowd.domains(keys, key)
    return {it.metadata.name: it.metadata.labels[key] for it in crowd.nodes(keys) if counts(it)}


def _inclusion(constraint: TopologySpreadConstraint, pod: Pod) -> Callable[[Node], bool] | None:
    """Whether the pods of a node count, and its domain is one to be filled; None where all nodes do."""
    spec = pod.spec
    chosen = constraint.node_affinity_policy == "Honor" and (
        bool(spec.node_selector) or node_rules.required_affinity(spec) is not None
    )
    clean = constraint.node_taints_policy == "Honor"
    if not (chosen or clean):
        return None

    def included(node: Node) -> bool:
        if chosen and not node_rules.wanted(spec, node):
            return False
        return not (clean and node_rules.untolerated(spec.tolerations, node.spec.taints))

    return included


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

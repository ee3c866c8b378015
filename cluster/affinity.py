"""Where a pod may and would rather run: affinity, spread and tolerations, as the scheduler reads them."""

from __future__ import annotations

from msgspec import field

from cluster.meta import LabelSelector, Part

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeSelectorRequirement(Part, frozen=True):
    """One expression over node labels or fields: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Part, frozen=True):
    """Expressions that must all hold; an empty term matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Part, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Part, frozen=True):
    """A term that adds its weight to the score of the nodes it matches."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Part, frozen=True):
    """Wishes about nodes."""

    required: NodeSelector | None = field(default=None, name=_REQUIRED)
    preferred: tuple[PreferredSchedulingTerm, ...] = field(default=(), name=_PREFERRED)


class PodAffinityTerm(Part, frozen=True):
    """Pods to be near to, or away from, within one topology domain."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Part, frozen=True):
    """A preferred term and its weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Part, frozen=True):
    """Wishes about other pods; also the shape of anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name=_REQUIRED)
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(default=(), name=_PREFERRED)


class Affinity(Part, frozen=True):
    """All three kinds."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Part, frozen=True):
    """How evenly matching pods must be spread over a topology."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class Toleration(Part, frozen=True):
    """A taint the pod can live with. An empty key with Exists tolerates everything, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

"""The parts of an admission review that are read, as typed values; everything else is skipped while decoding.

Node affinity decodes to plain mappings of known shape, because that is what `policy.affinity` reads. A field
that is absent and one that is null mean the same to the API server, and here both are None.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypedDict

import msgspec

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Rule(TypedDict, total=False):
    """A node selector requirement."""

    key: str
    operator: str
    values: list[str] | None


class Term(TypedDict, total=False):
    """A node selector term: rules that must all hold; a term without rules matches no node."""

    matchExpressions: list[Rule] | None
    matchFields: list[Rule] | None


class Required(TypedDict, total=False):
    """Terms of which one must hold."""

    nodeSelectorTerms: list[Term] | None


class Preferred(TypedDict, total=False):
    """A term that adds its weight to the score of a node."""

    weight: int
    preference: Term | None


class NodeAffinity(TypedDict, total=False):
    """What a pod asks of its node."""

    requiredDuringSchedulingIgnoredDuringExecution: Required | None
    preferredDuringSchedulingIgnoredDuringExecution: list[Preferred] | None


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an object; unknown fields are skipped, for Kubernetes adds some with every release."""


class Affinity(_Part, frozen=True):
    """Only whether it is there, and node affinity; pod affinity is none of our business."""

    node_affinity: NodeAffinity | None = None


class Toleration(_Part, frozen=True):
    """A taint the pod puts up with; no key with `Exists` is every taint, no effect is every effect."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class OperatingSystem(_Part, frozen=True):
    """`spec.os`."""

    name: str | None = None


class OwnerReference(_Part, frozen=True):
    """Who made the pod."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(_Part, frozen=True):
    """`metadata`; uid and creation time do not exist yet when a pod is admitted."""

    name: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class Spec(_Part, frozen=True):
    """`spec`."""

    node_name: str | None = None
    scheduler_name: str | None = None
    os: OperatingSystem | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None


class Pod(_Part, frozen=True):
    """A pod as it is about to be created; also what `policy.placement` reads of it."""

    metadata: Metadata
    spec: Spec

    @property
    def name(self) -> str:
        """Empty for pods whose name the API server makes up after admission."""
        return self.metadata.name or ""

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels, none where the field is absent."""
        return self.metadata.labels or NOTHING

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations, none where the field is absent."""
        return self.metadata.annotations or NOTHING

    @property
    def selector(self) -> Mapping[str, str]:
        """`spec.nodeSelector`."""
        return self.spec.node_selector or NOTHING

    @property
    def controller(self) -> OwnerReference | None:
        """The object that would create this pod again."""
        return next((it for it in self.metadata.owner_references or () if it.controller), None)

    @property
    def node_affinity(self) -> NodeAffinity:
        """`spec.affinity.nodeAffinity`, empty where a field on the way is absent."""
        affinity = self.spec.affinity
        return (affinity.node_affinity if affinity else None) or {}

    @property
    def required_terms(self) -> list[Term]:
        """The alternatives of the required node affinity, empty ones included: positions matter to a patch."""
        required = self.node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        return required.get("nodeSelectorTerms") or []

    @property
    def preferred_terms(self) -> list[Preferred]:
        """The preferences of the node affinity."""
        return self.node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []

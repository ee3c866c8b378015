"""What every object carries: metadata, owners, conditions, label selectors.

All typed objects follow the same rules. They hold only the fields we read, everything else is skipped while
decoding; they are frozen; every field has a default, so that a bookmark or a sparse object decodes; they are trees
and so need no cycle collector (`gc=False`, except for what is shared through weak references). The names are those
of the API in snake case.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec


class Part(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of everything typed. Defaults are left out when encoding, as the API does."""


class OwnerReference(Part, frozen=True, gc=True, weakref=True):
    """Who the garbage collector thinks the object belongs to. Shared by the pods of one owner."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Part, frozen=True):
    """Identity and bookkeeping of an object; managedFields are never kept."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages the object, if there is one."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


class PartialObjectMetadata(Part, frozen=True):
    """Any object asked for with `metadata_only`."""

    metadata: ObjectMeta = ObjectMeta()


class Condition(Part, frozen=True):
    """One condition of anything but a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class LabelSelectorRequirement(Part, frozen=True):
    """One expression over labels: In, NotIn, Exists, DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Part, frozen=True):
    """Labels and expressions, all of which must hold. Empty selects everything; an absent selector is None."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Present(Part, frozen=True):
    """Stands for an object of which only the presence matters."""


def micro_time(at: datetime) -> str:
    """A time as MicroTime fields (leases, events) want it: UTC with exactly six digits, or the server refuses it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

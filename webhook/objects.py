"""What a watch needs to decode of each kind of object; unknown fields are skipped.

Wire types only: `derive` makes the parts of a `View` from them.
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from webhook.pod import OwnerReference

Time = Annotated[datetime, msgspec.Meta(tz=True)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an object; unknown fields are skipped."""


class Meta(_Part, frozen=True):
    """`metadata` of any object."""

    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class AnyObject(_Part, frozen=True):
    """A namespace, or a workload as PartialObjectMetadata."""

    metadata: Meta
    kind: str = ""


class NodeTaint(_Part, frozen=True):
    """A taint."""

    key: str
    effect: str
    value: str | None = None


class NodeSpec(_Part, frozen=True):
    """`spec` of a node."""

    taints: tuple[NodeTaint, ...] | None = None


class Node(_Part, frozen=True):
    """A node."""

    metadata: Meta
    spec: NodeSpec = NodeSpec()


class Class(_Part, frozen=True):
    """A PriorityClass."""

    metadata: Meta
    value: int
    global_default: bool | None = None
    preemption_policy: str | None = None


class PodRef(_Part, frozen=True):
    """The pod a move is about."""

    name: str = ""
    uid: str = ""


class MoveSpec(_Part, frozen=True):
    """`spec` of a PodMigration; a user may write most of it, so it names nobody's owner."""

    pod_ref: PodRef = PodRef()
    strategy: str = ""


class Resolved(_Part, frozen=True):
    """What the migrator found out."""

    owner: OwnerReference | None = None
    pod_uid: str = ""
    source_node: str = ""
    target_node: str = ""


class Traded(_Part, frozen=True):
    """The move whose target a replacement took, and the one it has instead."""

    migration: str = ""
    target_node: str = ""


class MoveStatus(_Part, frozen=True):
    """`status` of a PodMigration, which only the migrator writes."""

    phase: str = ""
    started_at: Time | None = None
    resolved: Resolved | None = None
    replacement: dict[str, Any] | None = None
    exchange: Traded | None = None


class PodMigration(_Part, frozen=True):
    """A PodMigration."""

    metadata: Meta
    spec: MoveSpec = MoveSpec()
    status: MoveStatus = MoveStatus()

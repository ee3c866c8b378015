"""The objects of `objects` as a watch brings them: with a version, and with defaults for what a bookmark lacks.

Wire types only.
"""

import msgspec

from webhook.objects import AnyObject, Class, Meta, MoveSpec, MoveStatus, Node, NodeSpec, PodMigration


class WatchedMeta(Meta, frozen=True, kw_only=True):
    """`metadata` with what a reflector needs."""

    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class WatchedObject(AnyObject, frozen=True, kw_only=True):
    """A namespace, or a workload; of the latter only metadata comes, without its kind."""

    metadata: WatchedMeta = WatchedMeta()


class WatchedNode(Node, frozen=True, kw_only=True):
    """A node."""

    metadata: WatchedMeta = WatchedMeta()
    spec: NodeSpec = NodeSpec()


class WatchedClass(Class, frozen=True, kw_only=True):
    """A PriorityClass."""

    metadata: WatchedMeta = WatchedMeta()
    value: int = 0


class WatchedMove(PodMigration, frozen=True, kw_only=True):
    """A PodMigration."""

    metadata: WatchedMeta = WatchedMeta()
    spec: MoveSpec = MoveSpec()
    status: MoveStatus = MoveStatus()


Watched = WatchedObject | WatchedNode | WatchedClass | WatchedMove

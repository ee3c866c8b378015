"""What kube-scheduler sends to an extender and takes back: k8s.io/kube-scheduler/extender/v1.

Those Go types have no JSON tags, so their own fields are capitalised, and what is inside a pod or a node is not.
Wire types only. Nodes come as names where the scheduler is told that we keep our own (`nodeCacheCapable`), else
whole; whole ones go back byte for byte, because the scheduler goes on with those that come back.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from cluster.errors import Malformed
from cluster.meta import OwnerReference
from cluster.tolerant import Tolerant

WHOLE_AT_MOST: Final = 2_000
"""Whole nodes in one question. One that a kubelet looks after is 4 kB at the least, so more do not fit into a body
(`server.BODY_LIMIT_BYTES`) that a scheduler means. Each costs up to 80 us, and all other questions wait: without this
a few bytes of `{}` each would be worth seconds.
"""
NAMES_AT_MOST: Final = 20_000
"""Names in one question, 3 us each: four times the nodes that Kubernetes is made for."""

Time = Annotated[datetime, msgspec.Meta(tz=True)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a pod; unknown fields are skipped."""


class PodMeta(_Part, frozen=True):
    """`metadata` of a pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: Time | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


class Affinity(_Part, frozen=True):
    """`spec.affinity`, of which only the part about nodes is read."""

    node_affinity: dict[str, Any] = {}


class PodSpec(_Part, frozen=True):
    """`spec` of a pod."""

    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()


class PodCondition(_Part, frozen=True):
    """How an earlier try to place it ended."""

    type: str = ""
    status: str = ""
    reason: str = ""


class PodStatus(_Part, frozen=True):
    """`status` of a pod."""

    conditions: tuple[PodCondition, ...] = ()


class Pod(_Part, frozen=True):
    """The pod that is to be placed."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages it."""
        return next((it for it in self.metadata.owner_references if it.controller), None)


class NodeList(_Part, frozen=True):
    """Whole nodes, not looked into yet."""

    items: tuple[msgspec.Raw, ...] = ()


class NodeMeta(_Part, frozen=True):
    """Which node it is, and as of when."""

    name: str = ""
    resource_version: str = ""


class NamedNode(_Part, frozen=True):
    """As much of a whole node as tells whether it is known already; the rest is most of the work."""

    metadata: NodeMeta = NodeMeta()


class Args(msgspec.Struct, frozen=True, rename="pascal"):
    """ExtenderArgs: nodes in one of two forms."""

    pod: Pod
    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None


class FilterResult(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    """ExtenderFilterResult, in the form in which the nodes came."""

    nodes: Mapping[str, Sequence[msgspec.Raw]] | None = None
    node_names: Sequence[str] | None = None
    failed_and_unresolvable_nodes: Mapping[str, str] = {}
    """Not `FailedNodes`: no pre-emption makes a node stay that is going away."""


class HostPriority(msgspec.Struct, frozen=True, rename="pascal"):
    """The score of one node."""

    host: str
    score: int


_ARGS: Final[Tolerant[Args]] = Tolerant(Args)
_ENCODER: Final = msgspec.json.Encoder()

NotUnderstood = Malformed


class TooMany(NotUnderstood):
    """More nodes than one question may be about; the message is ours, and quotes nothing."""


def parse(body: bytes) -> Args:
    """Raises NotUnderstood and nothing else."""
    args = _ARGS.decode(body)
    _bounded(len(args.nodes.items) if args.nodes else 0, WHOLE_AT_MOST, "whole nodes")
    _bounded(len(args.node_names or ()), NAMES_AT_MOST, "names of nodes")
    return args


def _bounded(count: int, most: int, what: str) -> None:
    if count > most:
        raise TooMany(f"{count} {what} in one question, at most {most} are read")


def filtered(args: Args, whole: Mapping[str, msgspec.Raw], passed: Sequence[str], out: Mapping[str, str]) -> bytes:
    """An answer to /filter; `whole` are the nodes by name if they came whole."""
    if args.node_names is not None:
        return _ENCODER.encode(FilterResult(node_names=passed, failed_and_unresolvable_nodes=out))
    nodes = {"items": [whole[name] for name in passed]}
    return _ENCODER.encode(FilterResult(nodes=nodes, failed_and_unresolvable_nodes=out))


def everything(args: Args) -> bytes:
    """An answer to /filter that lets all nodes pass as they came."""
    if args.node_names is not None:
        return _ENCODER.encode(FilterResult(node_names=args.node_names))
    return _ENCODER.encode(FilterResult(nodes={"items": args.nodes.items if args.nodes else ()}))


def prioritized(scores: Iterable[tuple[str, int]]) -> bytes:
    """An answer to /prioritize."""
    return _ENCODER.encode([HostPriority(name, score) for name, score in scores])

"""From the bytes of one question to the bytes of the answer.   Pure; never a reason for a pod to wait.

A question that cannot be read is told so, and the scheduler goes on without us. Whatever fails after that lets
every node pass, with no score.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from cluster.decode import Decoder
from cluster.node import Node
from extender import filter as filters
from extender import score, view, wire, wish
from extender.promises import Promises
from extender.view import NodeFacts, View
from extender.wire import Args, NamedNode, NodeMeta
from extender.wish import Wish
from policy.settings_extender import By

_NODE: Final[Decoder[Node]] = Decoder(Node)
_NAMED: Final[Decoder[NamedNode]] = Decoder(NamedNode)


class Result(StrEnum):
    """How a question was answered."""

    ANSWERED = "answered"
    PASSED = "passed"
    """Something of ours failed, so everything passed."""
    REFUSED = "refused"
    """It could not be read."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer, and what there is to count about it."""

    body: bytes
    result: Result
    out: int = 0
    """Nodes that were kept out."""
    target: bool | None = None
    """Whether the target of a move was among the nodes; None where there is no move."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Case:
    """A question that was understood."""

    candidates: Mapping[str, NodeFacts]
    whole: Mapping[str, msgspec.Raw]
    wish: Wish
    moved: bool
    target: str | None


def to_filter(body: bytes, seen: View, now: datetime, promises: Promises) -> Outcome:
    """Answer /filter."""
    try:
        args = wire.parse(body)
    except wire.NotUnderstood as unreadable:
        return _refused(unreadable)
    try:
        case = _understood(args, seen, now, promises)
        exact = seen.settings.extender.target is By.FILTER and wish.may_be_held(args.pod, now)
        passed = filters.nodes(case.candidates, case.wish, target=case.target if exact else None)
        sent = wire.filtered(args, case.whole, passed.names, passed.out)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with us, the pod is placed
        return Outcome(wire.everything(args), Result.PASSED, error=type(error).__name__)
    return Outcome(sent, Result.ANSWERED, out=len(passed.out), target=_reached(case))


def to_prioritize(body: bytes, seen: View, now: datetime, promises: Promises) -> Outcome:
    """Answer /prioritize."""
    try:
        args = wire.parse(body)
    except wire.NotUnderstood as unreadable:
        return _refused(unreadable)
    try:
        case = _understood(args, seen, now, promises)
        scores = score.nodes(
            case.candidates, case.wish, loads=seen.loads, settings=seen.settings.extender, target=case.target
        )
        sent = wire.prioritized(scores)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with us, the pod is placed
        return Outcome(wire.prioritized(()), Result.PASSED, error=type(error).__name__)
    return Outcome(sent, Result.ANSWERED, target=_reached(case))


def _understood(args: Args, seen: View, now: datetime, promises: Promises) -> _Case:
    whole: dict[str, msgspec.Raw] = {}
    if args.node_names is not None:
        known = seen.nodes
        candidates = {name: known.get(name, view.NEW) for name in args.node_names}
    else:
        candidates = {}
        for raw in args.nodes.items if args.nodes else ():
            named = _NAMED.decode(raw).metadata
            whole[named.name] = raw
            candidates[named.name] = _facts(raw, named, seen, now)
    moves = wish.moves(args.pod, seen, now) if seen.moves else ()
    target = None
    if moves:
        staying = {name for name, it in candidates.items() if it.sign not in filters.REASONS}
        target = promises.target(moves, pod=args.pod.metadata.uid, nodes=staying, now=now)
    return _Case(candidates, whole, wish.of(args.pod, seen), bool(moves), target)


def _facts(raw: msgspec.Raw, named: NodeMeta, seen: View, now: datetime) -> NodeFacts:
    """What is known of just this version of the node; else read from what was sent."""
    known = seen.nodes.get(named.name)
    if known is not None and known.version == named.resource_version != "":
        return known
    return view.facts(_NODE.decode(raw), seen.settings, seen.keys, now)


def _reached(case: _Case) -> bool | None:
    return case.target is not None if case.moved else None


def _refused(why: Exception) -> Outcome:
    told = str(why).encode() if isinstance(why, wire.TooMany) else b"not ExtenderArgs"
    return Outcome(told, Result.REFUSED, error=type(why).__name__)

"""Open moves from PodMigrations, by the pods whose replacement they wait for.   Pure.

Who owns the pod is read from `status` alone: whoever may write a `spec` could name somebody else's.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from cluster.migration import PodMigration
from extender.view import Move
from policy import exchange, values
from policy.exchange import Exchange

_CLOSED: Final = frozenset({"Completed", "Failed", "Cancelled"})


def waiting(seen: Iterable[PodMigration]) -> Mapping[tuple[str, str], tuple[Move, ...]]:
    """Open moves with a target and without a replacement, by namespace and UID of the controller, oldest first."""
    known = tuple(seen)
    traded = _exchanges(known)
    found: dict[tuple[str, str], list[Move]] = {}
    for one in known:
        move = _move(one, traded.get(one.metadata.namespace, ()))
        if move is not None:
            owner = one.status.resolved.owner if one.status.resolved else None
            found.setdefault((one.metadata.namespace, owner.uid if owner else ""), []).append(move)
    return {key: tuple(sorted(moves, key=lambda it: (it.started, it.key))) for key, moves in found.items()}


def _move(seen: PodMigration, traded: Iterable[Exchange]) -> Move | None:
    status, resolved = seen.status, seen.status.resolved
    started = status.started_at or seen.metadata.creation_timestamp
    if resolved is None or started is None or status.phase in _CLOSED or status.replacement is not None:
        return None
    target = exchange.target(seen.metadata.name, resolved.target_node, traded)
    if not target:
        return None
    return Move(
        key=seen.metadata.key,
        id=values.label_for_node(seen.metadata.name),
        owner_kind=resolved.owner.kind if resolved.owner else "",
        pod_name=seen.spec.pod_ref.name,
        pod_uid=resolved.pod_uid or seen.spec.pod_ref.uid,
        target=target,
        started=started,
    )


def _exchanges(seen: Iterable[PodMigration]) -> Mapping[str, list[Exchange]]:
    """By namespace. A move that has ended keeps its word: the one it traded with may still be open."""
    found: dict[str, list[Exchange]] = {}
    for one in seen:
        traded, landed = one.status.exchange, one.status.replacement
        if traded is not None and landed is not None:
            record = Exchange(traded.migration, landed.node, traded.target_node)
            found.setdefault(one.metadata.namespace, []).append(record)
    return found

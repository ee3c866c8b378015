"""Objects of the cluster to the parts of a `View`: small pure functions, run when a watch reports, not per pod.

What ends up in a pod is checked here, once: a label value that the API server refuses would make it refuse
the pod.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from policy import capacity, exchange, keys, mix, values
from policy.capacity import ANY, CapacityLabel, CapacityType, SpotTaint
from policy.exchange import Exchange
from policy.keys import Keys
from webhook.counts import Counted, Mixed, Owner
from webhook.objects import AnyObject, Class, Meta, Node, PodMigration
from webhook.pod import NOTHING
from webhook.view import CapacityInUse, Metadata, Migration, PriorityClass, Taint, Workload

_CLOSED: Final = frozenset({"Completed", "Failed", "Cancelled"})


def metadata(of: Meta, ours: Keys) -> Metadata:
    """Labels and annotations of an object, only those that are ours."""
    wanted = (ours.rescheduling, ours.spot, ours.tier, ours.spot_percentage, ours.min_on_demand)
    return Metadata(_only(of.labels, wanted), _only(of.annotations, wanted))


def workload(seen: AnyObject, ours: Keys) -> Workload:
    """A workload from its metadata."""
    of = seen.metadata
    owner = next((it for it in of.owner_references or () if it.controller), None)
    return Workload(
        uid=of.uid, kind=seen.kind, namespace=of.namespace, name=of.name, owner=owner, metadata=metadata(of, ours)
    )


def priority_class(seen: Class) -> PriorityClass:
    """A PriorityClass with the defaults of the API."""
    policy = seen.preemption_policy or "PreemptLowerPriority"
    return PriorityClass(seen.metadata.name, seen.value, bool(seen.global_default), policy)


def capacity_in_use(nodes: Iterable[Node], table: tuple[CapacityLabel, ...]) -> tuple[CapacityInUse, ...]:
    """The labels that decide the capacity of at least one node.

    A node with several such labels counts for the one that decides, so that it is not preferred twice.
    """
    counts = Counter(
        (found.key, found.type)
        for found in (capacity.read(node.metadata.labels or NOTHING, table) for node in nodes)
        if found.type is not CapacityType.UNKNOWN
    )
    used = {key for key, _ in counts}
    rows = {row.key: row for row in reversed(table) if row.key in used}
    in_order = [rows[row.key] for row in table if rows.get(row.key) is row]
    return tuple(
        CapacityInUse(
            key=row.key,
            is_spot=spot,
            not_spot=_not_spot(row),
            spot_nodes=counts[row.key, CapacityType.SPOT],
            on_demand_nodes=counts[row.key, CapacityType.ON_DEMAND],
        )
        for row, spot in ((row, _is_spot(row)) for row in in_order)
        if spot
    )


def spot_taints(nodes: Iterable[Node], table: tuple[SpotTaint, ...]) -> tuple[Taint, ...]:
    """The taints that only say spot, of nodes that exist; `*` is the value where the table takes any."""
    seen = {(it.key, it.value or "", it.effect) for node in nodes for it in node.spec.taints or ()}
    rows = {(row.key, row.value, row.effect) for row in table}
    found = {
        Taint(key, ANY if (key, ANY, effect) in rows else value, effect)
        for key, value, effect in seen
        if capacity.is_spot_taint(key, value, effect, table)
    }
    return tuple(sorted(found, key=lambda it: (it.key, it.value, it.effect)))


def hostnames(nodes: Iterable[Node]) -> Mapping[str, str]:
    """The hostname labels that are not the node's name; kubelets are free to choose."""
    labels = ((node.metadata.name, (node.metadata.labels or NOTHING).get(keys.HOSTNAME, "")) for node in nodes)
    return {name: label for name, label in labels if label not in {"", name}}


def spot_nodes(nodes: Iterable[Node], table: tuple[CapacityLabel, ...]) -> frozenset[str]:
    """Names of spot nodes."""
    return frozenset(
        node.metadata.name
        for node in nodes
        if capacity.capacity_type(node.metadata.labels or NOTHING, table) is CapacityType.SPOT
    )


def mixed(of: Meta, ours: Keys) -> Mixed | None:
    """What a pod counts for in the mix of its owner; None if it does not. One that is being deleted does not count:
    its place is free.
    """
    said = of.annotations or NOTHING
    side = mix.chosen(said, ours)
    owner = next((it.uid for it in of.owner_references or () if it.controller), "")
    if side is None or not owner or of.deletion_timestamp is not None:
        return None
    return Mixed((of.namespace, owner), side, said.get(ours.decided_by, ""))


def counts(pods: Iterable[Meta], ours: Keys) -> Mapping[Owner, Counted]:
    """Pods of mixes that stand still, such as those of a dump."""
    found: dict[Owner, Counted] = {}
    for one in pods:
        pod = mixed(one, ours)
        if pod is not None:
            found[pod.owner] = found.get(pod.owner, Counted()).plus(pod.side)
    return found


def migrations(seen: Iterable[PodMigration]) -> Mapping[tuple[str, str], tuple[Migration, ...]]:
    """Open moves without a replacement, by namespace and UID of the pod's controller, oldest first."""
    found: dict[tuple[str, str], list[Migration]] = {}
    known = tuple(seen)
    traded = _exchanges(known)
    for one in known:
        move = migration(one, traded.get(one.metadata.namespace, ()))
        if move is not None:
            owner = one.status.resolved.owner if one.status.resolved else None
            found.setdefault((one.metadata.namespace, owner.uid if owner else ""), []).append(move)
    return {key: tuple(sorted(moves, key=lambda move: (move.started, move.id))) for key, moves in found.items()}


def migration(seen: PodMigration, traded: Iterable[Exchange] = ()) -> Migration | None:
    """An open move without a replacement; None once it is over, or before the migrator has looked at it.

    Who owns the pod is read from `status` alone: whoever may write a `spec` could name somebody else's.
    """
    resolved, started = seen.status.resolved, seen.status.started_at or seen.metadata.creation_timestamp
    if resolved is None or started is None or seen.status.phase in _CLOSED or seen.status.replacement:
        return None
    return Migration(
        id=values.label_for_node(seen.metadata.name),
        owner_kind=resolved.owner.kind if resolved.owner else "",
        pod_name=seen.spec.pod_ref.name,
        pod_uid=resolved.pod_uid or seen.spec.pod_ref.uid,
        source=resolved.source_node,
        target=exchange.target(seen.metadata.name, resolved.target_node, traded),
        strategy=values.label_for_node(seen.spec.strategy) if seen.spec.strategy else "",
        started=started,
    )


def _exchanges(seen: Iterable[PodMigration]) -> Mapping[str, list[Exchange]]:
    """By namespace. A move that has ended keeps its word: the one it traded with may still be open."""
    found: dict[str, list[Exchange]] = {}
    for one in seen:
        traded, landed = one.status.exchange, one.status.replacement
        if traded is not None and landed:
            record = Exchange(traded.migration, str(landed.get("node", "")), traded.target_node)
            found.setdefault(one.metadata.namespace, []).append(record)
    return found


def _only(own: Mapping[str, str] | None, wanted: Iterable[str]) -> Mapping[str, str]:
    return {key: own[key] for key in wanted if key in own} if own else NOTHING


def _fit(listed: Iterable[str]) -> list[str]:
    return [value for value in listed if value != ANY and values.is_label_value(value)]


def _is_spot(row: CapacityLabel) -> tuple[Mapping[str, Any], ...]:
    if ANY not in row.spot:
        listed = _fit(row.spot)
        return ({"key": row.key, "operator": "In", "values": listed},) if listed else ()
    there = {"key": row.key, "operator": "Exists"}
    others = _fit(row.on_demand)
    return (there, {"key": row.key, "operator": "NotIn", "values": others}) if others else (there,)


def _not_spot(row: CapacityLabel) -> tuple[Mapping[str, Any], ...]:
    if ANY not in row.spot:
        listed = _fit(row.spot)
        return ({"key": row.key, "operator": "NotIn", "values": listed},) if listed else ()
    others = _fit(row.on_demand)
    if others:
        return ({"key": row.key, "operator": "In", "values": others},)
    return ({"key": row.key, "operator": "DoesNotExist"},)

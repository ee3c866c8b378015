"""Which new pod stands in for which moved one.   Pure.

The webhook's labels are a hint made before anybody knew where the pod would land; this is the decision. A
replacement is a pod of the same owner that came after the eviction was announced and that no other migration has.
Of several it is the one that landed on the migration's target. One that landed on the target of a sibling move that
is still to come is as good: the two trade targets. The rest are given out by age.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cluster.objects import Pod, PodMigration
from descheduler.migration import goals
from descheduler.node_state import Key
from descheduler.state import ClusterState
from policy import exchange
from policy.exchange import Exchange

SKEW: Final = timedelta(seconds=5)
"""How far our clock may be ahead of the API server's, which stamps pods to the second."""
NEVER: Final = datetime.max.replace(tzinfo=UTC)
WAITING: Final = frozenset({"AwaitReplacement", "AwaitAvailable"})
"""Steps in which a move looks for its replacement."""
YOUNG: Final = timedelta(seconds=60)
"""Pods of the owner younger than this are named in the intent, so that clocks do not decide about them."""


class Match(NamedTuple):
    """A replacement, and the sibling move whose target it is on, if that is how it was found."""

    pod: Pod
    partner: str = ""


def find(migration: PodMigration, state: ClusterState) -> Match | None:
    """The pod that stands in for the source of this migration; None as long as there is none on a node."""
    resolved = migration.status.resolved
    owner = resolved.owner if resolved is not None else None
    if owner is None:
        copied = _copy(migration, state)
        return Match(copied) if copied is not None else None
    claimed = _claimed(migration, state)
    if claimed is not None:
        traded = migration.status.exchange
        return Match(claimed, traded.migration if traded is not None else "")
    return _given_out(migration, state).get(migration.metadata.key)


def goal(migration: PodMigration, state: ClusterState) -> str:
    """Where the move goes by now. A trade counts from the moment a sibling's replacement is seen on our target, not
    only when it is written down: a target that a sibling has filled up is no reason to call the move off.
    """
    recorded = goals.of(migration, state)
    if migration.status.replacement is not None:
        return recorded
    seen = [
        Exchange(match.partner, match.pod.node_name, goals.of(state.migrations[key], state))
        for key, match in _given_out(migration, state).items()
        if match.partner
    ]
    return exchange.target(migration.metadata.name, recorded, seen)


def young_siblings(pod: Pod, state: ClusterState, now: datetime) -> tuple[str, ...]:
    """UIDs of pods of the same owner that were there when the eviction was announced and could be mistaken."""
    owner = pod.metadata.controller
    if owner is None:
        return ()
    found = state.by_owner.get((pod.metadata.namespace, owner.uid), {}).values()
    return tuple(sorted(it.metadata.uid for it in found if now - (it.metadata.creation_timestamp or now) < YOUNG))


def candidates(migration: PodMigration, state: ClusterState) -> Iterator[Pod]:
    """Pods that could be the replacement, oldest first."""
    intent = migration.status.intent or {}
    since = _announced(migration)
    known = {*intent.get("known", ()), _source_uid(migration)}
    for pod in sorted(_of_owner(migration, state), key=_age):
        created = pod.metadata.creation_timestamp
        late_enough = created is not None and since is not None and created >= (since - SKEW).replace(microsecond=0)
        if late_enough and pod.metadata.uid not in known and pod.metadata.deletion_timestamp is None:
            yield pod


def _claimed(migration: PodMigration, state: ClusterState) -> Pod | None:
    """What was written down as the replacement, while it lives. One that is deleted is replaced in its turn."""
    claimed = migration.status.replacement
    if claimed is None or not claimed.uid:
        return None
    known = state.pods.get((migration.metadata.namespace, claimed.name))
    alive = known is not None and known.metadata.uid == claimed.uid and known.metadata.deletion_timestamp is None
    return known if alive else None


def _copy(migration: PodMigration, state: ClusterState) -> Pod | None:
    """Of a pod without a controller: the copy that was announced by its name. Another pod may have that name, so it
    must say whose copy it is: one copy cannot stand in for two. One that has ended is still the copy, and has to go.
    """
    key = migration.metadata.namespace, (migration.status.intent or {}).get("copy", "")
    found = state.pods.get(key) or state.ended.get(key)
    if found is None or found.metadata.deletion_timestamp is not None:
        return None
    original = found.metadata.annotations.get(state.keys.original_pod)
    return found if original == _source_uid(migration) != "" else None


def _given_out(migration: PodMigration, state: ClusterState) -> dict[Key, Match]:
    """All migrations of one owner are served together, so that none takes what belongs to another; and once for all
    of them.
    """
    kept, key = state.moving.kept, (_given_out, migration.metadata.namespace, _owner_uid(migration))
    if key not in kept:
        kept[key] = _give_out(migration, state)
    found: dict[Key, Match] = kept[key]
    return found


def _give_out(migration: PodMigration, state: ClusterState) -> dict[Key, Match]:
    unserved = sorted(_rivals(migration, state), key=lambda it: (_announced(it) or NEVER, it.metadata.name))
    waiting = [it for it in unserved if it.status.step in WAITING]
    if not waiting:
        return {}
    space, taken = migration.metadata.namespace, state.moving.taken
    free = {
        it.metadata.key: [
            pod for pod in candidates(it, state) if pod.node_name and (space, pod.metadata.uid) not in taken
        ]
        for it in waiting
    }
    handout = _Handout(free, {it.metadata.key: goals.of(it, state) for it in unserved})
    guided = [it for it in waiting if handout.targets[it.metadata.key]]
    for rival in guided:
        handout.give(rival, on=handout.targets[rival.metadata.key])
    for rival in filter(_may_trade, guided):
        handout.trade(rival, unserved)
    for rival in waiting:
        handout.give(rival)
    return handout.given


class _Handout:
    """Who got which pod so far, and what is left."""

    def __init__(self, free: dict[Key, list[Pod]], targets: dict[Key, str]) -> None:
        self._free = free
        self.targets = targets
        self.given: dict[Key, Match] = {}

    def give(self, rival: PodMigration, *, on: str = "", partner: str = "") -> bool:
        """The oldest pod on that node, or on any, unless the migration has one already."""
        key = rival.metadata.key
        pod = next((it for it in self._free[key] if it.node_name == (on or it.node_name)), None)
        if pod is None or key in self.given:
            return False
        self.given[key] = Match(pod, partner)
        for others in self._free.values():
            others[:] = [it for it in others if it.metadata.uid != pod.metadata.uid]
        return True

    def trade(self, rival: PodMigration, siblings: Iterable[PodMigration]) -> None:
        """A pod on the target of a sibling that has none."""
        for other in siblings:
            on = self.targets[other.metadata.key]
            alone = other.metadata.key not in self.given and other is not rival
            if alone and on and self.give(rival, on=on, partner=other.metadata.name):
                self.targets[other.metadata.key] = self.targets[rival.metadata.key]
                return


def _may_trade(migration: PodMigration) -> bool:
    """Pods of a StatefulSet are not alike."""
    resolved = migration.status.resolved
    return resolved is not None and resolved.owner is not None and resolved.owner.kind != "StatefulSet"


def _rivals(migration: PodMigration, state: ClusterState) -> Iterator[PodMigration]:
    """Open migrations of the same owner that have no replacement yet, this one included."""
    wanted, namespace = _owner_uid(migration), migration.metadata.namespace
    others = state.moving.by_owner.get((namespace, wanted), ()) if wanted else state.open_migrations()
    for other in others:
        unserved = other.status.resolved is not None and _claimed(other, state) is None
        if unserved and _owner_uid(other) == wanted:
            yield other


def _of_owner(migration: PodMigration, state: ClusterState) -> Iterable[Pod]:
    resolved = migration.status.resolved
    owner = resolved.owner if resolved is not None else None
    if owner is None:
        return ()
    if owner.kind == "StatefulSet":
        pod = state.pods.get((migration.metadata.namespace, migration.spec.pod_ref.name))
        return (pod,) if pod is not None else ()
    namespace = migration.metadata.namespace
    direct = list(state.by_owner.get((namespace, owner.uid), {}).values())
    above = resolved.workload.uid if resolved is not None and resolved.workload is not None else ""
    if above and above != owner.uid:
        # After a rollout the new pod belongs to another ReplicaSet of the same Deployment.
        for uid in sorted(state.replica_sets.get(above, ())):
            if uid != owner.uid:
                direct.extend(state.by_owner.get((namespace, uid), {}).values())
    return direct


def _announced(migration: PodMigration) -> datetime | None:
    at = (migration.status.intent or {}).get("at")
    return datetime.fromisoformat(at) if isinstance(at, str) else None


def _age(pod: Pod) -> tuple[datetime, str]:
    return pod.metadata.creation_timestamp or NEVER, pod.metadata.name


def _source_uid(migration: PodMigration) -> str:
    return migration.status.resolved.pod_uid if migration.status.resolved is not None else ""


def _owner_uid(migration: PodMigration) -> str:
    resolved = migration.status.resolved
    return resolved.owner.uid if resolved is not None and resolved.owner is not None else ""

"""A disruption budget of ours for a workload without one, as long as pods of it are moved.   Pure.

While we take one pod of a workload away, nobody else should take another. Two budgets on one pod would be worse than
none, for the API then refuses every eviction of it; so ours is made only where no other selects any of the pods, and
goes as soon as there is one. While a node that pods of the workload leave is being lost there is none either, for
whatever reason they began to leave: they go with the node, and one at a time would be too slow. It is owned by every
open migration of the workload and so goes with the last of them, even if nobody is left to remove it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cluster.objects import Deployment, LabelSelector, Pod, PodDisruptionBudget, PodMigration, ReplicaSet, StatefulSet
from cluster.resources import PDBS, PODMIGRATIONS
from descheduler import selectors
from descheduler.node_state import Key
from descheduler.requests import Line, Request, Verb
from descheduler.state import ClusterState
from descheduler.workload import Workload
from policy.settings import Settings
from telemetry.catalogue import Log

SUFFIX: Final = "-rescheduler-pdb"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OURS: Final = "spotshift"
LONGEST_NAME: Final = 253
HASH: Final = 8
EVICTING: Final = frozenset({"", "Evict"})
"""Modes that take a pod away before its replacement is there."""
HURRIED: Final = "SpotInterruption"
"""The strategy whose moves want no budget of ours."""
LEAST: Final = 2
"""Replicas below which a budget of one would only mean that nothing may be evicted at all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A budget that should be there."""

    workload: Workload
    name: str
    selector: LabelSelector
    migrations: tuple[PodMigration, ...]

    @property
    def key(self) -> Key:
        """Namespace and name of the budget."""
        return self.workload.namespace, self.name


def name_for(workload: str) -> str:
    """Of the budget; a name that would be too long is cut and told apart by a hash."""
    if len(workload) + len(SUFFIX) <= LONGEST_NAME:
        return workload + SUFFIX
    digest = hashlib.sha256(workload.encode()).hexdigest()[:HASH]
    return f"{workload[: LONGEST_NAME - len(SUFFIX) - HASH - 1]}-{digest}{SUFFIX}"


def _name(found: Workload, state: ClusterState) -> str:
    """Of its budget. A Deployment and a StatefulSet may be called the same and move at the same time: the first kind
    has the plain name then, and the other one says what it is.
    """
    first = _first_kinds(state).get((found.namespace, found.name), found.kind)
    return name_for(found.name if first == found.kind else f"{found.name}.{found.kind.lower()}")


def _first_kinds(state: ClusterState) -> Mapping[Key, str]:
    """By namespace and name of the workloads that are being moved."""
    kept = state.moving.kept
    if _first_kinds not in kept:
        moved = (state.controller(*key) for key in state.moving.by_workload)
        firsts: dict[Key, str] = {}
        for it in moved:
            if it is not None:
                firsts[it.namespace, it.name] = min(it.kind, firsts.get((it.namespace, it.name), it.kind))
        kept[_first_kinds] = firsts
    found: Mapping[Key, str] = kept[_first_kinds]
    return found


def is_ours(budget: PodDisruptionBudget) -> bool:
    """Whether we made it: a user may have one of the same name."""
    return budget.metadata.name.endswith(SUFFIX) and budget.metadata.labels.get(MANAGED_BY) == OURS


def requests(state: ClusterState, settings: Settings, lost: Collection[str] = ()) -> Iterator[Request]:
    """What brings the budgets to what they should be. `lost`: names of nodes that are being lost."""
    wanted = {it.key: it for it in _wanted(state, settings, lost)}
    for key, one in wanted.items():
        known = state.budgets.get(key[0], {}).get(key)
        if known is None:
            yield _creation(one, settings)
        elif known.metadata.deletion_timestamp is None:
            yield from _correction(one, known, settings)
    for budgets in state.budgets.values():
        for key, budget in budgets.items():
            if key not in wanted and is_ours(budget) and budget.metadata.deletion_timestamp is None:
                yield _deletion(budget)


def hold(migration: PodMigration, pod: Pod, state: ClusterState, settings: Settings) -> str:
    """Why the eviction has to wait for the budget; empty if it need not."""
    if not _evicts(migration):
        return ""
    found = _workload(migration, state)
    selector = _selector(found, state, settings) if found is not None else None
    mine = [it for it in state.budgets_of(pod) if is_ours(it)]
    if found is None or selector is None:
        return f"PodDisruptionBudget {mine[0].metadata.name} of ours is being removed" if mine else ""
    name = _name(found, state)
    budget = next((it for it in mine if it.metadata.name == name), None)
    if budget is None or budget.metadata.deletion_timestamp is not None:
        return f"PodDisruptionBudget {name} is being made"
    owners = {it.uid for it in budget.metadata.owner_references}
    if budget.status.observed_generation < budget.metadata.generation or migration.metadata.uid not in owners:
        return f"PodDisruptionBudget {name} is not in force yet"
    if pod.ready and budget.status.disruptions_allowed <= 0:
        return (
            f"PodDisruptionBudget {name} of ours allows no disruption now: another pod of the workload is not Ready"
        )
    return ""


# ---- which are wanted


def _wanted(state: ClusterState, settings: Settings, lost: Collection[str]) -> Iterator[Wanted]:
    by_workload: dict[str, list[PodMigration]] = {}
    for migration in state.open_migrations():
        found = _workload(migration, state)
        if found is not None and _evicts(migration):
            by_workload.setdefault(found.uid, []).append(migration)
    for uid, migrations in by_workload.items():
        found = state.controllers[uid]
        hurried = any(_hurries(it, lost) for it in migrations)
        selector = None if hurried else _selector(found, state, settings)
        if selector is not None:
            yield Wanted(
                found, _name(found, state), selector, tuple(sorted(migrations, key=lambda it: it.metadata.name))
            )


def _hurries(migration: PodMigration, lost: Collection[str]) -> bool:
    """A node may be lost while it is drained: the moves are those of the drain then."""
    resolved = migration.status.resolved
    return migration.spec.strategy == HURRIED or (resolved is not None and resolved.source_node in lost)


def _evicts(migration: PodMigration) -> bool:
    """Taken up, and by eviction; before that there is nothing that could need a budget."""
    resolved = migration.status.resolved
    return migration.status.phase == "InProgress" and resolved is not None and resolved.mode in EVICTING


def _workload(migration: PodMigration, state: ClusterState) -> Workload | None:
    resolved = migration.status.resolved
    if resolved is None or resolved.workload is None:
        return None
    return state.controller(migration.metadata.namespace, resolved.workload.uid)


def _selector(found: Workload, state: ClusterState, settings: Settings) -> LabelSelector | None:
    """What the budget of this workload would select; None if it should have none."""
    item = found.object
    if not settings.migrations.temporary_pdb.enabled or not isinstance(item, Deployment | ReplicaSet | StatefulSet):
        return None
    if item.spec.replicas < LEAST or item.metadata.deletion_timestamp is not None:
        return None
    selector = item.spec.selector
    if not selector.match_labels and not selector.match_expressions:
        return None
    taken = state.budgets.get(found.namespace, {}).get((found.namespace, _name(found, state)))
    if taken is not None and not is_ours(taken):
        return None
    return selector if _alone(found, selector, state) else None


def _alone(found: Workload, selector: LabelSelector, state: ClusterState) -> bool:
    """Whether the selector reaches pods of this workload only, and no budget of anybody else reaches any of them."""
    others = [it.spec.selector for it in state.budgets.get(found.namespace, {}).values() if not is_ours(it)]
    members = {key for key, _ in state.siblings(found)}
    checked: dict[int, bool] = {}
    for key, pod in state.by_namespace.get(found.namespace, {}).items():
        labels = pod.metadata.labels
        reached = checked.get(id(labels))
        if reached is None:
            reached = checked[id(labels)] = selectors.matches(selector, labels)
            if reached and any(selectors.matches(it, labels) for it in others):
                return False
        if reached and key not in members:
            return False
    return True


# ---- what to send


def _creation(wanted: Wanted, settings: Settings) -> Request:
    namespace, name = wanted.key
    labels = {MANAGED_BY: OURS, "app.kubernetes.io/part-of": OURS}
    body = {
        "apiVersion": PDBS.api_version,
        "kind": PDBS.kind,
        "metadata": {"name": name, "labels": labels, "ownerReferences": _owners(wanted)},
        "spec": _spec(wanted, settings),
    }
    workload = f"{wanted.workload.kind}/{wanted.workload.name}"
    line = Line(Log.TEMPORARY_PDB_CREATED, {"namespace": namespace, "budget": name, "workload": workload})
    return Request(verb=Verb.CREATE, resource=PDBS, name=name, namespace=namespace, body=body, lines=(line,))


def _correction(wanted: Wanted, known: PodDisruptionBudget, settings: Settings) -> Iterator[Request]:
    meta, spec = known.metadata, known.spec
    body: dict[str, Any] = {}
    if {it.uid for it in meta.owner_references} != {it.metadata.uid for it in wanted.migrations}:
        body["metadata"] = {"ownerReferences": _owners(wanted)}
    if (spec.selector, spec.max_unavailable) != (wanted.selector, settings.migrations.temporary_pdb.max_unavailable):
        body["spec"] = {**_spec(wanted, settings), "selector": _instead_of(spec.selector, wanted.selector)}
        body["spec"]["minAvailable"] = None
    if body:
        tied = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body["metadata"] = {**tied, **body.get("metadata", {})}
        yield Request(
            verb=Verb.PATCH, resource=PDBS, name=meta.name, namespace=meta.namespace, body=body, uid=meta.uid
        )


def _instead_of(known: LabelSelector | None, wanted: LabelSelector) -> Mapping[str, Any]:
    """As a merge patch has it: what it does not name stays, so every label that is to go is named."""
    labels = dict.fromkeys(known.match_labels if known is not None else ())
    made = msgspec.to_builtins(wanted)
    return {
        "matchLabels": {**labels, **wanted.match_labels} or None,
        "matchExpressions": made.get("matchExpressions") or None,
    }


def _deletion(budget: PodDisruptionBudget) -> Request:
    meta = budget.metadata
    cause = "no move needs it any more, or the workload has a budget of its own"
    line = Line(Log.TEMPORARY_PDB_REMOVED, {"namespace": meta.namespace, "budget": meta.name, "cause": cause})
    return Request(
        verb=Verb.DELETE,
        resource=PDBS,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        lines=(line,),
    )


def _spec(wanted: Wanted, settings: Settings) -> Mapping[str, Any]:
    """A pod that is not Ready may always be evicted: the budget is there for those that serve."""
    return {
        "maxUnavailable": settings.migrations.temporary_pdb.max_unavailable,
        "selector": msgspec.to_builtins(wanted.selector),
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }


def _owners(wanted: Wanted) -> list[dict[str, str]]:
    kind = {"apiVersion": PODMIGRATIONS.api_version, "kind": PODMIGRATIONS.kind}
    return [{**kind, "name": it.metadata.name, "uid": it.metadata.uid} for it in wanted.migrations]

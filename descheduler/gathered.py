"""A state made at one moment, and what is not known of that moment.   Pure.

Planning goes on without a kind of object that could not be had; whoever reads the plan is told what was assumed in
its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from descheduler import kinds
from descheduler.kinds import Watched
from descheduler.state import ClusterState
from descheduler.usage import Usage

ALWAYS: Final = (kinds.NODES, kinds.PODS, kinds.NAMESPACES, kinds.PRIORITYCLASSES, kinds.PDBS)
"""Every cluster has the first four. It may do without budgets, but to assume so silently would be dangerous."""

OWNERS: Final = {
    kind.resource.kind: kind
    for kind in (kinds.REPLICASETS, kinds.DEPLOYMENTS, kinds.STATEFULSETS, kinds.DAEMONSETS, kinds.JOBS)
}


@dataclass(frozen=True, slots=True)
class Gap:
    """One kind of which not everything is known."""

    kind: Watched
    why: str

    def __str__(self) -> str:
        """As people see it."""
        return f"{self.kind.name}: {self.why}; assumed: {self.kind.assumed}"


@dataclass(frozen=True, slots=True)
class Gathered:
    """What there is to plan on."""

    state: ClusterState
    objects: int
    gaps: tuple[Gap, ...] = ()
    usage: Usage | None = None
    """What nodes and pods really use, where anything measures it."""


def gaps(state: ClusterState, counts: Mapping[Watched, int], none: Collection[str] = ()) -> Iterator[Gap]:
    """What a set of objects lacks by its own evidence. `none` are kinds of which the cluster has none."""
    for kind in ALWAYS:
        if not counts.get(kind) and kind.name not in none:
            yield Gap(kind, "there are none")
    yield from _counted(kinds.NODES, [name for name, node in state.nodes.items() if node.node is None], "hold pods")
    unknown: dict[Watched, list[str]] = {}
    for kind, name in (*_missing_owners(state), *_missing_storage(state)):
        unknown.setdefault(kind, []).append(name)
    for kind, names in unknown.items():
        yield from _counted(kind, sorted(set(names)), "are referred to")


def _counted(kind: Watched, names: list[str], what: str) -> Iterator[Gap]:
    if names:
        yield Gap(kind, f"{len(names)} that {what} are missing, such as {names[0]}")


def _missing_owners(state: ClusterState) -> Iterator[tuple[Watched, str]]:
    for (namespace, uid), pods in state.by_owner.items():
        found = state.controller(namespace, uid)
        pod = next(iter(pods.values()))
        owner = pod.metadata.controller
        if found is not None and found.object is not None:
            owner = found.object.metadata.controller
        if owner is not None and owner.kind in OWNERS and state.controller(namespace, owner.uid) is None:
            yield OWNERS[owner.kind], f"{namespace}/{owner.name}"


def _missing_storage(state: ClusterState) -> Iterator[tuple[Watched, str]]:
    for pod in state.pods.values():
        for name in pod.claims:
            claim = state.claims.get((pod.metadata.namespace, name))
            if claim is None:
                yield kinds.PVCS, f"{pod.metadata.namespace}/{name}"
            elif claim.spec.volume_name and claim.spec.volume_name not in state.volumes:
                yield kinds.PVS, claim.spec.volume_name

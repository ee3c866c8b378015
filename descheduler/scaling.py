"""Whether a workload can run one pod more for a while, and what its scale looks like now.   Pure.

A workload is doubled only where nobody else decides about the number: two who both write it end in a quarrel over
running pods. Every "no" is a clause that can stand after "because".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from cluster.objects import Deployment, Pod, PodMigration, ReplicaSet
from descheduler.node_state import Key
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState
from descheduler.workload import Workload
from policy import keys

SHARED: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
"""Access modes that let two pods on two nodes use a claim at the same time."""
SURGE: Final = "Surge"
_DISKS: Final = ("iscsi", "rbd", "gce_persistent_disk", "aws_elastic_block_store")


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """The controller whose number of replicas a Surge raises and lowers, as it is now."""

    kind: str
    name: str
    uid: str
    replicas: int
    generation: int
    min_ready_seconds: int
    pods: tuple[Pod, ...]
    """Pods of the ReplicaSet that are not being deleted."""
    failure: str = ""
    """What keeps the controller from making pods, such as a quota."""


Autoscaled = tuple[str, str, str]
"""Namespace, kind and name of a workload that an autoscaler scales."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod and the workload it belongs to."""

    pod: Pod
    workload: Workload
    state: ClusterState
    autoscalers: Mapping[Autoscaled, str]
    """From `autoscalers`, which is worth keeping for a whole plan."""

    @property
    def deployment(self) -> Deployment | None:
        """The Deployment, if it is one."""
        return self.workload.object if isinstance(self.workload.object, Deployment) else None


def target_of(workload: Workload | None, owner_uid: str, state: ClusterState) -> ScaleTarget | None:
    """The scale of a workload; None if it has none that we can change."""
    found = workload.object if workload is not None else None
    if workload is None or not isinstance(found, Deployment | ReplicaSet):
        return None
    direct = state.controller(workload.namespace, owner_uid)
    parts = (found, direct.object) if direct is not None else (found,)
    pods = state.by_owner.get((workload.namespace, owner_uid), {}).values()
    return ScaleTarget(
        workload.kind,
        workload.name,
        workload.uid,
        found.spec.replicas,
        found.metadata.generation,
        found.spec.min_ready_seconds,
        tuple(pod for pod in pods if pod.metadata.deletion_timestamp is None),
        next((text for part in parts for text in _failures(part)), ""),
    )


def hindrances(subject: Subject, surging: Mapping[Key, str]) -> tuple[str, ...]:
    """Why one pod more cannot be started beside this one. `surging`: Surges under way by key of their workload."""
    found = tuple(text for check in _BEFORE if (text := check(subject)))
    other = surging.get(subject.workload.key)
    return (*found, f"{other} is doubling {subject.workload.text} already") if other else found


def disturbances(subject: Subject) -> tuple[Reason, ...]:
    """The same for a workload that we have doubled: what somebody began meanwhile."""
    return tuple(Reason(code, text) for check, code in _MEANWHILE.items() if (text := check(subject)))


def autoscalers(state: ClusterState) -> dict[Autoscaled, str]:
    """Names of HorizontalPodAutoscalers by what they scale."""
    refs = ((namespace, name, it.spec.scale_target_ref) for (namespace, name), it in state.autoscalers.items())
    return {(namespace, ref.kind, ref.name): name for namespace, name, ref in refs}


def open_surges(state: ClusterState, but: PodMigration | None = None) -> dict[Key, str]:
    """Names of moves that double a workload, by its key. Of two that have not begun, the older goes first."""
    found: dict[Key, str] = {}
    for key, other in _surges(state):
        if but is None or _goes_before(other, but):
            found[key] = f"PodMigration {other.metadata.name}"
    return found


def _surges(state: ClusterState) -> list[tuple[Key, PodMigration]]:
    """Open ones, each with the key of its workload."""
    kept = state.moving.kept
    if _surges not in kept:
        doubling = (it for it in state.open_migrations() if mode_of(it) == SURGE)
        kept[_surges] = [(key, it) for it in doubling if (key := state.moved(it)) is not None]
    found: list[tuple[Key, PodMigration]] = kept[_surges]
    return found


def mode_of(migration: PodMigration) -> str:
    """How it is carried out, or will be."""
    resolved = migration.status.resolved
    return (resolved.mode if resolved is not None else "") or migration.spec.mode


def _goes_before(other: PodMigration, mine: PodMigration) -> bool:
    if other.metadata.key == mine.metadata.key:
        return False
    return other.status.step not in {"", "Guard", "Mark"} or _age(other) < _age(mine)


def _age(it: PodMigration) -> tuple[str, Key]:
    created = it.metadata.creation_timestamp
    return created.isoformat() if created is not None else "", it.metadata.key


# ---- what speaks against it


def _scalable(subject: Subject) -> str:
    if isinstance(subject.workload.object, Deployment | ReplicaSet):
        return ""
    if subject.workload.kind == "StatefulSet":
        return "a StatefulSet gives every pod a name of its own and cannot run two of one"
    return f"the scale of a {subject.workload.kind} is not ours to change"


def _controlled(subject: Subject) -> str:
    above = subject.workload.object.metadata.controller if subject.workload.object is not None else None
    return f"{above.kind} {above.name} controls it and would put its replicas back" if above is not None else ""


def _autoscaled(subject: Subject) -> str:
    mine = subject.workload
    name = subject.autoscalers.get((mine.namespace, mine.kind, mine.name))
    return f"HorizontalPodAutoscaler {name} decides about its replicas" if name is not None else ""


def _strategy(subject: Subject) -> str:
    found = subject.deployment
    recreate = found is not None and found.spec.strategy.type == "Recreate"
    return "its strategy is Recreate: two of it must not run at the same time" if recreate else ""


def _volumes(subject: Subject) -> str:
    pod = subject.pod
    own = {f"{pod.metadata.name}-{it.name}" for it in pod.spec.volumes if it.ephemeral is not None}
    for name in pod.claims:
        claim = subject.state.claims.get((pod.metadata.namespace, name))
        if name not in own and (claim is None or not SHARED.intersection(claim.spec.access_modes)):
            return f"claim {name} can be used on one node only"
    for volume in pod.spec.volumes:
        disks = [getattr(volume, kind) for kind in _DISKS]
        if any(disk is not None and not disk.read_only for disk in disks):
            return "a disk that it mounts can be used on one node only"
    return ""


def _rollout(subject: Subject) -> str:
    """Not by the generation alone: a change of the number is one too."""
    found = subject.deployment
    if found is None:
        return ""
    if found.spec.paused:
        return "its rollout is paused"
    owner = subject.pod.metadata.controller
    space = subject.workload.namespace
    direct = subject.state.controller(space, owner.uid) if owner is not None else None
    newest = found.metadata.annotations.get(keys.DEPLOYMENT_REVISION)
    mine = direct.annotations.get(keys.DEPLOYMENT_REVISION) if direct is not None else None
    others = any(
        pod.metadata.controller is not None and owner is not None and pod.metadata.controller.uid != owner.uid
        for _, pod in subject.state.siblings(subject.workload)
    )
    return "a rollout is under way" if others or (newest is not None and newest != mine) else ""


def _taken_up(subject: Subject) -> str:
    found = subject.workload.object
    if not isinstance(found, Deployment | ReplicaSet):
        return ""
    late = found.status.observed_generation < found.metadata.generation
    return "its controller has not taken up its last change yet" if late else ""


def _failing(subject: Subject) -> str:
    owner = subject.pod.metadata.controller
    target = target_of(subject.workload, owner.uid if owner is not None else "", subject.state)
    return f"no further pod can be made: {target.failure}" if target is not None and target.failure else ""


def _siblings(subject: Subject) -> str:
    """A controller that scales down takes what is not Ready first, whatever anybody said about costs."""
    for _, pod in sorted(subject.state.siblings(subject.workload), key=itemgetter(0)):
        if pod.metadata.uid != subject.pod.metadata.uid and not pod.ready and pod.metadata.deletion_timestamp is None:
            return f"its sibling {pod.metadata.name} is not Ready"
    return "" if subject.pod.ready else "it is not Ready itself"


def _failures(part: object) -> Iterator[str]:
    if isinstance(part, Deployment | ReplicaSet):
        for condition in part.status.conditions:
            if condition.type == "ReplicaFailure" and condition.status == "True":
                yield condition.message or condition.reason


Check = Callable[[Subject], str]
_MEANWHILE: Final[Mapping[Check, Code]] = {
    _scalable: Code.MODE_UNSUITED,
    _controlled: Code.REPLICAS_CONTESTED,
    _autoscaled: Code.REPLICAS_CONTESTED,
    _strategy: Code.MODE_UNSUITED,
    _rollout: Code.PENDING_REVISION,
}
_BEFORE: Final[tuple[Check, ...]] = (*_MEANWHILE, _taken_up, _volumes, _failing, _siblings)

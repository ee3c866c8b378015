"""What the machine needs to know of the cluster to decide the next step of one migration.   Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cluster.objects import Pod, PodMigration
from descheduler import scaling, workload
from descheduler.migration import replacement, temporary_budget, turns
from descheduler.moving import OPEN
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Reason
from descheduler.scaling import ScaleTarget
from descheduler.state import ClusterState
from descheduler.workload import Workload
from policy.keys import Keys
from policy.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Seen at one moment, for one migration."""

    keys: Keys
    settings: Settings
    holder: str
    """Who would act: this process."""
    source: Pod | None
    """The pod to move; None if it is gone or its name has another bearer."""
    stopping: Pod | None = None
    """The pod to move as long as its object exists, also when all its containers have ended: its name is taken."""
    workload: Workload | None
    """The controller at the top as it is now; None if there is none, no longer, or of a kind that is not watched."""
    orphaned: bool = False
    """There is no such controller any more, and nothing will replace the pod."""
    replacement: Pod | None
    partner: str = ""
    """The sibling move whose target the replacement is on."""
    goal: str = ""
    """Where the replacement should be by now."""
    pending: int = 0
    """Pods of the owner that have no node yet: the replacement may be among them."""
    ready: int = 0
    """Pods of the workload that are Ready."""
    wanted: int | None = None
    """Pods the workload wants; None where it does not say."""
    objections: tuple[Reason, ...] = ()
    """Why the pod must not be moved after all."""
    withdrawn: str = ""
    """Why the move is no longer wanted, if it is not: the label is gone, or an emergency stop."""
    namespace_terminating: bool = False
    urgency: Urgency = Urgency.VOLUNTARY
    node_lost: bool = False
    """The node of the pod is being lost, or is gone: what is missing may have been taken by it."""
    leave_by: datetime | None = None
    """When the pod has to be asked to stop if it is to stop in order before its node is gone; None if nobody says
    when that will be."""
    target: str = ""
    """Where it should go, if the request does not say."""
    young: tuple[str, ...] = ()
    """UIDs of siblings that are young enough to be mistaken for a replacement."""
    budget_free: bool = False
    """The disruption budget of the pod allows an eviction right now."""
    ahead: str = ""
    """A move of the same owner that has its turn: where its replacement lands decides where the next one is told to
    go."""
    others_moving: bool = False
    """Another open migration is about the same workload."""
    permitted: bool = True
    """It has its turn at the disruption budget; where a node is being lost, many wait for one."""
    hold: str = ""
    """Why the eviction has to wait for our temporary budget; empty if it need not."""
    crowded: bool = False
    """Several disruption budgets select the pod, and none of them is a temporary one of ours."""
    mode: Mode = Mode.EVICT
    """How it should be carried out, if it has not begun."""
    scale: ScaleTarget | None = None
    """The scale of the workload, where there is one that we can change."""
    doubles: tuple[Pod, ...] = ()
    """When a Surge is over: pods of the owner that came after it was announced, though the workload may be gone."""

    @property
    def staying(self) -> Pod | None:
        """The pod to move, while it is not being deleted."""
        lives = self.source is not None and self.source.metadata.deletion_timestamp is None
        return self.source if lives else None


def source_of(migration: PodMigration, state: ClusterState) -> Pod | None:
    """The pod the migration is about, as it is now."""
    pod = state.pods.get((migration.metadata.namespace, migration.spec.pod_ref.name))
    resolved = migration.status.resolved
    uid = (resolved.pod_uid if resolved is not None else "") or migration.spec.pod_ref.uid
    return pod if pod is not None and uid in {"", pod.metadata.uid} else None


def workload_of(migration: PodMigration, state: ClusterState) -> Workload | None:
    """The workload as it is now: by the UID noted when the move was taken up, else by the pod."""
    resolved = migration.status.resolved
    if resolved is not None and resolved.workload is not None:
        return state.controller(migration.metadata.namespace, resolved.workload.uid)
    source = source_of(migration, state)
    return state.workload(source) if source is not None else None


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """Who looks, by which rules, and when."""

    keys: Keys
    settings: Settings
    holder: str
    now: datetime


def look(
    migration: PodMigration,
    state: ClusterState,
    by: Viewpoint,
    *,
    urgency: Urgency,
    objections: tuple[Reason, ...] = (),
    withdrawn: str = "",
    target: str = "",
    mode: Mode = Mode.EVICT,
    permitted: bool = True,
) -> World:
    """Everything about one migration that can be read from the state."""
    namespace = state.namespaces.get(migration.metadata.namespace)
    found = workload_of(migration, state)
    source = source_of(migration, state)
    match = replacement.find(migration, state)
    siblings = [pod for _, pod in state.siblings(found)] if found is not None else []
    return World(
        keys=by.keys,
        settings=by.settings,
        holder=by.holder,
        source=source,
        stopping=_there(migration, state),
        workload=found,
        orphaned=found is None and _would_be_seen(migration),
        replacement=match.pod if match is not None else None,
        partner=match.partner if match is not None else "",
        goal=replacement.goal(migration, state),
        pending=sum(1 for pod in siblings if not pod.node_name),
        ready=sum(1 for pod in siblings if pod.ready and pod.metadata.deletion_timestamp is None),
        wanted=found.replicas if found is not None else None,
        objections=objections,
        withdrawn=withdrawn,
        namespace_terminating=namespace is not None and namespace.status.phase == "Terminating",
        urgency=urgency,
        node_lost=urgency is Urgency.INTERRUPTION,
        target=target,
        young=replacement.young_siblings(source, state, by.now) if source is not None else (),
        budget_free=permitted and source is not None and _budget_free(source, state),
        ahead=turns.ahead(migration, state, by.settings.migrations.hint_propagation, by.now),
        others_moving=_others(migration, found, state),
        permitted=permitted,
        hold="" if urgency is Urgency.INTERRUPTION else _hold(migration, source, state, by.settings),
        crowded=source is not None and _crowded(source, state),
        mode=mode,
        scale=scaling.target_of(found, _owner_uid(migration, source), state),
        doubles=tuple(_doubles(migration, state)),
    )


def _would_be_seen(migration: PodMigration) -> bool:
    """Whether the workload would be known if it were still there; of kinds that nobody watches nothing is known."""
    resolved = migration.status.resolved
    noted = resolved.workload if resolved is not None else None
    return noted is None or workload.is_watched(noted.kind, noted.api_version)


def _there(migration: PodMigration, state: ClusterState) -> Pod | None:
    key = migration.metadata.namespace, migration.spec.pod_ref.name
    pod = state.pods.get(key) or state.ended.get(key)
    resolved = migration.status.resolved
    return pod if pod is not None and resolved is not None and pod.metadata.uid == resolved.pod_uid else None


def _hold(migration: PodMigration, source: Pod | None, state: ClusterState, settings: Settings) -> str:
    """Asked where it matters only: it looks at every pod of the namespace."""
    if source is None or migration.status.step != "Evict":
        return ""
    return temporary_budget.hold(migration, source, state, settings)


def _doubles(migration: PodMigration, state: ClusterState) -> Iterable[Pod]:
    """Asked where it matters only: it looks at every pod of the owner."""
    ended = migration.status.phase not in OPEN and scaling.mode_of(migration) == scaling.SURGE
    return replacement.candidates(migration, state) if ended else ()


def _owner_uid(migration: PodMigration, source: Pod | None) -> str:
    resolved = migration.status.resolved
    owner = resolved.owner if resolved is not None else source.metadata.controller if source is not None else None
    return owner.uid if owner is not None else ""


def _crowded(pod: Pod, state: ClusterState) -> bool:
    found = state.budgets_of(pod)
    return len(found) > 1 and not any(map(temporary_budget.is_ours, found))


def _budget_free(pod: Pod, state: ClusterState) -> bool:
    return all(budget.status.disruptions_allowed > 0 for budget in state.budgets_of(pod))


def _others(migration: PodMigration, found: Workload | None, state: ClusterState) -> bool:
    if found is None:
        return False
    return any(it.metadata.key != migration.metadata.key for it in state.moving.by_workload.get(found.key, ()))

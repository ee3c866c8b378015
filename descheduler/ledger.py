"""What a plan has already used: room on nodes, disruption budgets, limits, spread.   Pure.

It opens with what is on its way without us deciding anything more: moves in flight and pods that wait for a place.
Nothing is planned against room that another pod is about to take.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from cluster.objects import Pod, PodMigration
from descheduler import moving, scaling
from descheduler.budgets import Budgets
from descheduler.fit import Fitter
from descheduler.limits import Limits
from descheduler.migration import goals
from descheduler.node_state import Key
from descheduler.picture import Picture
from descheduler.places import Places, Template, template
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Ledger:
    """Made for one plan and thrown away with it."""

    def __init__(self, state: ClusterState, settings: Settings) -> None:
        self.state = state
        self.picture = Picture(state)
        self.fitter = Fitter(self.picture)
        self.limits = Limits(state, settings)
        self.budgets = Budgets(state)
        self.booked = 0
        """Grows with every booking; what was found impossible at the same number still is."""
        self.surging = scaling.open_surges(state)
        """Who doubles which workload, by its key."""
        self._hint = keys.under(settings.label_prefix).migration_target
        self._stateful: dict[Key, str] = {}
        self._open_migrations()
        self.places = Places(self.picture, self.fitter)
        self._wait_for_places()

    def reasons(self, pod: Pod, urgency: Urgency) -> tuple[Reason, ...]:
        """Everything that holds back an eviction. Budgets do so for every one, because the API enforces them."""
        return self.budgets.reasons(pod) + self.limiting(pod, urgency)

    def limiting(self, pod: Pod, urgency: Urgency) -> tuple[Reason, ...]:
        """What holds back a move in any mode; limits only those that nobody has to make."""
        found = self._one_at_a_time(pod) if urgency is not Urgency.INTERRUPTION else ()
        return found + self.limits.reasons(pod) if urgency is Urgency.VOLUNTARY else found

    def book(self, pod: Pod, target: str | None, mode: Mode = Mode.EVICT) -> None:
        """The pod has been taken off its node in the picture; its replacement goes to the target."""
        if mode is Mode.SURGE:
            self._book_surge(pod)
        else:
            self.budgets.book(pod)
        self.limits.book(pod, pod.node_name)
        if target is not None:
            self.picture.put(pod, target)
        self.places.moved(pod, target)
        self.booked += 1
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "StatefulSet":
            self._stateful[pod.metadata.namespace, owner.uid] = pod.metadata.name

    def _book_surge(self, pod: Pod) -> None:
        """No disruption, so no budget; but a workload is doubled once at a time."""
        found = self.state.workload(pod)
        if found is not None:
            self.surging[found.key] = f"the move of {pod.metadata.name} in this plan"

    def _one_at_a_time(self, pod: Pod) -> tuple[Reason, ...]:
        """A StatefulSet gives its word about the order of its pods, so this plan moves one of them."""
        owner = pod.metadata.controller
        other = None if owner is None else self._stateful.get((pod.metadata.namespace, owner.uid))
        if owner is None or other is None:
            return ()
        return (Reason(Code.STATEFULSET_BUSY, f"this plan moves pod {other} of StatefulSet {owner.name}"),)

    # ---- what is on its way

    def _open_migrations(self) -> None:
        """The oldest has the pod; others that ask for the same one are refused, and move nothing."""
        leaving: set[Key] = set()
        for migration in sorted(self.state.open_migrations(), key=lambda it: (moving.age(it), it.metadata.key)):
            pod = self._source(migration)
            if pod is None:
                self._book_vanished(migration)
            elif pod.metadata.key not in leaving:
                leaving.add(pod.metadata.key)
                self._book_leaving(migration, pod)

    def _source(self, migration: PodMigration) -> Pod | None:
        """The pod that is to leave, if it is still there and still the same one."""
        ref = migration.spec.pod_ref
        found = self.state.pods.get((migration.metadata.namespace, ref.name))
        if found is None or not found.node_name or (ref.uid and ref.uid != found.metadata.uid):
            return None
        replacement = migration.status.replacement
        return None if replacement is not None and replacement.uid == found.metadata.uid else found

    def _book_leaving(self, migration: PodMigration, pod: Pod) -> None:
        self.limits.book(pod, pod.node_name)
        if scaling.mode_of(migration) != Mode.SURGE:
            self.budgets.book(pod)  # books nothing once the pod is being deleted: the controller has counted it then
        self.picture.take(pod)
        target = goals.of(migration, self.state)
        if target in self.state.nodes and migration.status.replacement is None:
            self.picture.put(pod, target)

    def _book_vanished(self, migration: PodMigration) -> None:
        """The pod is gone; until its replacement has a place, the target is kept free for one like its siblings."""
        resolved = migration.status.resolved
        if resolved is None:
            return
        owner = resolved.owner.uid if resolved.owner is not None else ""
        workload = resolved.workload.uid if resolved.workload is not None else owner
        self.limits.book_names(resolved.source_node, (migration.metadata.namespace, workload))
        siblings = self.state.by_owner.get((migration.metadata.namespace, owner), {})
        waiting = any(not it.node_name for it in siblings.values())
        target = goals.of(migration, self.state)
        if migration.status.replacement is not None or waiting or not siblings or target not in self.state.nodes:
            return
        name = migration.spec.pod_ref.name
        if (migration.metadata.namespace, name) not in siblings:
            self.picture.put(_renamed(siblings[min(siblings)], name), target)

    def _wait_for_places(self) -> None:
        """Pods without a node get a place each, the most important first. One that fits nowhere takes no room."""
        hopeless: set[Template] = set()
        for pod in sorted(self.state.pending.values(), key=_queue):
            if pod.metadata.deletion_timestamp is not None or pod.spec.scheduling_gates:
                continue
            nominated = pod.status.nominated_node_name
            hinted = pod.metadata.annotations.get(self._hint, "")
            if nominated in self.state.nodes:
                target: str | None = nominated
            elif hinted in self.state.nodes and self.fitter.fits(pod, hinted):
                target = hinted  # the replacement of a move, which the scheduler has not looked at yet
            elif template(pod) in hopeless:
                continue
            else:
                target = self.places.choose(pod, spot=None)
            if target is not None:
                self.picture.put(pod, target)
                self.places.moved(pod, target)
            elif not pod.claims:
                hopeless.add(template(pod))


def _renamed(pod: Pod, name: str) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid="")
    return msgspec.structs.replace(pod, metadata=metadata, node_name="")


def _queue(pod: Pod) -> tuple[int, datetime, tuple[str, str]]:
    """As the scheduler takes them: by priority, then by age."""
    return -pod.spec.priority, pod.metadata.creation_timestamp or _LONG_AGO, pod.metadata.key

"""What a pod wants of a node: which capacity first and how firmly, and the target of a move it takes part in.   Pure.

Intent is read as the webhook reads it, with one difference: what the pod itself asks for in its node affinity comes
first. There the webhook has already written what annotations of the workload, of the namespace and a mix of
capacities came to for this pod, and a pod that it marked without writing anything there is to be left alone; and what
a user wrote there is not for us to overrule.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from extender.view import Metadata, Move, View
from extender.wire import Pod
from policy import affinity, placement
from policy.capacity import CapacityType
from policy.settings_extender import By
from policy.settings_moves import Coordination
from policy.values import Spot

OPEN_AT_MOST: Final = timedelta(hours=24)
"""A move older than this guides nobody: whoever should carry it out has been gone for a day."""
EXACT_FOR: Final = timedelta(seconds=60)
"""So long after its creation a replacement may be held to its target alone. A target that passes every filter and
still fails when it comes to binding would else be tried for ever."""
_DAEMON_SET: Final = "DaemonSet"


@dataclass(frozen=True, slots=True)
class Wish:
    """What comes first for this pod."""

    capacity: CapacityType | None = None
    """The capacity that comes first; None if it does not matter, or if the pod can run on one only."""
    by: By = By.SCORE
    free: bool = True
    """False for a pod that belongs to one node: there is nothing to steer, only something to block."""


_BOUND: Final = Wish(free=False)
_NO_MATTER: Final = Wish()


def of(pod: Pod, view: View) -> Wish:
    """What a pod wants, whatever nodes there are."""
    controller, selector = pod.controller, pod.spec.node_selector
    rules = pod.spec.affinity.node_affinity
    if controller is not None and controller.kind == _DAEMON_SET:
        return _BOUND
    if (selector or rules) and affinity.pinned(selector, rules) is not None:
        return _BOUND
    settings, table = view.settings.extender, view.settings.capacity.all_labels()
    if affinity.required_capacity(selector, rules, table) is not None:
        return _NO_MATTER
    first = affinity.preferred_capacity(rules, table)
    if first is None and view.keys.managed not in pod.metadata.labels:
        first = _intended(pod, view)
    if first is None:
        return _NO_MATTER
    return Wish(first, settings.avoid if first is CapacityType.ON_DEMAND else settings.prefer)


def moves(pod: Pod, view: View, now: datetime) -> tuple[Move, ...]:
    """The open moves whose replacement this pod can be, oldest first.

    A pod is matched by its namespace and the UID of its controller, never by what it says itself.
    """
    if view.settings.migrations.coordination is Coordination.UNGUIDED:
        return ()
    owner = pod.controller
    found = view.moves.get((pod.metadata.namespace, owner.uid if owner else ""), ())
    return tuple(it for it in found if _is_ours(pod, it, view) and now - it.started <= OPEN_AT_MOST)


def may_be_held(pod: Pod, now: datetime) -> bool:
    """Whether a replacement may be kept from all other nodes: while it is young and no try has ended in an error."""
    created = pod.metadata.creation_timestamp
    tried = next((it for it in pod.status.conditions if it.type == "PodScheduled"), None)
    failed = tried is not None and tried.reason == "SchedulerError"
    return not failed and created is not None and now - created <= EXACT_FOR


def _intended(pod: Pod, view: View) -> CapacityType | None:
    name = pod.metadata.namespace
    subject = placement.Subject(
        namespace_name=name,
        pod=Metadata(pod.metadata.labels, pod.metadata.annotations),
        namespace=view.namespaces.get(name),
    )
    match placement.decide(subject, keys=view.keys, settings=view.settings).intent.spot:
        case Spot.PREFER | Spot.REQUIRE:
            return CapacityType.SPOT
        case Spot.AVOID:
            return CapacityType.ON_DEMAND
        case Spot.IGNORE:
            return None


def _is_ours(pod: Pod, move: Move, view: View) -> bool:
    if move.owner_kind == "StatefulSet":
        return pod.metadata.name == move.pod_name
    if move.owner_kind:
        return True
    # A pod without a controller is copied by the migrator, which marks the copy before it creates it.
    copied = pod.metadata.annotations.get(view.keys.original_pod) == move.pod_uid != ""
    return copied and pod.metadata.labels.get(view.keys.migration_id) == move.id

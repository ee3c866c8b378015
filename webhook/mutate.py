"""One admission review and one view of the cluster to one decision.

Pure and idempotent: no API call, no clock, no randomness; deciding again on the patched pod changes nothing.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from policy import placement
from policy.placement import Origin, Subject
from policy.reasons import Malformed
from policy.settings import Mode
from policy.values import Rescheduling, Side, Spot
from webhook import exempt, migration, mix, patch, priority, room, spot
from webhook.counts import Choice
from webhook.patch import NO_CHANGE, Change, Op
from webhook.pod import Pod
from webhook.reasons import Note, Result, Skip
from webhook.review import Review
from webhook.view import Metadata, Migration, View, workload_of

MANAGED = "true"
"""Value of the label on every pod we look after."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod gets, and why."""

    ops: tuple[Op, ...] = ()
    skips: tuple[Skip, ...] = ()
    """Why it is left alone; empty if it is not."""
    notes: tuple[Note, ...] = ()
    """What the rules did."""
    warnings: tuple[str, ...] = ()
    """For the user who creates the pod."""
    placed: placement.Decision | None = None
    migration_ids: tuple[str, ...] = ()
    """Open moves whose replacement the pod can be, oldest first."""
    choice: Choice | None = None
    """The side of the pod, if its workload asks for a mix."""

    @property
    def result(self) -> Result:
        """The decision in one word."""
        if self.skips:
            return Result.LEFT_ALONE
        return Result.PATCHED if self.ops else Result.UNCHANGED

    @property
    def audit(self) -> Mapping[str, str]:
        """Audit annotations: codes and settings only, nothing that a pod brought along."""
        found = {"decision": self.result.value, "reason": ",".join(self.skips or self.notes)}
        if self.placed is not None:
            found["intent"] = ",".join(_told(self.placed, name) for name in ("spot", "tier", "rescheduling"))
        if self.choice is not None:
            found["capacity"] = self.choice.side.value
        if self.migration_ids:
            found["migration"] = self.migration_ids[0]
        return found


def decide(review: Review, view: View, now: datetime) -> Decision:
    """What the pod of this review gets."""
    skips = exempt.of_request(review)
    pod = review.pod
    if skips or pod is None:
        return Decision(skips=skips or (Skip.NOT_CREATE,))
    skips = exempt.of_pod(pod, review.namespace, view)
    if skips:
        return Decision(skips=skips)
    return _decide(pod, review.namespace, view, now)


def _decide(pod: Pod, namespace: str, view: View, now: datetime) -> Decision:
    workload = workload_of(view, namespace, pod.controller)
    placed = intent(pod, workload.metadata, namespace, view)
    moves = migration.matching(pod, namespace, view, now)
    known = () if workload.complete else (Note.WORKLOAD_UNKNOWN,)
    told = tuple(str(it) for it in placed.warnings)
    if placed.intent.rescheduling is Rescheduling.DISABLED:
        return Decision(skips=(Skip.OPTED_OUT,), notes=known, warnings=told, placed=placed)
    if view.settings.mode is Mode.OBSERVE and not moves:
        return Decision(skips=(Skip.OBSERVE,), notes=known, warnings=told, placed=placed)
    observed = view.settings.mode is Mode.OBSERVE
    choice = None if observed else mix.choose(pod, placed.intent, namespace, view, moves)
    change = _change(pod, placed, moves, view, choice)
    if not room.fits(pod, change):
        choice = None if choice is None or choice.fresh else choice  # a side that is not written down is chosen anew
        change = room.without_annotations(pod, _change(pod, placed, moves, view, choice))
    return Decision(
        ops=patch.ops(pod, change),
        notes=known + change.notes,
        warnings=told + change.warnings,
        placed=placed,
        migration_ids=tuple(move.id for move in moves),
        choice=choice,
    )


def intent(pod: Pod, workload: Metadata | None, namespace: str, view: View) -> placement.Decision:
    """What the pod should get. Where nobody says anything, that was worked out when the settings were read."""
    said = view.namespaces[namespace]
    if said.silent and (workload is None or workload.silent) and not _bears_our_keys(pod, view.keys.prefix):
        return view.unsaid
    subject = Subject(namespace_name=namespace, pod=pod, workload=workload, namespace=said)
    return placement.decide(subject, keys=view.keys, settings=view.settings)


def _bears_our_keys(pod: Pod, prefix: str) -> bool:
    return any(key.startswith(prefix) for key in pod.annotations) or any(key.startswith(prefix) for key in pod.labels)


def _change(
    pod: Pod, placed: placement.Decision, moves: tuple[Migration, ...], view: View, choice: Choice | None
) -> Change:
    """All rules, in the order in which a person reads a pod."""
    moving = migration.change(pod, moves, view) if moves else migration.strip(pod, view)
    if view.settings.mode is Mode.OBSERVE:  # open moves finish, nothing new begins
        return moving
    weight = view.settings.placement.spot_weight
    if Note.HINTED in moving.notes:
        weight = min(weight, view.settings.migrations.hint.max_spot_weight)
    key = placed.origins["spot"].key
    return patch.merged(
        (
            _managed(pod, view),
            moving,
            NO_CHANGE if choice is None else mix.change(pod, choice, view),
            priority.change(pod, placed.intent.tier, view),
            spot.change(pod, _spot(placed, choice), view, key=key, weight=weight, mixed=choice is not None),
        )
    )


def _managed(pod: Pod, view: View) -> Change:
    """The marker; a value that a user gave it stays and is told, for selectors may depend on it."""
    own = pod.labels.get(view.keys.managed)
    if own is None:
        return Change(labels={view.keys.managed: MANAGED})
    if own == MANAGED:
        return NO_CHANGE
    accepted = f"'{MANAGED}'; to opt out set {view.keys.rescheduling} to 'disabled'"
    return Change(warnings=(str(Malformed(view.keys.managed, own, accepted)),))


def _spot(placed: placement.Decision, choice: Choice | None) -> Spot:
    """Which capacity this one pod of its workload is for."""
    if choice is None:
        return placed.intent.spot
    return Spot.PREFER if choice.side is Side.SPOT else Spot.AVOID


def _told(placed: placement.Decision, name: str) -> str:
    origin: Origin = placed.origins[name]
    return f"{name}={getattr(placed.intent, name)} ({origin.level} {origin.key})"

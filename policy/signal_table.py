"""The table of node signals: what other projects and the platforms write on a node that is about to change.

One row per signal. Settings can add rows or replace the table; `signals` reads a node with it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from policy import values

ANY: Final = "*"


class Kind(StrEnum):
    """What a signal asks of us."""

    MAINTENANCE = "maintenance"
    """Empty the node in an orderly way."""
    INTERRUPTION = "interruption"
    """The node goes away soon, whatever we do."""
    REBALANCE = "rebalance"
    """The node may go away; the platform can take that back."""
    AVOID = "avoid"
    """Do not choose this node as a target."""


class Place(StrEnum):
    """Where on a node the signal stands."""

    TAINT = "taint"
    LABEL = "label"
    ANNOTATION = "annotation"
    CONDITION = "condition"
    UNSCHEDULABLE = "unschedulable"


class Clock(StrEnum):
    """Which time a signal carries."""

    NONE = "none"
    """No time: neither start nor deadline is known, and a notice counts from when the signal was first seen."""
    START = "start"
    """Taint `timeAdded` or condition `lastTransitionTime`: when it began."""
    VALUE_START = "valueStart"
    """The value is the time it began: unix seconds or RFC 3339."""
    VALUE_DEADLINE = "valueDeadline"
    """The value is the time it ends."""


Seconds = Annotated[int, msgspec.Meta(ge=0, le=30 * 24 * 3600)]


class SignalRow(msgspec.Struct, frozen=True, rename="camel"):
    """One thing a node may carry, and what it means."""

    kind: Kind
    """What it asks of us: `maintenance`, `interruption`, `rebalance` or `avoid`."""
    place: Place
    """Where it stands: `taint`, `label`, `annotation`, `condition` or `unschedulable`."""
    key: str = ""
    """Taint, label or annotation key, or condition type; a trailing `*` matches every key that begins so."""
    value: str = ANY
    """Value that counts, or status of the condition; `*` is any value."""
    clock: Clock = Clock.NONE
    """Which time it carries: `none`, `start`, `valueStart` or `valueDeadline`."""
    notice_seconds: Seconds | None = None
    """Seconds from its start, or without a clock from its first sight, to the loss of the node; none if not known."""
    lead_seconds: Seconds | None = None
    """Seconds before the deadline at which to act; until then the node is only avoided."""


def _taint(kind: Kind, key: str, notice: int | None = None) -> SignalRow:
    return SignalRow(kind, Place.TAINT, key, clock=Clock.START, notice_seconds=notice)


def _avoid(*taints: str) -> tuple[SignalRow, ...]:
    return tuple(_taint(Kind.AVOID, key) for key in taints)


_DAY_SECONDS: Final = 24 * 3600

# Deliberately absent, because they say nothing about the node's future:
#   node.kubernetes.io/exclude-from-external-load-balancers   kubeadm sets it on control planes for good
#   aws-node-termination-handler/event-id, /action-time       details of the taint and label beside them
#   cluster-autoscaler.kubernetes.io/scale-down-disabled      such a node stays, which makes it a good target
#   weave.works/kured-most-recent-reboot-needed               history; it stays after the reboot
#   draino/drain-retry                                        an option that people set
ROWS: Final = (
    # AWS Node Termination Handler. A spot interruption notice comes 120 s before the instance stops.
    _taint(Kind.INTERRUPTION, "aws-node-termination-handler/spot-itn", 120),
    _taint(Kind.INTERRUPTION, "aws-node-termination-handler/asg-lifecycle-termination"),
    _taint(Kind.MAINTENANCE, "aws-node-termination-handler/scheduled-maintenance"),
    _taint(Kind.REBALANCE, "aws-node-termination-handler/rebalance-recommendation"),
    SignalRow(Kind.AVOID, Place.LABEL, "aws-node-termination-handler/action", "UncordonAfterReboot"),
    # GKE gives 30 s in all, of which the kubelet keeps the last 15 s for system pods.
    _taint(Kind.INTERRUPTION, "cloud.google.com/impending-node-termination", 15),
    SignalRow(
        Kind.INTERRUPTION,
        Place.CONDITION,
        "cloud.google.com/impending-node-termination",
        "True",
        Clock.START,
        15,
    ),
    SignalRow(Kind.INTERRUPTION, Place.ANNOTATION, "cloud.google.com/impending-node-termination", notice_seconds=15),
    # Host maintenance is announced up to weeks ahead: no reason to empty the node more than a day early.
    SignalRow(
        Kind.MAINTENANCE,
        Place.LABEL,
        "cloud.google.com/scheduled-maintenance-time",
        clock=Clock.VALUE_DEADLINE,
        lead_seconds=_DAY_SECONDS,
    ),
    SignalRow(
        Kind.MAINTENANCE,
        Place.LABEL,
        "cloud.google.com/scheduled-maintenance-time-latest",
        clock=Clock.VALUE_DEADLINE,
        lead_seconds=_DAY_SECONDS,
    ),
    SignalRow(Kind.MAINTENANCE, Place.LABEL, "cloud.google.com/active-node-maintenance", "ONGOING"),
    _taint(Kind.MAINTENANCE, "cloud.google.com/maintenance-window-started"),
    # AKS. The condition covers preemption, redeployment, reboot and freeze; preemption has the least, 30 s.
    SignalRow(Kind.INTERRUPTION, Place.CONDITION, "VMEventScheduled", "True", Clock.START, 30),
    SignalRow(Kind.AVOID, Place.LABEL, "kubernetes.azure.com/upgrade-status", "Quarantined"),
    # Others that ask for an empty node.
    _taint(Kind.MAINTENANCE, "medik8s.io/drain"),
    SignalRow(Kind.MAINTENANCE, Place.CONDITION, "DrainScheduled", "True", Clock.START),
    SignalRow(
        Kind.MAINTENANCE,
        Place.ANNOTATION,
        "karpenter.sh/nodeclaim-termination-timestamp",
        clock=Clock.VALUE_DEADLINE,
    ),
    # Somebody else empties, repairs or starts the node: not a target, and not ours to drain.
    SignalRow(Kind.AVOID, Place.TAINT, "ToBeDeletedByClusterAutoscaler", clock=Clock.VALUE_START),
    SignalRow(Kind.AVOID, Place.TAINT, "DeletionCandidateOfClusterAutoscaler", clock=Clock.VALUE_START),
    SignalRow(Kind.AVOID, Place.ANNOTATION, "weave.works/kured-reboot-in-progress"),
    *_avoid(
        "weave.works/kured-node-reboot",
        "karpenter.sh/disrupted",
        "karpenter.sh/unregistered",
        "remediator.kubernetes.azure.com/unschedulable",
        "startup-taint.cluster-autoscaler.kubernetes.io/*",
        "status-taint.cluster-autoscaler.kubernetes.io/*",
        "ignore-taint.cluster-autoscaler.kubernetes.io/*",
        "NodeWithImpairedVolumes",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "nodeutilization.descheduler.openshift.io/overutilized",
        "node.kubernetes.io/out-of-service",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
    ),
    # A cordon keeps new pods away and moves none.
    SignalRow(Kind.AVOID, Place.UNSCHEDULABLE),
)


class SignalSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the settings add to the table, or put in its place."""

    replace: bool = False
    """True drops the built-in table. Off, because it matches nothing on platforms it is not made for."""
    rows: tuple[SignalRow, ...] = ()
    """Further signals; the maintenance label of our own always counts."""

    def all_rows(self) -> tuple[SignalRow, ...]:
        """The table in effect."""
        return self.rows if self.replace else self.rows + ROWS


_A_KEY: Final = "such as 'example.org/gone', or the beginning of one and '*'"
_A_VALUE: Final = "'*', or letters, digits and - _ . inside, at most 63 characters"
_STATUSES: Final = ("True", "False", "Unknown")
KEY_FORMAT: Final[Mapping[Place, str]] = {
    Place.TAINT: f"the key of a taint {_A_KEY}",
    Place.LABEL: f"the key of a label {_A_KEY}",
    Place.ANNOTATION: f"the key of an annotation {_A_KEY}",
    Place.CONDITION: "the type of a condition such as 'DrainScheduled', or the beginning of one and '*'",
    Place.UNSCHEDULABLE: "no key, because spec.unschedulable has none",
}
"""What may stand as the key of a row, by its place."""
VALUE_FORMAT: Final[Mapping[Place, str]] = {
    Place.TAINT: _A_VALUE,
    Place.LABEL: _A_VALUE,
    Place.ANNOTATION: "any text",
    Place.CONDITION: f"'*' or the status of a condition: {values.one_of(_STATUSES)}",
    Place.UNSCHEDULABLE: "'*' or 'true'",
}
"""What may stand as the value of a row, by its place."""


def can_have_key(row: SignalRow) -> bool:
    """Whether a node can carry the key, or one that begins so."""
    if row.place is Place.UNSCHEDULABLE:
        return row.key == ""
    beginning = row.key.removesuffix(ANY)
    if beginning == row.key:
        return values.is_label_key(row.key)
    # The beginning of a key may end where a key may not: `example.org/`, `reboot-`.
    return beginning != "" and values.is_label_key(beginning + "a")


def can_have_value(row: SignalRow) -> bool:
    """Whether the value can ever stand there."""
    match row.place:
        case Place.TAINT | Place.LABEL:
            return row.value == ANY or values.is_label_value(row.value)
        case Place.CONDITION:
            return row.value in {ANY, *_STATUSES}
        case Place.UNSCHEDULABLE:
            return row.value in {ANY, "true"}
        case Place.ANNOTATION:
            return True

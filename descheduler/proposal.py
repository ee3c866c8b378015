"""What strategies say and what comes of it: proposals in, moves and refusals out.   Values only."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from cluster.objects import Pod
from descheduler.picture import Picture
from descheduler.reasons import Reason


class Urgency(StrEnum):
    """Why a pod is to leave, which decides what may hold it back."""

    VOLUNTARY = "voluntary"
    MAINTENANCE = "maintenance"
    INTERRUPTION = "interruption"


class Mode(StrEnum):
    """How a pod is moved."""

    EVICT = "Evict"
    """Its controller makes another one once it is gone."""
    SURGE = "Surge"
    """Its controller is asked for one more first, and then to take this one."""
    RECREATE = "Recreate"
    """It has no controller, so a copy is made first."""


class OfSpec(NamedTuple):
    """What an aim may answer to `alike` if it asks of pods nothing but their spec, whatever their labels are."""

    parts: Hashable


class Aim(Protocol):
    """What a strategy wants to reach, asked again after every move that was booked."""

    def reached(self, picture: Picture) -> bool:
        """Whether nothing more is to be gained; the proposals that are left are then no longer wanted."""

    def ceiling(self) -> float:
        """Nodes that are this full or fuller cannot serve the aim; infinity where it does not depend on load."""

    def alike(self) -> Hashable:
        """Aims with equal answers object to the same nodes for pods of one template, or of one spec if the
        answer is an OfSpec; None: like no other.
        """

    def objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:
        """Why this node would not serve the aim even if it fits. The pod has left its own node in the picture."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pod that should run elsewhere. Who says so, and with what weight, the registry of strategies knows."""

    pod: Pod
    urgency: Urgency
    why: str
    """One sentence for the Event, the plan and the person who asks."""
    aim: Aim | None = None
    """None: the pod is to leave, wherever it can go."""
    deadline: datetime | None = None
    tiers: tuple[bool | None, ...] = ()
    """Capacity of the target, the better first (spot, other, any), where the strategy itself is about capacity.
    Empty: the pod's own intent decides."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that will be moved."""

    pod: Pod
    source: str
    target: str | None
    """None where nothing fits and it has to leave all the same."""
    strategy: str
    weight: int
    urgency: Urgency
    why: str
    deadline: datetime | None = None
    mode: Mode = Mode.EVICT
    victims: tuple[Pod, ...] = ()
    """Pods of lower priority that kube-scheduler has to push out for the replacement."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod that a strategy proposed and that stays, with every reason."""

    pod: Pod
    strategy: str
    reasons: tuple[Reason, ...]

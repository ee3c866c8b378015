"""How many pods of an owner are on each side of its mix: the values, and who is asked for them.

Values only; `tally` keeps them from a watch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from policy.values import Side

Owner = tuple[str, str]
"""Namespace and UID of the controller: a pod that names an owner in another namespace counts for nobody."""


class Counted(NamedTuple):
    """Pods of one owner by the side that was chosen for them."""

    spot: int = 0
    on_demand: int = 0

    def plus(self, side: Side, change: int = 1) -> "Counted":
        """With one more pod, or one less."""
        if side is Side.SPOT:
            return Counted(self.spot + change, self.on_demand)
        return Counted(self.spot, self.on_demand + change)


@dataclass(frozen=True, slots=True)
class Mixed:
    """What counts of one pod."""

    owner: Owner
    side: Side
    decider: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The side of a pod."""

    owner: Owner
    side: Side
    fresh: bool
    """False if an earlier call chose it."""
    move: str = ""
    """The open move that it follows; no other pod does."""


class Counts(Protocol):
    """The one part of a view that is asked and not copied: a burst of pods is over before the next view is made, and
    each of them has to count.
    """

    @property
    def decider(self) -> str:
        """Who chooses here, as pods are told; empty if nobody has to know."""

    def of(self, owner: Owner) -> Counted:
        """How many pods of this owner are on each side, or are about to be."""

    def is_followed(self, owner: Owner, move: str) -> bool:
        """Whether a choice of the last seconds follows this move, so that its replacement is on its way."""

    def decided(self, choice: Choice) -> None:
        """The pod of a review that was answered with this choice will be created. Not for dry runs."""


@dataclass(frozen=True, slots=True)
class Known:
    """Counts that stand still, for commands and tests."""

    pods: Mapping[Owner, Counted] = field(default_factory=dict)
    decider: str = ""

    def of(self, owner: Owner) -> Counted:
        """None of an owner that was never seen."""
        return self.pods.get(owner, Counted())

    def is_followed(self, owner: Owner, move: str) -> bool:  # noqa: ARG002 - the shape of counts
        """Nothing was decided."""
        return False

    def decided(self, choice: Choice) -> None:
        """Nothing comes of it."""


NOBODY: Final = Known()
"""Where nothing is counted."""

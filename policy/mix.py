"""How many pods of a workload belong on spot, and which side its next pod takes.

Pure. Admission and the strategy that corrects it go by the same rule, so that neither undoes what the other did.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from policy import keys, values
from policy.keys import Keys
from policy.placement import Intent
from policy.values import Side, Spot

HUNDRED = 100


@dataclass(frozen=True, slots=True)
class Mix:
    """What a workload asks for."""

    percentage: int = HUNDRED
    """Share of its pods on spot, at most."""
    min_on_demand: int = 0
    """Pods that are on on-demand whatever the share says."""

    def spot(self, replicas: int) -> int:
        """How many of so many pods belong on spot. Rounded down: who asks for a share means at most that much risk.

        One more pod is at most one more here, which is what lets pods be decided one by one.
        """
        return max(0, min(replicas * self.percentage // HUNDRED, replicas - self.min_on_demand))

    def on_demand(self, replicas: int) -> int:
        """How many of so many pods belong on on-demand."""
        return replicas - self.spot(replicas)

    def next(self, spot: int, on_demand: int) -> Side:
        """The side of one more pod, where so many are on each already."""
        return Side.SPOT if spot < self.spot(spot + on_demand + 1) else Side.ON_DEMAND

    def at(self, ordinal: int) -> Side:
        """The side of one numbered pod. Of the first n pods exactly as many are on spot as n pods should have, so
        nothing needs to be counted, and a pod that comes back gets the side it had.
        """
        return Side.SPOT if self.spot(ordinal + 1) > self.spot(ordinal) else Side.ON_DEMAND


def of(intent: Intent) -> Mix | None:
    """The mix that an intent asks for. Only pods that prefer spot can be mixed: `avoid`, `require` and `ignore` say
    where every one of them goes.
    """
    share, least = intent.spot_percentage, intent.min_on_demand
    if intent.spot is not Spot.PREFER or (share is None and least is None):
        return None
    return Mix(HUNDRED if share is None else share, least or 0)


def ordinal(name: str, labels: Mapping[str, str]) -> int | None:
    """The number of a StatefulSet's pod: as its controller labels it, else the end of its name."""
    for text in (labels.get(keys.POD_INDEX, ""), name.rpartition("-")[2]):
        if text.isascii() and text.isdigit() and len(text) <= len(str(values.INT32_MAX)):
            return int(text)
    return None


def chosen(annotations: Mapping[str, str], ours: Keys) -> Side | None:
    """The side that was chosen when the pod was created; None if none was, or somebody wrote nonsense there."""
    text = annotations.get(ours.capacity)
    found = None if text is None else values.side(ours.capacity, text)
    return found if isinstance(found, Side) else None

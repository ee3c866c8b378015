"""No more evictions of a workload are planned at a time than its disruption budget has room for.   Pure.

The eviction API keeps a budget whatever it is asked; so what is looked at is what is asked of it. Moves stand at
their eviction one by one as the budget allows. Those that a user asked for by hand, and those off a node that is
being lost, may stand there in a crowd, because nobody planned them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from testbed import objects
from testbed.api import Object
from tests.chaos.evictions import Evictions
from tests.chaos.records import Entry, Moves
from tests.chaos.watching import Seen

OURS: Final = "-rescheduler-pdb"
LASTING_SECONDS: Final = 1.5
"""Watches of different resources may be that far apart."""
LEAD_SECONDS: Final = 5.0
"""A plan is as old as that when its migrations are seen."""


@dataclass(slots=True)
class Budget:
    """One of a user's, as it was over time."""

    labels: dict[str, str]
    since: float
    allowed: list[tuple[float, int]] = field(default_factory=list)

    def most(self, since: float) -> int:
        """The largest number of disruptions it allowed from then on."""
        before = [count for at, count in self.allowed if at < since][-1:]
        return max([*before, *(count for at, count in self.allowed if at >= since)], default=0)


@dataclass(slots=True)
class Budgets:
    """Told of budgets; knows moves and pods by those who see them."""

    moves: Moves
    evictions: Evictions
    budgets: dict[tuple[str, str], Budget] = field(default_factory=dict)
    _crowded: dict[tuple[str, str], float] = field(default_factory=dict)

    def see(self, seen: Seen) -> Iterator[str]:
        """A version of a budget."""
        key = (seen.namespace, seen.name)
        if seen.name.endswith(OURS):
            return
        if seen.gone:
            self.budgets.pop(key, None)
            self._crowded.pop(key, None)
            return
        labels: dict[str, str] = seen.object["spec"]["selector"].get("matchLabels", {})
        status: dict[str, Any] = seen.object.get("status") or {}
        known = self.budgets.setdefault(key, Budget(labels, seen.at))
        known.allowed.append((seen.at, int(status.get("disruptionsAllowed", 0))))
        yield from ()

    def look(self, now: float) -> Iterator[str]:
        """Budgets at which more moves have been standing for a while than they have had room for."""
        for key, budget in self.budgets.items():
            standing = [it for it in self.moves.latest() if it.namespace == key[0] and self._stands(it, budget)]
            room = max([1, *(budget.most(self._began(it) - LEAD_SECONDS) for it in standing)])
            if len(standing) <= room:
                self._crowded.pop(key, None)
            elif now > self._crowded.setdefault(key, now) + LASTING_SECONDS:
                names = ", ".join(sorted(it.name for it in standing))
                yield f"budget {key[1]} had room for {room}, and {len(standing)} moves stand at it: {names}"

    def _stands(self, entry: Entry, budget: Budget) -> bool:
        if not entry.open or entry.step != "Evict" or entry.strategy in {"", "SpotInterruption"}:
            return False
        pod = self.evictions.pods.get(entry.uid)
        return pod is not None and self._began(entry) > budget.since and _serves(pod) and _selects(budget, pod)

    def _began(self, entry: Entry) -> float:
        return min(it[0].at for it in self.moves.histories.values() if it[0].name == entry.name)


def _serves(pod: Object) -> bool:
    return objects.is_ready(pod) and "deletionTimestamp" not in pod["metadata"]


def _selects(budget: Budget, pod: Object) -> bool:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return budget.labels.items() <= labels.items()

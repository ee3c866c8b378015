"""Writes down what happens, round after round, from one seed.   Pure: the same seed gives the same acts and times.

A round ends with everything taken back that would keep the cluster from coming to rest; then comes a quiet point. How
long that lasts does not matter here: times count from the beginning of a round.
"""

import heapq
import random
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.draws import DRAWS, FIRST, MACHINES, WEIGHTS, Drawn, Pen
from tests.chaos.model import Act, Kind

GAP_SECONDS: Final = 2.0
ABOUT_WORKLOADS: Final = frozenset(
    {Kind.DELETE, Kind.SCALE, Kind.ROLL_OUT, Kind.DELETE_POD, Kind.ASK, Kind.SNATCH, Kind.BUDGET, Kind.NO_BUDGET}
)
ABOUT_MACHINES: Final = frozenset(
    {
        Kind.REMOVE_NODE,
        Kind.NOTICE,
        Kind.NOT_READY,
        Kind.READY,
        Kind.LABEL,
        Kind.UNLABEL,
        Kind.CORDON,
        Kind.UNCORDON,
    }
)


@dataclass(slots=True)
class Author:
    """Writes round after round."""

    seed: int
    gap: float = GAP_SECONDS
    """Between two acts, on average."""
    pen: Pen = field(init=False)

    def __post_init__(self) -> None:
        self.pen = Pen(random.Random(self.seed))

    def opening(self) -> list[Act]:
        """Machines and the first workloads."""
        acts = [
            Act(0.0, Kind.ADD_NODE, it.name, it)
            for spot, count in MACHINES.items()
            for it in (self.pen.machine(spot=spot) for _ in range(count))
        ]
        acts += [Act(0.0, Kind.CREATE, it.name, it) for it in (self.pen.workload(form) for form in FIRST)]
        for act in acts:
            self.pen.model.apply(act)
        return acts

    def round(self, seconds: float) -> list[Act]:
        """What happens in so many seconds, and what takes it back."""
        written: list[Act] = []
        due: list[tuple[float, int, Act]] = []
        now = 0.0
        while now < seconds:
            while due and due[0][0] <= now:
                self._write(written, heapq.heappop(due)[2])
            for after, kind, subject, given in self._drawn():
                act = Act(round(min(now + after, seconds), 3), kind, subject, given)
                if after:
                    heapq.heappush(due, (act.at, next(self.pen.numbers), act))
                else:
                    self._write(written, act)
            now += self.pen.rng.expovariate(1 / self.gap)
        while due:
            self._write(written, heapq.heappop(due)[2])
        for act in self._calming(seconds):
            self._write(written, act)
        return written

    def _write(self, written: list[Act], act: Act) -> None:
        """Unless what it is about is gone meanwhile."""
        if act.kind in ABOUT_WORKLOADS and act.subject not in self.pen.model.workloads:
            return
        if act.kind in ABOUT_MACHINES and act.subject not in self.pen.model.machines:
            return
        self.pen.model.apply(act)
        written.append(act)

    def _drawn(self) -> Drawn:
        (kind,) = self.pen.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        return [] if kind in self.pen.model.under_way else DRAWS[kind](self.pen)

    def _calming(self, at: float) -> list[Act]:
        """The settings that were there first, and as many machines as in the beginning."""
        acts = [Act(at, Kind.CONFIGURE, "usual")]
        for spot, count in MACHINES.items():
            there = sum(1 for it in self.pen.model.machines.values() if it.spot == spot)
            fresh = [self.pen.machine(spot=spot) for _ in range(count - there)]
            acts += [Act(at, Kind.ADD_NODE, it.name, it) for it in fresh]
        return acts

"""How many moves LoadBalancing makes, against the fewest with which it could be done.

    python -m tests.unit.descheduler.moves_bound [--clusters N] [--seed S]

The fewest come from an exact search over every choice of pods and targets on small clusters (moves off the nodes that
are too full, each to a node that stays below the line), and from a bound on larger ones: for each node that is too
full, the number of its largest pods that have to leave, targets or not. The bound cannot always be reached.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from cluster.objects import Pod
from descheduler import plan
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build, generated, naive
from tests.unit.descheduler.generated import World

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MANY = 100_000
FREE = Settings(
    enabled_strategies=("LoadBalancing",),
    max_reschedule_pods=MANY,
    limits=Limits(per_node=MANY, per_namespace=MANY, per_workload=MANY),
)
SLACK = 1e-9
STEPS = 20_000
"""Of one exact search, about two seconds."""
FURTHER = 5
"""Moves beyond the bound that are tried where the plan has not levelled a cluster."""
Shares = tuple[float, float, float]


@dataclass(frozen=True)
class Result:
    """One cluster."""

    seed: int
    made: int
    fewest: int
    exact: bool

    @property
    def ratio(self) -> float:
        return self.made / self.fewest


class LeftOut(StrEnum):
    """Why a cluster is not counted."""

    NOTHING_TO_DO = "nothing too full"
    NOT_LEVELLED = "not levelled by the plan, nor by the search where there is one"
    MISSED = "not levelled by the plan, though it can be"
    TOO_LARGE = "too large to search"


class Problem:
    """A cluster as shares of load only."""

    def __init__(self, world: World) -> None:
        self.names = [node.metadata.name for node in world.nodes]
        offered = [naive.offered(node) for node in world.nodes]
        pods = [(_nominal(pod), self.names.index(pod.node_name)) for pod in world.pods if pod.node_name]
        self.pods = sorted(pods, reverse=True)
        self.offered = offered
        totals = [sum(it[0][part] for it in self.pods) for part in range(3)]
        mean = max(100 * totals[part] / sum(it[part] for it in offered) for part in range(3))
        margin = max(mean * FREE.imbalance_threshold / 100, FREE.imbalance_floor)
        self.act = mean + margin
        self.held = [self._held(node) for node in range(len(offered))]
        self.hot = [node for node in range(len(offered)) if max(self.held[node]) > self.act]

    def share(self, pod: int, node: int) -> Shares:
        asked, room = self.pods[pod][0], self.offered[node]
        return 100 * asked[0] / room[0], 100 * asked[1] / room[1], 100 * asked[2] / room[2]

    def on(self, node: int) -> list[int]:
        return [pod for pod, (_, at) in enumerate(self.pods) if at == node]

    def _held(self, node: int) -> Shares:
        found = [self.share(pod, node) for pod in self.on(node)]
        return sum(it[0] for it in found), sum(it[1] for it in found), sum(it[2] for it in found)


def cover(problem: Problem) -> int:
    """Pods that have to leave at the least: of each node, in its worst share, the largest."""
    return sum(_leavers(problem, node, problem.held[node], problem.on(node)) for node in problem.hot)


def _leavers(problem: Problem, node: int, held: Sequence[float], pods: Sequence[int]) -> int:
    """How many of these pods have to leave the node; more than there are if all of them are not enough."""
    worst = 0
    for part in range(3):
        over, count = held[part] - problem.act - SLACK, 0
        for share in sorted((problem.share(pod, node)[part] for pod in pods), reverse=True):
            if over <= 0:
                break
            over, count = over - share, count + 1
        worst = max(worst, count if over <= 0 else MANY)
    return worst


def fewest(problem: Problem, most: int) -> int | None:
    """The fewest moves that bring every such node down, fewer than `most`; None if there is no better way."""
    return next((count for count in range(cover(problem), most) if _Search(problem).solves(count)), None)


class TooLarge(Exception):
    """The search would take too long."""


class _Search:
    """Every choice, node by node, that can still be done with the moves that are left."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.held = [list(it) for it in problem.held]
        self.steps = 0
        self.later = [
            sum(_leavers(problem, node, problem.held[node], problem.on(node)) for node in problem.hot[number + 1 :])
            for number in range(len(problem.hot))
        ]

    def solves(self, moves: int, number: int = 0, first: int = 0) -> bool:
        problem = self.problem
        self.steps += 1
        if self.steps > STEPS:
            raise TooLarge
        if number == len(problem.hot):
            return True
        node = problem.hot[number]
        if max(self.held[node]) <= problem.act + SLACK:
            return self.solves(moves, number + 1)
        # Within a node pods leave in the order of their numbers, so that no set is tried twice.
        pods = [pod for pod in problem.on(node) if pod >= first]
        if _leavers(problem, node, self.held[node], pods) + self.later[number] > moves:
            return False
        return any(self._with(pod, target, moves, number) for pod, target in self._choices(pods, node))

    def _with(self, pod: int, target: int, moves: int, number: int) -> bool:
        node = self.problem.hot[number]
        out, come = self.problem.share(pod, node), self.problem.share(pod, target)
        _shift(self.held[node], out, -1)
        _shift(self.held[target], come, 1)
        found = self.solves(moves - 1, number, pod + 1)
        _shift(self.held[node], out, 1)
        _shift(self.held[target], come, -1)
        return found

    def _choices(self, pods: Sequence[int], node: int) -> Iterator[tuple[int, int]]:
        """Of pods that ask for the same, only the first: the others come to the same."""
        problem, seen = self.problem, set()
        for pod in pods:
            if problem.pods[pod][0] in seen:
                continue
            seen.add(problem.pods[pod][0])
            for target in range(len(problem.offered)):
                more = problem.share(pod, target)
                fits = all(at + by <= problem.act + SLACK for at, by in zip(self.held[target], more, strict=True))
                if target != node and target not in problem.hot and fits:
                    yield pod, target


def _shift(held: list[float], by: Shares, sign: int) -> None:
    for part in range(3):
        held[part] += sign * by[part]


def _nominal(pod: Pod) -> tuple[int, int, int]:
    requests = pod.spec.containers[0].resources.requests
    return naive.milli_cpu(requests.get("cpu", "100m")), naive.in_bytes(requests.get("memory", "200Mi")), 1


def measure(seed: int, *, small: bool) -> Result | LeftOut:
    """One cluster."""
    world = generated.world(seed, plain=True, nodes=4 + seed % 2 if small else 12 + seed % 30)
    problem = Problem(world)
    if not problem.hot:
        return LeftOut.NOTHING_TO_DO
    made = plan.make(build.state(*world.objects, settings=FREE), FREE, NOW)
    after = {it.name: it.after for it in made.nodes}
    levelled = all(after[problem.names[node]] <= problem.act + SLACK for node in problem.hot)
    try:
        if not levelled:
            missed = small and fewest(problem, cover(problem) + FURTHER) is not None
            return LeftOut.MISSED if missed else LeftOut.NOT_LEVELLED
        bound = fewest(problem, len(made.moves)) if small else cover(problem)
    except TooLarge:
        return LeftOut.TOO_LARGE
    return Result(seed, len(made.moves), bound or len(made.moves), exact=small)


def results(clusters: int, seed: int, *, small: bool) -> tuple[list[Result], Counter[LeftOut]]:
    """From so many clusters with something to do, and how many others were left out on the way."""
    found: list[Result] = []
    left_out: Counter[LeftOut] = Counter()
    while len(found) < clusters:
        result = measure(seed, small=small)
        seed += 1
        if isinstance(result, Result):
            found.append(result)
        else:
            left_out[result] += 1
    return found, left_out


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.unit.descheduler.moves_bound")
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for name, small in (("exact search, 4-5 nodes", True), ("cover bound, 12-41 nodes", False)):
        found, left_out = results(args.clusters, args.seed, small=small)
        ratios = sorted(it.ratio for it in found)
        p90 = ratios[int(0.9 * (len(ratios) - 1))]
        more = Counter(it.made - it.fewest for it in found)
        made, needed = sum(it.made for it in found), sum(it.fewest for it in found)
        lines = (
            f"{name}: {len(found)} clusters, {made} moves, at least {needed} needed",
            f"  ratio: median {statistics.median(ratios):.3f}, p90 {p90:.3f}, largest {ratios[-1]:.3f}",
            "  moves above the bound: " + ", ".join(f"{extra}: {count}" for extra, count in sorted(more.items())),
            "  left out: " + ", ".join(f"{why}: {count}" for why, count in sorted(left_out.items())),
        )
        sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

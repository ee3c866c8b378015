"""Lose the leader at every write of a move, and print how often each step was hit in each way.

`python -m tests.integration.descheduler.crash_campaign --seed 1 --parallel 3`
"""

import argparse
import functools
import operator
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.bed import ControlPlane
from tests.integration.cluster import campaign_bed
from tests.integration.descheduler.moves import crashes, oracle, scene
from tests.integration.descheduler.moves.crashes import CELLS, Cell, Kind
from tests.integration.descheduler.moves.product import Product


@dataclass(slots=True)
class Results:
    """What the campaign saw."""

    hits: Counter[Cell] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    moves: Counter[str] = field(default_factory=Counter)
    """By the phase in which they ended."""
    evictions: int = 0

    def __add__(self, other: "Results") -> "Results":
        return Results(
            self.hits + other.hits,
            self.problems + other.problems,
            self.moves + other.moves,
            self.evictions + other.evictions,
        )


def cells(seed: int, count: int) -> list[Cell]:
    """Every cell before any comes again, in an order that the seed decides."""
    rng = random.Random(seed)
    made: list[Cell] = []
    while len(made) < count:
        made += rng.sample(CELLS, len(CELLS))
    return made[:count]


def run(bed: ControlPlane, chosen: Sequence[Cell], folder: Path) -> Results:
    """One crash after the other, all on the same pods."""
    results = Results()
    with Product(bed, folder) as running, scene.scene(running, "crash", everything=True) as on:
        for number, cell in enumerate(chosen, 1):
            wrong = crashes.crash(running, on, cell)
            results.hits[cell] += 1
            results.problems += [f"{number} {cell[0]}, {cell[1]}: {problem}" for problem in wrong]
            sys.stderr.write(f"{number}/{len(chosen)} {cell[0]}, {cell[1]}: {'; '.join(wrong) or 'well'}\n")
        results.problems += oracle.effects(bed, running.kube, on.namespace)
        phases = (it["status"]["phase"] for it in running.kube.list("podmigrations", on.namespace))
        results.moves = Counter(phases)
        results.evictions = sum(1 for it in oracle.evictions(bed) if it.namespace == on.namespace)
    return results


def summary(results: Results, seconds: float) -> str:
    """The matrix and the figures."""
    lines = [f"{'':30}" + "".join(f"{kind:>16}" for kind in Kind)]
    for step in crashes.STEPS:
        counts = "".join(f"{results.hits[step, kind]:>16}" for kind in Kind)
        lines += [f"{step:30}{counts}"]
    lines += results.problems
    ends = ", ".join(f"{phase} {count}" for phase, count in sorted(results.moves.items()))
    empty = sum(1 for cell in CELLS if not results.hits[cell])
    lines.append(
        f"crashes {results.hits.total()}, cells {len(CELLS)}, empty {empty}, evictions {results.evictions}, "
        f"moves on record: {ends}; problems {len(results.problems)}, wall {seconds:.0f} s"
    )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--count", type=int, default=len(CELLS), help="as many as there are cells is each of them once"
    )
    parser.add_argument("--parallel", type=int, default=1, help="control planes side by side")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        chosen = cells(options.seed, options.count)
        parts = campaign_bed.side_by_side(None, Path(folder), chosen, run, parallel=options.parallel)
    results = functools.reduce(operator.add, parts)
    sys.stdout.write(summary(results, time.monotonic() - began) + "\n")
    return 1 if results.problems else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

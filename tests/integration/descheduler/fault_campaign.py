"""Moves while requests are refused, cut and swallowed at random.

`python -m tests.integration.descheduler.fault_campaign --schedules 50 --seed 1 --parallel 3`
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from testbed.bed import ControlPlane
from tests.integration.cluster import campaign_bed
from tests.integration.descheduler.moves import oracle, scene, trouble
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.trouble import Result

CALM = 5
"""Schedules without trouble, for comparison."""
GOOD = 0.95
"""Share of troubled schedules in which every move must be carried out; what is left may only fail cleanly."""


def run(bed: ControlPlane, seeds: Sequence[int], folder: Path) -> tuple[list[Result], list[str]]:
    """Below zero without trouble; the results, and second effects seen in the audit log."""
    results = []
    with Product(bed, folder) as running, scene.scene(running, "faults", everything=True) as on:
        for number, seed in enumerate(seeds, 1):
            results.append(trouble.run(running, on, seed, calm=seed < 0))
            last = results[-1]
            said = (
                f"{', '.join(last.troubles) or 'calm'}: {last.hits} requests, {Counter(last.moves)}, {last.problems}"
            )
            sys.stderr.write(f"{number}/{len(seeds)} seed {seed} {said}\n")
        return results, oracle.effects(bed, running.kube, on.namespace)


def failures(results: Sequence[Result], effects: Sequence[str]) -> list[str]:
    """Why the campaign is not passed."""
    found = [f"seed {it.seed} ({', '.join(it.troubles)}): {problem}" for it in results for problem in it.problems]
    found += effects
    calm, troubled = [it for it in results if not it.troubles], [it for it in results if it.troubles]
    if not all(it.succeeded for it in calm):
        found.append("a move failed without any trouble")
    if sum(it.succeeded for it in troubled) < GOOD * len(troubled):
        found.append("too many troubled schedules had a move that failed")
    return found


def summary(results: Sequence[Result], found: Sequence[str], seconds: float) -> str:
    """The figures."""
    troubled = [it for it in results if it.troubles]
    phases = Counter(phase for it in results for phase in it.moves)
    kinds = Counter(name for it in troubled for name in it.troubles)
    well = [sum(it.succeeded for it in group) for group in (troubled, [it for it in results if not it.troubles])]
    lines = [
        f"schedules {len(troubled)} troubled, {len(results) - len(troubled)} calm, wall {seconds:.0f} s",
        f"succeeded: troubled {well[0]}, calm {well[1]}; requests troubled {sum(it.hits for it in results)}",
        "troubles: " + ", ".join(f"{name} in {count}" for name, count in sorted(kinds.items())),
        "moves: " + ", ".join(f"{phase} {count}" for phase, count in sorted(phases.items())),
    ]
    return "\n".join([*found, *lines])


def main(arguments: Sequence[str]) -> int:
    """Parse, run, print."""
    options = campaign_bed.options(__doc__, schedules=50, parallel=1).parse_args(arguments)
    seeds = [*range(-CALM, 0), *campaign_bed.seeds(options)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        parts = campaign_bed.side_by_side(options.home, Path(folder), seeds, run, parallel=options.parallel)
    results = [it for part, _ in parts for it in part]
    found = failures(results, [it for _, effects in parts for it in effects])
    sys.stdout.write(summary(results, found, time.monotonic() - began) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

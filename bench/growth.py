"""How cost grows with the cluster: a pass, the way from an event to a plan, and memory, from 100 to 5,000 nodes.

    python -m bench.growth [--smoke] [--json FILE]

Thirty pods on each node. Each size has a process of its own, which is told of the cluster through a pipe, so that
making pods costs it nothing; in it are the product's own decoder, state and planner. Nothing is to be done in the
cluster. The exponent says how a cost grows with the number of pods: 1 is in proportion, below 1 is less. It is given
for a cluster that grows by nodes, and for 1,000 nodes that are filled.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench.fleet import PODS_PER_NODE
from bench.measured import Figures

SIZES, SMOKE = (100, 300, 1_000, 2_000, 5_000), (20, 60)
FILLED, SMOKE_FILLED = (1_000, (10, 30, 60)), (20, (10, 30))
"""So many nodes, with so many pods on each."""
COSTS = {
    "steady plan ms": "a pass in which nothing is to be done",
    "event to plan ms": "from an event to the plan that acts on it",
    "MiB resident": "memory of the process",
}
Found = dict[int, Figures]


def measure(nodes: int, pods: int = PODS_PER_NODE) -> Figures:
    """One size, with so many pods on each node, in a process of its own fed by another."""
    telling = [sys.executable, "-m", "bench.told", str(nodes), str(nodes * pods)]
    with subprocess.Popen(telling, stdout=subprocess.PIPE) as teller:
        output = subprocess.run(
            [sys.executable, "-m", "bench.grown"], stdin=teller.stdout, check=True, capture_output=True, text=True
        ).stdout
    return msgspec.json.decode(output, type=Figures)


def exponent(found: Mapping[int, Figures], figure: str) -> float:
    """The slope between the smallest and the largest size where both axes are logarithmic."""
    small, large = min(found), max(found)
    pods = found[large]["pods"] / found[small]["pods"]
    return math.log(found[large][figure] / found[small][figure]) / math.log(pods)


def table(found: Mapping[int, Figures]) -> str:
    """One row for each size."""
    names = list(next(iter(found.values())))
    lines = ["| nodes | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for nodes, figures in found.items():
        lines.append(f"| {nodes} | " + " | ".join(f"{figures[name]:.4g}" for name in names) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and end with 1 if a pass costs more than in proportion."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="two small sizes that show that it works")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args(arguments)
    found: Found = {}
    for nodes in SMOKE if asked.smoke else SIZES:
        found[nodes] = measure(nodes)
        print(f"{nodes} nodes: {msgspec.json.encode(found[nodes]).decode()}", flush=True)
    nodes, densities = SMOKE_FILLED if asked.smoke else FILLED
    filled = {nodes * pods: measure(nodes, pods) for pods in densities}
    slopes = {figure: exponent(found, figure) for figure in COSTS}
    slopes_filled = {figure: exponent(filled, figure) for figure in COSTS}
    print(table(found))
    for figure, what in COSTS.items():
        told = f"{slopes[figure]:.2f} by nodes, {slopes_filled[figure]:.2f} on {nodes} nodes"
        print(f"{what}: grows with pods to the power of {told}")
    if asked.json:
        body = {"sizes": found, "exponents": slopes, "filled": filled, "filled exponents": slopes_filled}
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(body)))
    return int(not asked.smoke and slopes["steady plan ms"] >= 1)


if __name__ == "__main__":
    sys.exit(main())

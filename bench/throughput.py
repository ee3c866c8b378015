"""How many pods an API server creates each second: without a webhook, with two in Go, and with ours.

    python -m bench.throughput [--seconds 5] [--repeat 3] [--smoke] [--json FILE]

Every webhook is registered for a namespace of its own, and one namespace has none. Several clients at once create
pods, as a dry run, so that nothing is stored; namespaces take turns, another one first in each round.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench import plane
from bench.decode import spread
from bench.webhook import contenders, creations, review
from bench.webhook.contenders import OURS
from bench.webhook.creations import NONE
from testbed import bed, objects
from testbed.bed import ControlPlane
from testbed.waiting import eventually

CLIENTS = 8
Rounds = list[dict[str, float]]
"""Creations a second by who is asked."""


def measure(plane: ControlPlane, folder: Path, *, seconds: float, repeat: int) -> Rounds:
    """All rounds."""
    core = min(os.sched_getaffinity(0))
    program = contenders.programs() / "load"
    with (
        contenders.running(plane, folder, namespace="default", core=max(os.sched_getaffinity(0))) as running,
        creations.registered(plane, running) as namespaces,
    ):
        for each in running:
            eventually(
                lambda each=each: creations.is_called(plane, namespaces[each.name]),  # type: ignore[misc]
                what=f"a pod changed by {each.name}",
            )
        names = list(namespaces)
        rounds: Rounds = []
        for number in range(repeat):
            turned = names[number % len(names) :] + names[: number % len(names)]
            found = {}
            for name in turned:
                one = {name: namespaces[name]}
                done = creations.measure(plane, one, program, folder, seconds=seconds, core=core, clients=CLIENTS)
                assert done[name].failed == 0, f"creations failed with {name}"
                found[name] = done[name].requests / seconds
            rounds.append(found)
        return rounds


def ratios(rounds: Sequence[Mapping[str, float]]) -> dict[str, object]:
    """Ours over each other, formed round by round."""
    others = [name for name in rounds[0] if name != OURS]
    return {name: spread([one[OURS] / one[name] for one in rounds]) for name in others}


def table(rounds: Sequence[Mapping[str, float]]) -> str:
    """Median, least and most."""
    lines = ["| webhook | pods created each second | |", "|---|---|---|"]
    for name in sorted(rounds[0], key=lambda it: it != NONE):
        found = spread([one[name] for one in rounds])
        lines.append(f"| {name} | {found.middle:.0f} | {found.least:.0f} to {found.most:.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.throughput", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="a short run that shows it works")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args(arguments)
    seconds, repeat = (1.0, 1) if asked.smoke else (asked.seconds, asked.repeat)
    with plane.started(nodes=1) as started:
        bed.add_nodes(started.api(), [objects.node("tainted", spot=True, taints=[review.TAINT])])
        rounds = measure(started, started.home.parent, seconds=seconds, repeat=repeat)
    print(table(rounds))
    if asked.json:
        body = {"rounds": rounds, "ours over": ratios(rounds)}
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(body)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Our fit against the real kube-scheduler: `python -m tests.integration.descheduler.fit_campaign --pairs 3360`."""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from testbed.api import Api
from tests.integration.descheduler import mixed_worlds, node_worlds, pod_worlds, scheduler_oracle, storage_worlds
from tests.integration.descheduler.scheduler_oracle import Answer
from tests.integration.descheduler.worlds import World

KINDS: Final[dict[str, Callable[[World], None]]] = {
    "resources": node_worlds.resources,
    "slots, devices": node_worlds.slots,
    "whole pod, overhead": node_worlds.whole_pod,
    "resize": node_worlds.resize,
    "host ports": node_worlds.ports,
    "node selector": node_worlds.selector,
    "node affinity": node_worlds.affinity,
    "taints": node_worlds.taints,
    "cordon": node_worlds.cordon,
    "scheduling gates": node_worlds.gates,
    "pod affinity": pod_worlds.attracted,
    "pod anti-affinity": pod_worlds.avoiding,
    "repelled": pod_worlds.repelled,
    "topology spread": pod_worlds.spread,
    "volume claims": storage_worlds.claims,
    "volume reach": storage_worlds.reach,
    "volume zones": storage_worlds.zone,
    "volumes to bind": storage_worlds.unbound,
    "volume limits": storage_worlds.limit,
    "volumes in use": storage_worlds.exclusive,
    "everything at once": mixed_worlds.mixed,
}
ROUND: Final = 420
"""Worlds at a time: enough to keep the scheduler busy, few enough for its list of nodes to stay short."""


def worlds(count: int, seed: int, namespace: str) -> list[World]:
    """The kinds in turn, so that any number of worlds has all of them."""
    kinds = list(KINDS)
    made = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        world = World(f"{namespace}-{number}", kind, namespace, random.Random(f"{seed}-{number}"))
        KINDS[kind](world)
        made.append(world)
    return made


def run(kube: Api, *, pairs: int, seed: int) -> Iterator[list[Answer]]:
    """Round by round."""
    for start in range(0, pairs, ROUND):
        namespace = f"f{secrets.token_hex(2)}"
        count = min(ROUND, pairs - start)
        yield scheduler_oracle.ask(kube, worlds(count, seed + start, namespace), namespace)


def table(answers: Sequence[Answer]) -> str:
    """Kind by kind: what the scheduler said, and where we said otherwise."""
    rows = [f"{'':22}{'pairs':>7}{'bound':>7}{'not':>7}{'agreed':>8}{'too strict':>12}{'too lenient':>13}"]
    for kind in (*KINDS, "all"):
        counts = _counts([it for it in answers if kind in {it.kind, "all"}])
        rows.append(
            f"{kind:22}{counts['pairs']:>7}{counts['bound']:>7}{counts['not']:>7}{counts['agreed']:>8}"
            f"{counts['strict']:>12}{counts['lenient']:>13}"
        )
    return "\n".join(rows)


def _counts(answers: Sequence[Answer]) -> Counter[str]:
    found: Counter[str] = Counter(pairs=len(answers))
    for answer in answers:
        found["bound" if answer.bound else "not"] += 1
        found["agreed"] += answer.agreed
        found["strict"] += answer.bound and not answer.fits
        found["lenient"] += lenient(answer)
    return found


def lenient(answer: Answer) -> bool:
    """The one mistake that must not happen: we promise a place and the scheduler does not give it."""
    return not answer.bound and (answer.fits or not answer.misfits)


def told(answer: Answer) -> str:
    """A disagreement in one line."""
    ours = "; ".join(map(str, answer.misfits)) or "fits"
    return f"{answer.kind} {answer.world}: scheduler {answer.said!r}, we {answer.fits} {ours}"


def main(arguments: Sequence[str]) -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3360)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path, help="a control plane that runs already and is used up by this")
    chosen = parser.parse_args(arguments)
    answers: list[Answer] = []
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        scheduler_oracle.scheduler_alone(Path(folder) / "bed", chosen.home) as bed,
    ):
        for found in run(bed.api(), pairs=chosen.pairs, seed=chosen.seed):
            answers += found
            sys.stderr.write(f"{len(answers)} pairs, {sum(not it.agreed for it in answers)} disagreements\n")
    lines = [told(it) for it in answers if not it.agreed]
    sys.stdout.write("\n".join([*lines, table(answers), f"wall {time.monotonic() - started:.0f} s", ""]))
    strict = sum(it.bound and not it.fits for it in answers)
    return 1 if any(map(lenient, answers)) or strict > len(answers) / 100 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

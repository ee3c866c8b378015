"""`python -m tests.unit.fuzz [--count 5000] [--seed 1] [--target NAME ...]`: the long campaign, and what it counted.

A failure prints target and number: `--target NAME --seed SEED --first NUMBER --count 1` plays that one again.
"""

import argparse
import random
import sys
import traceback
from collections import Counter

from tests.unit.fuzz.targets import TARGETS


def play(target: str, seed: int, first: int, count: int) -> Counter[str]:
    """How inputs ended; raises with the first that we fail on."""
    found: Counter[str] = Counter()
    for number in range(first, first + count):
        try:
            found[TARGETS[target](random.Random(f"{target}-{seed}-{number}"))] += 1
        except Exception as failure:
            raise AssertionError(f"{target}, seed {seed}, input {number}: {failure!r}") from failure
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.unit.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=5_000, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS, nargs="+", default=list(TARGETS))
    asked = parser.parse_args()
    failed = False
    for target in asked.target:
        try:
            found = play(target, asked.seed, asked.first, asked.count)
        except AssertionError:
            traceback.print_exc()
            failed = True
        else:
            print(f"{target}: {asked.count} inputs, {dict(found)}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

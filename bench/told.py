"""Tells a cluster to whoever reads: `python -m bench.told NODES PODS` prints pages of lists, kind first."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from bench import fleet


def lines(nodes: int, pods: int) -> Iterator[bytes]:
    """Nodes, then ReplicaSets, then pods."""
    count = fleet.templates(pods)
    of_each = [pods // count + (number < pods % count) for number in range(count)]
    every = {
        "Node": (fleet.node(number) for number in range(nodes)),
        "ReplicaSet": (fleet.replica_set(number, of_each[number]) for number in range(count)),
        "Pod": fleet.placed(nodes, pods),
    }
    for kind, items in every.items():
        for page in fleet.pages(items):
            yield kind.encode() + b"\t" + page + b"\n"


def main() -> None:
    """Tell it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int)
    parser.add_argument("pods", type=int)
    asked = parser.parse_args()
    for line in lines(asked.nodes, asked.pods):
        sys.stdout.buffer.write(line)


if __name__ == "__main__":
    main()

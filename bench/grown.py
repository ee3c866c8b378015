"""What `bench.growth` measures at one size, in a process of its own: reads `bench.told`, prints JSON.

An event is the bytes of a watch: a node that is put under maintenance, decoded, applied, and planned for. Times are
processor time: this process does nothing but what is measured.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from statistics import median
from typing import Any

import msgspec

from bench import fleet
from bench.measured import Figures, peak, resident
from cluster.objects import Decoders, Node, Pod, ReplicaSet
from descheduler import plan
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings

STEADY, EVENTS = 10, 5
KINDS: dict[str, type[Any]] = {"Node": Node, "ReplicaSet": ReplicaSet, "Pod": Pod}
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def told(decoders: Decoders) -> Iterator[Any]:
    """What is read, decoded as the product decodes it."""
    for line in sys.stdin.buffer:
        kind, _, page = line.partition(b"\t")
        yield from decoders.of(KINDS[kind.decode()]).decode_list_page(page).items


def steady(state: ClusterState) -> float:
    """Milliseconds of one pass in which nothing is to be done."""
    began = time.process_time()
    made = plan.make(state, Settings(), NOW)
    seconds = time.process_time() - began
    assert not made.moves, f"the cluster was to be even: {made.moves[0].why}"
    return seconds * 1000


def event(state: ClusterState, decoders: Decoders, number: int) -> float:
    """Milliseconds from the bytes of one event to the plan that acts on it; the node is as before afterwards."""
    decoder, old = decoders.of(Node), state.nodes[fleet.node_name(number)].node
    labels = {keys.under().maintenance: "true"}
    line = msgspec.json.encode({"type": "MODIFIED", "object": fleet.node(number, version=2, labels=labels)})
    began = time.process_time()
    _, new = decoder.decode_event(line)
    state.apply(old, new)
    made = plan.make(state, Settings(), NOW)
    seconds = time.process_time() - began
    assert made.moves, "a node under maintenance is emptied"
    state.apply(new, old)
    return seconds * 1000


def measure() -> Figures:
    """Everything about the cluster that is read."""
    before = resident()
    decoders, state = Decoders(), ClusterState(Settings())
    began = time.process_time()
    for item in told(decoders):
        state.apply(None, item)
    seconds = time.process_time() - began
    gc.collect()
    gc.freeze()  # as the product does once it knows the cluster
    steady(state)
    figures = {
        "pods": len(state.pods),
        "steady plan ms": median(steady(state) for _ in range(STEADY)),
        "event to plan ms": median(event(state, decoders, number) for number in range(EVENTS)),
        "state seconds": seconds,
        "MiB resident": resident(),
        "MiB peak": peak(),
    }
    return figures | {"bytes per pod": (figures["MiB resident"] - before) * (1 << 20) / figures["pods"]}


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(measure()).decode() + "\n")

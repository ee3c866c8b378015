"""Thirty pods on one node, and a third of all spot nodes at once: how fast they are elsewhere, and what is kept."""

import random
import sys
import time
from dataclasses import dataclass

import pytest

from testbed import objects
from testbed.waiting import eventually, patient
from tests.integration.descheduler.interruptions.scene import Protocol, Scene

SLOW = {"testbed.spotshift.dev/ready-delay": "5s"}
DEADLINE = 120


MACHINES = [
    pytest.param(True, marks=pytest.mark.campaign, id="a machine of its own"),
    pytest.param(False, id="shared with other tests"),
]
"""Two cores that run other control planes too say nothing about seconds; there all must be replaced at all."""


@pytest.mark.parametrize("quiet", MACHINES)
def test_thirty_pods_of_one_node(on: Scene, quiet: bool) -> None:
    """A workload without a budget, one that may lose half of its pods, and single ones."""
    lost, doomed, *safe = on.pool(spot=6, zone="z", cpu="16")
    with on.only(lost):
        on.create("deployments", objects.deployment("web", replicas=16, annotations=SLOW))
        on.create("deployments", objects.deployment("api", replicas=10, annotations=SLOW))
        on.create("poddisruptionbudgets", objects.budget("api", app="api", maxUnavailable="50%"))
        for name in ("one", "two", "three", "four"):
            on.create("deployments", objects.deployment(name, annotations=SLOW))
        on.settle(30)
    before, counted = set(on.where()), on.product.metric("pods_lost_total")
    # The other lost node carries a sign that keeps no pod away by itself: only our cordon does.
    on.condition(doomed, "VMEventScheduled", "True")
    eventually(lambda: on.marks(doomed), until=lambda it: "cordon" in it, what="the cordon")
    with Protocol(on) as seen:
        began = time.time()
        on.taint(lost)
        eventually(
            on.ready, until=lambda it: len(set(it) - before) >= 30, timeout=DEADLINE, what="all replacements Ready"
        )
        eventually(lambda: len(before & set(seen.deleted)), until=lambda it: it == 30, what="all to have been told")
    first = min(seen.deleted[it] for it in before) - began
    ready = sorted(at - began for name, at in seen.became_ready.items() if name not in before)
    early = sum(1 for it in ready if it < 30)
    tell(f"first eviction {first:.2f} s, 27th Ready {ready[26]:.1f} s, last {ready[29]:.1f} s after the signal")
    if quiet:
        assert first < 1.0
        assert early >= 27
        assert ready[29] < DEADLINE
    landed = {node for name, node in seen.placed.items() if name not in before}
    assert landed <= set(safe), "nothing came to a node that is being lost"
    eventually(on.open_moves, until=lambda it: not it, timeout=30, what="all moves to be over")
    eventually(lambda: on.told("PodsLeft", lost), what="the Event")
    assert on.product.metric("pods_lost_total") == counted


@dataclass(frozen=True)
class Size:
    """How many."""

    nodes: int
    apps: int
    pods: int
    gap: float
    """Seconds of an idle machine that may pass at most without an eviction while one is permitted."""


SIZES = [
    pytest.param(Size(nodes=9, apps=6, pods=36, gap=8), id="36 pods"),
    pytest.param(Size(nodes=30, apps=30, pods=600, gap=2), marks=pytest.mark.campaign, id="600 pods"),
]


@pytest.mark.parametrize("size", SIZES)
def test_a_third_of_the_spot_nodes_within_five_seconds(on: Scene, size: Size) -> None:
    """Every workload has a budget and lies on the lost nodes alone; there is room for all of them elsewhere."""
    chance = random.Random(1)
    names = on.pool(spot=size.nodes, zone="z", cpu="16")
    lost = chance.sample(names, size.nodes // 3)
    each = size.pods // size.apps
    with on.only(*lost):
        for number in range(size.apps):
            name = f"app-{number}"
            on.create("poddisruptionbudgets", objects.budget(name, app=name, maxUnavailable="25%"))
            on.create("deployments", objects.deployment(name, replicas=each))
        on.settle(size.pods)
    apps = {it["metadata"]["name"]: it["metadata"]["labels"]["app"] for it in on.pods()}
    with Protocol(on) as seen:
        eventually(lambda: len(seen.allowed), until=lambda it: it >= size.apps, what="the watch of budgets")
        began = time.time()
        for number, name in enumerate(lost):
            wait_until(began + 5 * number / len(lost))
            on.taint(name)
        eventually(
            lambda: set(apps) - set(seen.deleted), until=lambda it: not it, timeout=DEADLINE, what="all to leave"
        )
        left = max(seen.deleted[it] for it in apps) - began
        eventually(on.ready, until=lambda it: len(it) == size.pods, timeout=DEADLINE, what="all replaced")
        replaced = time.time() - began
    longest = seen.longest_wait(apps, began)
    tell(f"{size.pods} pods off {len(lost)} nodes: told to stop after {left:.1f} s, all Ready after {replaced:.1f} s")
    tell(f"at most {longest:.2f} s without an eviction while one was permitted")
    assert seen.broken == []
    assert longest < patient(size.gap)
    assert not {name for name, node in seen.placed.items() if node in lost and name not in apps}


def wait_until(at: float) -> None:
    """The moment at which the next node is told."""
    eventually(time.time, until=lambda now: now >= at, interval=0.01)


def tell(text: str) -> None:
    """For who runs it with -s."""
    sys.stdout.write(f"\n{text}")

"""All pods of one node, and a third of all spot nodes at once: how fast they are elsewhere, and what is kept."""

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


@dataclass(frozen=True)
class Crowd:
    """Pods of a workload without a budget, of one that may lose half of its pods, and single ones."""

    web: int
    api: int
    single: int
    quiet: bool
    """A machine of its own: two cores that run other control planes too say nothing about seconds."""

    @property
    def pods(self) -> int:
        return self.web + self.api + self.single


CROWDS = [
    pytest.param(Crowd(16, 10, 4, quiet=True), marks=pytest.mark.campaign, id="thirty on a machine of their own"),
    pytest.param(Crowd(6, 4, 2, quiet=False), id="twelve beside other tests"),
]


@pytest.mark.parametrize("crowd", CROWDS)
def test_all_pods_of_one_node(on: Scene, crowd: Crowd) -> None:
    lost, doomed, *safe = on.pool(spot=6, zone="z", cpu="16")
    with on.only(lost):
        on.create("deployments", objects.deployment("web", replicas=crowd.web, annotations=SLOW))
        on.create("deployments", objects.deployment("api", replicas=crowd.api, annotations=SLOW))
        on.create("poddisruptionbudgets", objects.budget("api", app="api", maxUnavailable="50%"))
        for number in range(crowd.single):
            on.create("deployments", objects.deployment(f"single-{number}", annotations=SLOW))
        on.settle(crowd.pods)
    before, counted = set(on.where()), on.product.metric("pods_lost_total")
    # The other lost node carries a sign that keeps no pod away by itself: only our cordon does.
    on.condition(doomed, "VMEventScheduled", "True")
    eventually(lambda: on.marks(doomed), until=lambda it: "cordon" in it, what="the cordon")
    with Protocol(on) as seen:
        began = time.time()
        on.taint(lost)
        eventually(
            on.ready,
            until=lambda it: len(set(it) - before) >= crowd.pods,
            timeout=DEADLINE,
            what="all replacements Ready",
        )
        eventually(lambda: before - set(seen.deleted), until=lambda it: not it, what="all to have been told")
    first = min(seen.deleted[it] for it in before) - began
    ready = sorted(at - began for name, at in seen.became_ready.items() if name not in before)
    early = sum(1 for it in ready if it < 30)
    most = crowd.pods * 9 // 10
    tell(
        f"first eviction {first:.2f} s, {most} Ready {ready[most - 1]:.1f} s, all {ready[-1]:.1f} s after the signal"
    )
    if crowd.quiet:
        assert first < 1.0
        assert early >= most
        assert ready[-1] < DEADLINE
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

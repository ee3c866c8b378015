"""The benchmarks that need the whole product, each small; how fast this machine is today is not asserted."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import evictions, interruption, stopping, thrash, throughput
from bench.webhook import contenders, review
from testbed import bed, install, objects
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.pytest_plugin import Nodes


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("bench") / "bed"
    running = bed.up(home, control_plane_binaries, nodes=thrash.NODES, spot=thrash.NODES, owner=os.getpid())
    try:
        install.install(running, tell=lambda _line: None)
        yield running
    finally:
        bed.down(home)


def test_nothing_is_evicted_where_nothing_fits(product: ControlPlane) -> None:
    stage = thrash.full(product)
    found = stage.play(thrash.OURS, seconds=thrash.INTERVAL_SECONDS + 1)
    assert (found.pods, found.evictions) == (thrash.REPLICAS, 0)
    assert f"| {thrash.OURS} | 0 |" in thrash.table([found])


def test_the_end_of_a_process_is_measured_and_it_runs_again(product: ControlPlane) -> None:
    before = install.status(product)
    found = stopping.measure(product, 1, prefix="spotshift-descheduler")
    assert [len(it) for it in found.values()] == [1]
    assert all(seconds > 0 for it in found.values() for seconds in it)
    after = install.status(product)
    assert all(after.values())
    assert {name for name, pid in after.items() if pid != before[name]} == {"spotshift-descheduler-0.descheduler"}


def test_a_node_is_taken_away_and_what_was_lost_is_counted(product: ControlPlane) -> None:
    kube, sizes = product.api(), interruption.Sizes({"web": 2, "one": 1}, notice=8, watched=9)
    others = [it["metadata"]["name"] for it in kube.list("nodes")]
    for name in others:  # so that all pods begin on the node that is taken away
        kube.patch("nodes", name, {"spec": {"unschedulable": True}})
    found = interruption.Stage(product, kube, sizes).play(interruption.OURS)
    for name in others:
        kube.patch("nodes", name, {"spec": {"unschedulable": None}})
    assert (found.variant, found.pods) == (interruption.OURS, 3)
    assert found.first_eviction is not None
    assert found.lost > 0, "pods need five seconds to start, and some had to go before"
    assert 2 <= evictions.rate(evictions.carried_out(product))["evictions"] <= 3


@pytest.mark.timeout(1500)  # the first run on a machine compiles the other two
def test_pods_are_created_with_each_webhook(
    cluster: ControlPlane, namespace: str, nodes: Nodes, tmp_path: Path
) -> None:
    nodes.add([objects.node(f"{namespace}-tainted", spot=True, taints=[review.TAINT])])
    (found,) = throughput.measure(cluster, tmp_path, seconds=0.5, repeat=1)
    assert set(found) == {"no webhook", contenders.IDIOMATIC, contenders.LEAN, contenders.OURS}
    assert all(found.values())
    assert set(throughput.ratios([found])) == set(found) - {contenders.OURS}


@pytest.mark.campaign
@pytest.mark.parametrize(
    "module", [evictions, interruption, stopping, thrash, throughput], ids=lambda it: it.__name__
)
def test_smoke(module: object, tmp_path: Path, control_plane_binaries: Binaries) -> None:
    report = tmp_path / "figures.json"
    assert module.main(["--smoke", "--json", str(report)]) == 0  # type: ignore[attr-defined]
    assert json.loads(report.read_text())

"""The benchmarks that need the whole product, each small; how fast this machine is today is not asserted."""

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from bench import evictions, interruption, peer, plane, stopping, thrash, throughput
from bench.webhook import contenders, review
from testbed import audit, bed, figures, install, kubelet, objects, process
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.pytest_plugin import Nodes
from testbed.waiting import patient


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("bench") / "bed"
    running = bed.up(home, control_plane_binaries, nodes=thrash.NODES, spot=thrash.NODES, owner=os.getpid())
    try:
        install.install(running, tell=lambda _line: None)
        yield running
    finally:
        bed.down(home)


@pytest.fixture(scope="module")
def without_room(product: ControlPlane) -> thrash.Stage:
    return thrash.full(product)


def test_nothing_is_evicted_where_nothing_fits(product: ControlPlane, without_room: thrash.Stage) -> None:
    found = without_room.play(thrash.OURS, seconds=thrash.INTERVAL_SECONDS + 1)
    assert (found.pods, found.evictions) == (thrash.REPLICAS, 0)
    refused = figures.measured(product, "spotshift_refusals_total", plane.DESCHEDULER)
    assert sum(refused.values()) >= thrash.REPLICAS, "somebody led, looked at each and left it where it was"
    assert f"| {thrash.OURS} | 0 |" in thrash.table([found])


def test_the_end_of_a_process_is_measured_and_it_runs_again(product: ControlPlane) -> None:
    before = install.status(product)
    found = stopping.measure(product, 1, prefix="spotshift-descheduler")
    assert [len(it) for it in found.values()] == [1]
    assert all(seconds > 0 for it in found.values() for seconds in it)
    after = install.status(product)
    assert all(after.values())
    assert {name for name, pid in after.items() if pid != before[name]} == {"spotshift-descheduler-0.descheduler"}


def test_all_pods_begin_on_the_node_that_goes_also_where_nobody_acts(product: ControlPlane) -> None:
    """Other nodes have room, and without the webhook the scheduler would put most pods there."""
    sizes = interruption.Sizes({"web": 3, "one": 1}, notice=1, watched=2)
    found = interruption.Stage(product, product.api(), sizes).play(interruption.NOTHING)
    assert (found.first_eviction, found.worst) == (None, 4)


def crash(running: ControlPlane, deployment: str) -> None:
    """All processes of a Deployment at once, which are started again as a kubelet would. The lease runs on."""
    pods = [it for it in kubelet.remembered(running) if it.deployment == deployment]
    names = {one.name for pod in pods for one in pod.processes}
    ended = [child for name, child in process.running(running.home) if name in names]
    for child in ended:
        child.kill()
    psutil.wait_procs(ended, timeout=10)
    for pod in pods:
        install.start(running, pod)


def test_a_node_is_taken_away_and_what_was_lost_is_counted(product: ControlPlane) -> None:
    """Also right after nobody led: it is measured how soon a leader acts, not how soon there is one."""
    kube, sizes = product.api(), interruption.Sizes({"web": 2, "one": 1}, notice=8, watched=9)
    crash(product, plane.DESCHEDULER)
    found = interruption.Stage(product, kube, sizes).play(interruption.OURS)
    assert (found.variant, found.pods) == (interruption.OURS, 3)
    lost = f"bench-{interruption.OURS}-0"
    noticed = [
        it.at for it in audit.requests(product.layout.audit_log, "admin") if (it.verb, it.name) == ("patch", lost)
    ]
    lease = kube.get("leases", plane.DESCHEDULER, interruption.SYSTEM)
    assert datetime.fromisoformat(lease["spec"]["acquireTime"]) < max(noticed), "there was a leader by then"
    assert found.first_eviction is not None
    assert found.first_eviction < patient(1), "by the event: a pass comes every half minute only"
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


@pytest.mark.campaign
@pytest.mark.timeout(1500)  # the first run on a machine compiles it
def test_the_peer_acts_where_ours_does_not(product: ControlPlane, without_room: thrash.Stage) -> None:
    peer.ensure()
    found = without_room.play(thrash.PEER, seconds=2 * thrash.INTERVAL_SECONDS)
    assert found.evictions > 0, "it was started, and may evict"
    measured = peer.measure(product)
    assert all(measured[name] > 0 for name in ("first cycle seconds", "cycle ms", "MiB resident"))

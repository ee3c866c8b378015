"""Elections on a real apiserver: processes that are partitioned, stopped and killed, and the shipped timing."""

import random
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster import auth
from cluster.client import Client
from cluster.election import Timing
from cluster.lease import Elector
from cluster.runtime import Runtime
from cluster.term import Callbacks, ClusterLease, Term
from telemetry.logs import Logger
from telemetry.meter import Meter
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually, patient

pytestmark = pytest.mark.apart

ROOT = Path(__file__).parents[3]


def test_random_partitions_stalls_and_kills(cluster: ControlPlane) -> None:
    """A short campaign, in a process of its own; by hand the module runs as many schedules as are wanted."""
    options = [f"--home={cluster.home}", "--seed=500", "--schedules=4", "--parallel=4"]
    command = [sys.executable, "-m", "tests.integration.cluster.lease_campaign", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "schedules 4, failed 0" in done.stdout


def elector(cluster: ControlPlane, namespace: str, identity: str) -> Elector:
    def lead(term: Term) -> None:
        term.wait(300)

    log = Logger(lambda _line: None, now=lambda: datetime.now(UTC), strict=True)
    runtime = Runtime(time.monotonic, lambda: datetime.now(UTC), random.Random(identity), log, Meter(strict=True))
    api = ClusterLease(Client(auth.connect(cluster.kubeconfig), rate_limit=None), namespace, "leader")
    return Elector(api, Callbacks(lead), identity=identity, timing=Timing(trust_absence=True), runtime=runtime)


def test_hand_over_with_the_shipped_timing(cluster: ControlPlane, kube: Api, namespace: str) -> None:
    one, two = elector(cluster, namespace, "one"), elector(cluster, namespace, "two")
    one.start()
    eventually(one.is_leader, what="the first leader")
    two.start()
    eventually(lambda: two.holder() == "one", what="a standby that has looked")
    began = time.monotonic()
    assert one.stop(5)
    eventually(two.is_leader, interval=0.01, what="the second leader")
    assert time.monotonic() - began < patient(2.0)
    spec = kube.get("leases", "leader", namespace)["spec"]
    assert spec["holderIdentity"] == "two"
    assert spec["leaseTransitions"] == 1
    assert spec["leaseDurationSeconds"] == 15
    assert two.stop(5)
    assert kube.get("leases", "leader", namespace)["spec"]["holderIdentity"] == ""


def test_what_others_put_into_the_lease_stays(cluster: ControlPlane, kube: Api, namespace: str) -> None:
    one = elector(cluster, namespace, "one")
    one.start()
    eventually(one.is_leader, what="a leader")
    kube.patch("leases", "leader", {"metadata": {"labels": {"team": "blue"}}}, namespace)
    before = kube.get("leases", "leader", namespace)["spec"]["renewTime"]
    after = eventually(
        lambda: kube.get("leases", "leader", namespace),
        until=lambda lease: lease["spec"]["renewTime"] > before,
        what="a renewal after the change",
    )
    assert after["metadata"]["labels"] == {"team": "blue"}
    assert one.is_leader()
    assert one.stop(5)

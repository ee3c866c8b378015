"""The reflector on a real apiserver: through a way that misbehaves, over a restart, and with real streaming."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster import auth
from cluster.client import Client
from cluster.meta import PartialObjectMetadata
from cluster.pod import Pod
from cluster.recovery import Tuning
from cluster.reflector import Reflector
from cluster.resources import CONFIGMAPS, PODS
from cluster.runtime import Runtime
from cluster.source import ClusterSource
from cluster.store import Delta
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric
from testbed import objects
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.integration.cluster import reflector_oracle as oracle

pytestmark = pytest.mark.apart

ROOT = Path(__file__).parents[3]


def campaign(*arguments: str) -> str:
    """In a process of its own: its threads, proxies and broken sockets are no business of this one."""
    command = [sys.executable, "-m", "tests.integration.cluster.reflector_campaign", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_random_faults(cluster: ControlPlane) -> None:
    """A short campaign; by hand the module runs as many schedules as are wanted."""
    figures = campaign(
        f"--home={cluster.home}", "--seed=7000", "--schedules=12", "--parallel=12", "--restart-every=0"
    )
    assert "schedules 12, failed 0" in figures


@pytest.mark.usefixtures("control_plane_binaries")
def test_restarts_of_the_apiserver() -> None:
    """On a control plane of its own, because others would not like it. Killed first, then stopped in order."""
    figures = campaign("--seed=8000", "--schedules=4", "--parallel=4", "--restart-every=5")
    assert "schedules 4, failed 0" in figures


def runtime() -> Runtime:
    log = Logger(lambda _line: None, now=lambda: datetime.now(UTC), strict=True)
    return Runtime(time.monotonic, lambda: datetime.now(UTC), random.Random(1), log, Meter(strict=True))


@pytest.fixture
def client(cluster: ControlPlane) -> Iterator[Client]:
    made = Client(auth.connect(cluster.kubeconfig))
    yield made
    made.close()


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "pages"])
def test_both_ways_to_list_give_the_same(client: Client, kube: Api, namespace: str, streaming: bool) -> None:
    for n in range(7):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"}}
        kube.create("configmaps", body, namespace)
    source = ClusterSource(client, CONFIGMAPS, PartialObjectMetadata, namespace=namespace, page_size=3)
    lent = runtime()
    reflector = Reflector(source, lambda _delta: None, runtime=lent, streaming=streaming)
    reflector.start()
    try:
        assert reflector.wait_synced(20)
        held = {key: oracle.identity(item) for key, item in reflector.store.snapshot().items()}
        fresh = oracle.identities(kube.list("configmaps", namespace))
        assert {key: fresh[key] for key in held} == held
        assert {f"c{n}" for n in range(7)} <= {name for _, name in held}
        verb = "stream" if streaming else "list"
        assert lent.meter.read(Metric.REQUESTS, resource="configmaps", verb=verb, answer="ok") == 1
    finally:
        assert reflector.stop()


def test_pods_through_their_life(client: Client, kube: Api, namespace: str) -> None:
    """Typed and interned objects, a change of the status, and a deletion with a grace period."""
    deltas: list[Delta[Pod]] = []
    reflector = Reflector(
        ClusterSource(client, PODS, Pod, namespace=namespace), deltas.append, runtime=runtime(), freeze=False
    )
    reflector.start()
    try:
        assert reflector.wait_synced(20)
        kube.create("pods", objects.pod("one"), namespace)
        eventually(lambda: reflector.store.get((namespace, "one")), what="the pod in the store")
        kube.patch("pods", "one", {"metadata": {"labels": {"touched": "yes"}}}, namespace)
        eventually(lambda: [d for d in deltas if d.kind == "modified"], what="the change")
        kube.delete("pods", "one", namespace, gracePeriodSeconds=0)
        eventually(lambda: [d for d in deltas if d.kind == "deleted"], what="the deletion")
        assert deltas[0].kind == "added"
        assert deltas[-1].old is not None
        assert deltas[-1].old.metadata.uid == deltas[0].object.metadata.uid
    finally:
        assert reflector.stop()


def test_a_quiet_watch_is_proved_alive_by_bookmarks(client: Client, namespace: str) -> None:
    """The server announces the end of a watch with a bookmark, so even a quiet collection moves on."""
    tuning = Tuning(watch_seconds=3, jitter=0.0)
    lent = runtime()
    source = ClusterSource(client, CONFIGMAPS, PartialObjectMetadata, namespace=namespace)
    reflector = Reflector(source, lambda _delta: None, runtime=lent, tuning=tuning)
    reflector.start()
    try:
        assert reflector.wait_synced(20)
        eventually(
            lambda: lent.meter.read(Metric.REQUESTS, resource="configmaps", verb="watch", answer="ok"),
            until=lambda count: count >= 2,
            timeout=40,
            what="two watches that ended as asked",
        )
        assert lent.meter.read(Metric.REFLECTOR_RELISTS, resource="configmaps", cause="gone") == 0
    finally:
        assert reflector.stop()

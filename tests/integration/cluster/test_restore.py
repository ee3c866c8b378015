"""The reflector after etcd was put back to an earlier state: what was written since then never happened."""

import os
import random
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster import auth
from cluster.client import Client
from cluster.meta import PartialObjectMetadata
from cluster.pace import Pace
from cluster.recovery import Tuning
from cluster.reflector import Reflector
from cluster.resources import CONFIGMAPS
from cluster.runtime import Runtime
from cluster.source import ClusterSource
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric
from testbed import bed
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.waiting import eventually

AHEAD = 600
"""Writes that are lost; what else runs in the control plane takes minutes for as many."""
TUNING = Tuning(silence_seconds=3.0, pace=Pace(base=0.1, top=1.0))


@pytest.fixture
def own(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    try:
        yield bed.up(tmp_path / "bed", control_plane_binaries, owner=os.getpid())
    finally:
        bed.down(tmp_path / "bed")


def copy_while_stopped(own: ControlPlane, source: Path, target: Path) -> None:
    for name in ("kube-apiserver", "etcd"):
        own.stop(name)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    for name in ("etcd", "kube-apiserver"):
        own.start(name)


def data(name: str, value: int = 0) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"restored": "yes"}},
        "data": {"value": str(value)},
    }


@pytest.mark.campaign
def test_what_a_restore_undid_is_undone_in_the_store(own: ControlPlane, tmp_path: Path) -> None:
    kube, backup = own.api(), tmp_path / "backup"
    kube.create("configmaps", data("before"), "default")
    copy_while_stopped(own, own.home / "etcd", backup)
    kube.create("configmaps", data("after"), "default")
    for number in range(AHEAD):
        kube.patch("configmaps", "after", {"data": {"value": str(number)}}, "default")
    kube.delete("configmaps", "before", "default")

    log = Logger(lambda _line: None, now=lambda: datetime.now(UTC), strict=True)
    lent = Runtime(time.monotonic, lambda: datetime.now(UTC), random.Random(1), log, Meter(strict=True))
    client = Client(auth.connect(own.kubeconfig))
    source = ClusterSource(
        client, CONFIGMAPS, PartialObjectMetadata, namespace="default", label_selector="restored=yes"
    )
    reflector = Reflector(source, lambda _delta: None, runtime=lent, tuning=TUNING)
    reflector.start()
    try:
        assert reflector.wait_synced(20)
        assert set(reflector.store.snapshot()) == {("default", "after")}
        copy_while_stopped(own, backup, own.home / "etcd")
        eventually(
            lambda: set(reflector.store.snapshot()),
            until=lambda found: found == {("default", "before")},
            timeout=60,
            what="the collection as it was put back",
        )
        assert lent.meter.read(Metric.REFLECTOR_RELISTS, resource="configmaps", cause="stuck") >= 1
        kube.create("configmaps", data("new"), "default")
        eventually(lambda: reflector.store.get(("default", "new")), what="what was written since then")
    finally:
        assert reflector.stop()
        client.close()

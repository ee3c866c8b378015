"""Events as a real apiserver takes them: created, counted up as a series, and visible to kubectl."""

import random
import time
from datetime import UTC, datetime

import pytest

from cluster import auth
from cluster.client import Client
from cluster.eventlog import Drop, Limits, Severity, Subject, Topic
from cluster.events import ClusterEvents, Recorder
from cluster.runtime import Runtime
from telemetry.logs import Logger
from telemetry.meter import Meter
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.waiting import eventually

MOVED = Topic("Moved", "Evict")
REFUSED = Topic("NotMoved", "Plan", Severity.WARNING)


@pytest.fixture
def recorder(cluster: ControlPlane) -> Recorder:
    log = Logger(lambda _line: None, now=lambda: datetime.now(UTC), strict=True)
    runtime = Runtime(time.monotonic, lambda: datetime.now(UTC), random.Random(), log, Meter(strict=True))
    api = ClusterEvents(Client(auth.connect(cluster.kubeconfig)))
    made = Recorder(
        api, controller="spotshift.dev/test", instance="test-1", runtime=runtime, limits=Limits(refresh=0.2)
    )
    made.start()
    return made


def events(kube: Api, namespace: str) -> list[Object]:
    found = kube.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return [event for event in found if event["reportingController"] == "spotshift.dev/test"]


def test_a_series_grows(kube: Api, namespace: str, recorder: Recorder, cluster: ControlPlane) -> None:
    subject = Subject("v1", "ConfigMap", "settings", namespace)
    for _ in range(3):
        recorder.record(subject, REFUSED, "no node fits " + "\u00e4" * 2000)
    grown = eventually(
        lambda: events(kube, namespace),
        until=lambda found: found and found[0].get("series", {}).get("count", 0) >= 3,
        what="a series",
    )
    assert len(grown) == 1
    assert grown[0]["series"]["count"] == 3
    assert grown[0]["type"] == "Warning"
    assert len(grown[0]["note"].encode()) <= 1024
    for _ in range(2):
        recorder.record(subject, REFUSED, "no node fits " + "\u00e4" * 2000)
    assert recorder.stop(10)
    assert events(kube, namespace)[0]["series"]["count"] == 5
    assert "NotMoved" in cluster.kubectl("events", "-n", namespace)
    assert not any(recorder.dropped().values())


def test_cluster_wide_objects_and_related_ones(kube: Api, namespace: str, recorder: Recorder) -> None:
    node = Subject("v1", "Node", f"node-{namespace}")
    recorder.record(node, MOVED, "drained", related=Subject("v1", "Pod", "web", namespace))
    assert recorder.stop(10)
    found = [event for event in events(kube, "default") if event["regarding"]["name"] == f"node-{namespace}"]
    assert [event["related"]["name"] for event in found] == ["web"]


def test_a_namespace_that_is_not_there_costs_one_drop(recorder: Recorder) -> None:
    recorder.record(Subject("v1", "Pod", "web", "no-such-namespace"), MOVED, "moved")
    assert recorder.stop(10)
    assert recorder.dropped()[Drop.REFUSED] == 1

"""Settings that change while a process runs, mounted as a ConfigMap is, with Events on the real apiserver."""

from pathlib import Path

import pytest

from cluster import auth
from cluster.client import Client
from cluster.eventlog import Subject
from cluster.events import ClusterEvents, Recorder
from cluster.live_settings import LiveSettings
from policy.mistakes import InvalidSettings
from policy.settings import API_VERSION, Settings
from telemetry.metrics import Metric
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.unit.cluster.surroundings import World

HEAD = f"apiVersion: {API_VERSION}\nkind: Policy\n"


class Mount:
    """A ConfigMap volume as the kubelet makes it: a link to a folder that is swapped as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._version = 0
        self.path = folder / "policy.yaml"

    def write(self, text: str) -> None:
        self._version += 1
        version = self._folder / f"..v{self._version}"
        version.mkdir()
        (version / "policy.yaml").write_text(text)
        staging = self._folder / "..data_tmp"
        staging.symlink_to(version.name)
        staging.replace(self._folder / "..data")
        if self._version == 1:
            self.path.symlink_to("..data/policy.yaml")


def test_reload_reject_and_recover(cluster: ControlPlane, kube: Api, namespace: str, tmp_path: Path) -> None:
    world, mount, changes = World(), Mount(tmp_path), list[Settings]()
    mount.write(f"{HEAD}cpuThreshold: 70\n")
    api = ClusterEvents(Client(auth.connect(cluster.kubeconfig)))
    recorder = Recorder(api, controller="spotshift.dev/test", instance="test", runtime=world.runtime)
    recorder.start()
    subject = Subject("v1", "ConfigMap", "spotshift-policy", namespace)
    live = LiveSettings(
        mount.path, subject=subject, recorder=recorder, runtime=world.runtime, on_change=changes.append
    )
    live.start()
    try:
        mount.write(f"{HEAD}cpuThreshold: 60\n")
        eventually(lambda: live.current.cpu_threshold == 60, what="the new settings")
        mount.write(f"{HEAD}cpuThreshold: 600\nmaxReschedulePod: 1\n")
        eventually(lambda: world.meter.read(Metric.SETTINGS_REJECTED) == 1, what="the gauge")
        assert live.current.cpu_threshold == 60, "the old settings stay in force"
        mount.write(f"{HEAD}cpuThreshold: 50\n")
        eventually(lambda: world.meter.read(Metric.SETTINGS_REJECTED) == 0, what="the gauge to fall")
        assert live.current.cpu_threshold == 50
    finally:
        live.stop()
        assert recorder.stop(20)
    assert [settings.cpu_threshold for settings in changes] == [60, 50]
    assert world.events() == ["SETTINGS_RELOADED", "SETTINGS_REJECTED", "SETTINGS_REJECTED", "SETTINGS_RELOADED"]
    events = kube.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    (rejected,) = [event for event in events if event["reason"] == "SettingsRejected"]
    assert rejected["type"] == "Warning"
    assert rejected["regarding"]["name"] == "spotshift-policy"
    for part in ("cpuThreshold: 600 is not accepted", "did you mean 'maxReschedulePods'"):
        assert part in rejected["note"]


def test_a_bad_first_version_is_refused(tmp_path: Path) -> None:
    class Deaf:
        def record(self, *_: object) -> bool:
            raise AssertionError("nothing to tell before there are settings")

    (tmp_path / "policy.yaml").write_text(f"{HEAD}mode: maybe\n")
    with pytest.raises(InvalidSettings, match="mode: 'maybe' is not accepted"):
        LiveSettings(
            tmp_path / "policy.yaml",
            subject=Subject("v1", "ConfigMap", "policy", "default"),
            recorder=Deaf(),
            runtime=World().runtime,
        )

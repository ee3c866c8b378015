"""The emergency stop on an API server that answers when it wants to: what is not known holds everything back."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from descheduler import __main__ as command
from descheduler import run
from descheduler.brake import UNKNOWN, Brake
from policy import keys
from policy.settings import Settings
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen, status
from tests.unit.cluster.surroundings import World, until
from tests.unit.descheduler.test_loop import Desk, uneven

STOP = keys.under().emergency_stop
DENIED = status(403, "Forbidden", "configmaps is forbidden")


def listed(*annotations: dict[str, str]) -> Answer:
    """What a list of the one ConfigMap brings."""
    meta: dict[str, Any] = {"name": "settings", "namespace": "system", "uid": "u", "resourceVersion": "3"}
    items = [{"metadata": {**meta, "annotations": it}} for it in annotations]
    return Answer(body={"metadata": {"resourceVersion": "5"}, "items": items})


class Server:
    """Answers the first list when it is told to."""

    def __init__(self, api: FakeApi, first: Answer) -> None:
        self._first = first
        self.events: bytes | None = None
        """Of the first watch; None: it is silent."""
        self.go = threading.Event()
        api.script = self._answer

    def _answer(self, seen: Seen) -> Answer:
        if "watch" in seen.query:
            told, self.events = self.events, None
            return Answer(body=told or b"", hold=True)
        assert self.go.wait(20)
        return self._first


@contextmanager
def braked(first: Answer, *, needed: bool = True) -> Iterator[tuple[Brake, Server, threading.Event]]:
    woken = threading.Event()
    with fake_api.running() as api:
        server = Server(api, first)
        brake = Brake(
            api.client(rate_limit=None),
            "system",
            "settings",
            key=lambda: STOP,
            wake=woken.set,
            runtime=World().runtime,
            needed=needed,
        )
        brake.start()
        try:
            yield brake, server, woken
        finally:
            server.go.set()
            brake.stop()


SAID = f"emergency stop: {STOP} on ConfigMap system/settings"
FIRST = {
    "no ConfigMap": (listed(), ""),
    "no annotation": (listed({}), ""),
    "taken back": (listed({STOP: "false"}), ""),
    "set": (listed({STOP: "true"}), SAID),
}


@pytest.mark.parametrize(("first", "said"), FIRST.values(), ids=FIRST.keys())
def test_nothing_may_begin_before_the_stop_was_looked_for(first: Answer, said: str) -> None:
    with braked(first) as (brake, server, woken):
        assert (brake.why(), brake.said()) == (UNKNOWN, ""), "not begun, but not called off either"
        assert brake.problem() == "configmaps not synced yet"
        server.go.set()
        until(lambda: brake.why() == said, "the answer")
        until(lambda: brake.problem() is None, "readiness")
        assert woken.wait(20), "whoever waits is told"
        assert brake.said() == said


def event(kind: str, version: int, annotations: dict[str, str], *, uid: str = "u") -> bytes:
    meta = {"name": "settings", "namespace": "system", "uid": uid, "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": {**meta, "annotations": annotations}}}).encode() + b"\n"


DELETED = event("DELETED", 6, {STOP: "true"})
REPLACED = {
    "deleted": (DELETED, f"{SAID}, which is gone; it ends with a new one"),
    "made anew without it": (DELETED + event("ADDED", 7, {}, uid="v"), ""),
    "made anew with it": (DELETED + event("ADDED", 7, {STOP: "true"}, uid="v"), SAID),
}


@pytest.mark.parametrize(("told", "said"), REPLACED.values(), ids=REPLACED.keys())
def test_a_stop_that_was_set_holds_when_its_configmap_goes(told: bytes, said: str) -> None:
    with braked(listed({STOP: "true"})) as (brake, server, _):
        server.events = told
        server.go.set()
        until(lambda: brake.problem() is None and brake.why() == said, f"{said!r}")
        assert brake.said() == said


def test_who_may_not_look_is_not_ready_and_begins_nothing() -> None:
    with braked(DENIED) as (brake, server, _):
        server.go.set()
        until(lambda: "configmaps is forbidden" in (brake.problem() or ""), "what is wrong")
        assert brake.why() == UNKNOWN


def test_where_nobody_is_configured_by_a_configmap_none_is_waited_for() -> None:
    with braked(DENIED, needed=False) as (brake, server, _):
        assert (brake.why(), brake.problem()) == ("", None)
        server.go.set()
        assert (brake.why(), brake.problem()) == ("", None)


def composed(api: FakeApi, folder: Path, *words: str) -> run.Descheduler:
    """The process as the command line makes it, not started."""
    kubeconfig = folder / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
        "users": [{"name": "u", "user": {}}],
    }
    kubeconfig.write_text(yaml.safe_dump(config))
    options = command._parser().parse_args(["run", "--kubeconfig", str(kubeconfig), *words])
    return run.Descheduler(options, World().runtime, Settings())


def test_the_process_waits_for_the_stop_if_it_has_a_settings_file(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n")
    with fake_api.running() as api:
        Server(api, listed()).go.set()
        process = composed(api, tmp_path, "--settings", str(settings))
        assert process.loop.held() == UNKNOWN
        process.brake.start()
        until(lambda: process.loop.held() == "", "an answer")
        process.brake.stop()
        assert composed(api, tmp_path).loop.held() == ""


def test_moves_that_waited_for_the_stop_to_be_known_are_planned_at_once() -> None:
    desk = Desk(uneven(), stopped=UNKNOWN)
    desk.loop.turn(desk.state)
    assert desk.created == []
    desk.stopped, desk.now = "", desk.now + timedelta(seconds=1)
    desk.loop.turn(desk.state)
    assert len(desk.created) == 2, "not an interval later"

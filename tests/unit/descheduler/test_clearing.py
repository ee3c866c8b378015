"""The steps of an uninstall against scripted answers, with a clock that moves only when somebody rests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import errors
from descheduler import clearing
from descheduler.__main__ import main
from descheduler.clearing import Cleanup
from policy import keys
from policy.settings import Settings
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen, status

MIGRATIONS = "/apis/spotshift.dev/v1alpha1/podmigrations"
PODS = "/api/v1/namespaces/spotshift-system/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/spotshift-system/deployments"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/spotshift-system/leases/spotshift-descheduler"


def item(name: str, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **meta}}


@dataclass
class Scene:
    """What the cluster holds at each moment, and what was told."""

    api: FakeApi
    objects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)
    """When the objects of a path are gone."""
    denied: tuple[str, ...] = ()
    refusals: dict[str, Answer] = field(default_factory=dict)
    """What is answered to whoever would change these paths."""
    forgets: bool = False
    """Objects that are changed have no mark any more."""
    now: float = 100.0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api.script = self._answer

    @property
    def cleanup(self) -> Cleanup:
        client = self.api.client(rate_limit=None)
        return Cleanup(client, "spotshift-system", Settings(), self.told.append, lambda: self.now, self._rest)

    def sent(self, method: str) -> list[str]:
        return [it.path for it in self.api.seen if it.method == method]

    def _rest(self, seconds: float) -> None:
        self.now += seconds

    def _answer(self, seen: Seen) -> Answer:
        if any(seen.path.startswith(it) for it in self.denied):
            return status(404, "NotFound")
        if seen.method != "GET" and seen.path in self.refusals:
            return self.refusals[seen.path]
        if seen.method != "GET":
            self._changed(seen.path)
            return Answer(body={"metadata": {"name": "it"}, "spec": {"replicas": 0}, "status": {}})
        if seen.path == LEASE:
            return Answer(body=item("spotshift-descheduler", resourceVersion=self._version()))
        gone = self.now >= self.until.get(seen.path, float("inf"))
        found = [] if gone else self.objects.get(seen.path, [])
        return Answer(body={"kind": "List", "metadata": {"resourceVersion": "9"}, "items": found})

    def _changed(self, path: str) -> None:
        name = path.rpartition("/")[2]
        for objects in self.objects.values() if self.forgets else ():
            objects[:] = [it for it in objects if it["metadata"]["name"] != name]

    def _version(self) -> str:
        """Renewed every two seconds until nobody is left."""
        return str(min(self.now, self.until.get(LEASE, 0.0)) // 2)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with fake_api.running() as fake:
        yield Scene(fake)


def test_moves_are_waited_for(scene: Scene) -> None:
    scene.objects[MIGRATIONS] = [
        item("m", namespace="shop", finalizers=[keys.FINALIZER]),
        item("over", namespace="shop"),
    ]
    scene.until[MIGRATIONS] = 120.0
    assert scene.cleanup.await_moves(60)
    assert scene.told == ["moves under way: 1", "moves under way: 0"]
    last_seen = 120.0 - clearing.POLL_SECONDS
    assert scene.now >= last_seen + clearing.QUIET_SECONDS, "one that was on its way would have been seen"


def test_moves_that_do_not_end_are_not_waited_for_for_ever(scene: Scene) -> None:
    scene.objects[MIGRATIONS] = [item("m", namespace="shop", finalizers=[keys.FINALIZER])]
    assert not scene.cleanup.await_moves(60)
    assert 160.0 <= scene.now < 162.0


def test_a_cluster_without_our_kind_has_no_moves(scene: Scene) -> None:
    scene.denied = (MIGRATIONS,)
    assert scene.cleanup.under_way() == []


def test_programs_are_stopped_and_waited_for(scene: Scene) -> None:
    scene.objects = {DEPLOYMENTS: [item("spotshift-certs"), item("spotshift-descheduler")], PODS: [item("certs-1")]}
    scene.until = {PODS: 110.0, LEASE: 115.0}
    assert scene.cleanup.stop_programs()
    assert scene.sent("PATCH") == [
        f"{DEPLOYMENTS}/spotshift-certs/scale",
        f"{DEPLOYMENTS}/spotshift-descheduler/scale",
    ]
    assert scene.now >= 114.0 + clearing.QUIET_SECONDS, "a leader whose pod is gone still renewed its Lease"
    (selector,) = {it.query["labelSelector"] for it in scene.api.seen if it.path == PODS}
    assert selector == clearing.WRITERS


@pytest.mark.parametrize(
    ("objects", "until", "named"),
    [
        pytest.param({PODS: [item("certs-1")]}, {}, "certs-1", id="a pod that does not end"),
        pytest.param({}, {LEASE: 1e9}, "whoever renews the Lease", id="a leader that does not end"),
    ],
)
def test_programs_that_do_not_end_are_named(
    scene: Scene, objects: dict[str, list[dict[str, Any]]], until: dict[str, float], named: str
) -> None:
    scene.objects, scene.until = objects, until
    assert not scene.cleanup.stop_programs()
    assert scene.told == [f"still at work after {clearing.STOP_SECONDS:g} s: {named}"]


def test_a_mark_that_comes_back_is_taken_back_again_and_told(scene: Scene) -> None:
    scene.objects["/api/v1/pods"] = [item("web", namespace="shop", labels={keys.under().managed: "true"})]
    assert not scene.cleanup.sweep(), "the fake never forgets it"
    assert scene.sent("PATCH") == ["/api/v1/namespaces/shop/pods/web"] * clearing.ROUNDS
    assert scene.told == ["pods shop/web: managed"] * clearing.ROUNDS


REFUSALS = {
    "a right is missing": (status(403, "Forbidden", "no"), "403 Forbidden: no"),
    "it is not valid any more": (status(422, "Invalid", "spec.x: bad"), "422 Invalid: spec.x: bad"),
    "a webhook is down": (status(500, "InternalError", "failed calling webhook"), "500 InternalError: failed"),
}


@pytest.mark.parametrize(("answer", "why"), REFUSALS.values(), ids=REFUSALS.keys())
def test_one_that_refuses_keeps_no_other_from_being_swept(scene: Scene, answer: Answer, why: str) -> None:
    mark = {"namespace": "shop", "labels": {keys.under().managed: "true"}}
    scene.objects["/api/v1/pods"] = [item(name, **mark) for name in ("a", "stubborn", "z")]
    scene.refusals = {"/api/v1/namespaces/shop/pods/stubborn": answer}
    scene.forgets = True
    assert not scene.cleanup.sweep(), "something of ours is left"
    assert [it["metadata"]["name"] for it in scene.objects["/api/v1/pods"]] == ["stubborn"]
    told = sorted(scene.told)
    assert (told[0], told[2]) == ("pods shop/a: managed", "pods shop/z: managed")
    assert told[1].startswith(f"pods shop/stubborn: managed (refused: {why}")
    assert len(told) == 3, "told once, however often it is tried"


def test_where_nobody_knows_us_it_ends(scene: Scene) -> None:
    scene.objects["/api/v1/pods"] = [item("web", namespace="shop", labels={keys.under().managed: "true"})]
    scene.refusals = {"/api/v1/namespaces/shop/pods/web": status(401, "Unauthorized")}
    with pytest.raises(errors.Unauthorized):
        scene.cleanup.sweep()


def test_nothing_to_take_back(scene: Scene) -> None:
    assert scene.cleanup.sweep()
    assert scene.sent("PATCH") == scene.sent("DELETE") == []


def test_nodes_that_users_asked_to_have_emptied_are_named(scene: Scene) -> None:
    label = keys.under().maintenance
    scene.objects["/api/v1/nodes"] = [item("b", labels={label: "true"}), item("a", labels={label: "true"})]
    scene.cleanup.tell_asked()
    assert scene.told == [
        f"label {label} is yours and stays on: a, b",
        "  nobody drains these nodes any more, nor uncordons them: a cordon that is there now is not ours",
        f"  to take it off: kubectl label node a b {label}-",
    ]
    (asked,) = scene.api.seen
    assert asked.query["labelSelector"] == f"{label}=true"
    assert scene.sent("PATCH") == []


def test_where_nobody_asked_nothing_is_said_of_it(scene: Scene) -> None:
    scene.cleanup.tell_asked()
    assert scene.told == []


def test_what_is_not_there_is_not_missed(scene: Scene) -> None:
    scene.denied = ("/",)
    cleanup = scene.cleanup
    cleanup.stop_admissions()
    cleanup.stop_moves()
    cleanup.remove_made()
    assert scene.told == []
    assert len(scene.sent("DELETE")) == 1 + len(clearing.MADE)


def cleaned(prefix: str, folder: Path) -> int:
    """How the program ends where the settings have a mistake and this prefix; one pod has a mark of example.com."""
    settings = f"apiVersion: spotshift.dev/v1alpha1\nkind: Policy\nmode: enfroce\nlabelPrefix: {prefix}\n"
    marked = item("web", namespace="shop", labels={"example.com/managed": "true"})

    def script(seen: Seen) -> Answer:
        if seen.path.endswith("/configmaps/spotshift-settings"):
            return Answer(body={**item("spotshift-settings"), "data": {"settings.yaml": settings}})
        found = [marked] if seen.path == "/api/v1/pods" else []
        return Answer(body={"kind": "List", "metadata": {"resourceVersion": "9"}, "items": found})

    with fake_api.running() as api:
        api.script = script
        config = folder / "kubeconfig"
        config.write_text(yaml.safe_dump(_kubeconfig(api.url)))
        return main(["cleanup", "--dry-run", "--kubeconfig", str(config)])


def test_marks_are_found_by_settings_with_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cleaned("example.com/", tmp_path) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "the settings have 1 mistakes; defaults are used, under example.com/"
    assert "would take back pods shop/web: example.com/managed" in told


def test_nothing_is_swept_under_a_prefix_that_cannot_be_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cleaned("example.com", tmp_path) == 1
    out, err = capsys.readouterr()
    where = "error: ConfigMap spotshift-system/spotshift-settings: "
    assert (out, err.startswith(f"{where}labelPrefix: 'example.com' is not accepted, use a DNS name")) == ("", True)


def test_who_interrupts_it_is_told_to_run_it_again(tmp_path: Path) -> None:
    """The program itself, at the moment at which it waits for moves."""
    with fake_api.running() as api:
        api.script = lambda seen: (
            status(404, "NotFound")
            if seen.path.rpartition("/")[2].startswith("spotshift-")
            else Answer(body={"kind": "List", "metadata": {"resourceVersion": "9"}, "items": []})
        )
        config = tmp_path / "kubeconfig"
        config.write_text(yaml.safe_dump(_kubeconfig(api.url)))
        with subprocess.Popen(
            [sys.executable, "-m", "descheduler", "cleanup"],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "KUBECONFIG": str(config)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            assert "moves under way: 0\n" in iter(child.stdout.readline, "")
            child.send_signal(signal.SIGINT)
            _, complaint = child.communicate(timeout=20)
    assert (child.returncode, complaint) == (
        130,
        "error: interrupted in the middle; run this again, it goes on from there\n",
    )


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {}}],
        "current-context": "it",
    }

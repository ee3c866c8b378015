"""`status`, `nodes`, `plan`, `explain`, `top`: what is shown is what is there, on a terminal and elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import objects
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.e2e.draining import PREFIX, Scene
from tests.integration.console.conftest import COMMANDS
from tests.integration.console.terminal import Plugin

SETTINGS = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n"
LOOKING = ("status", "nodes", "plan", "explain", "top")


def asked(plugin: Plugin, *words: str, code: int = 0) -> dict[str, Any]:
    done = plugin(*words, "-o", "json")
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", LOOKING)
def test_all_forms_tell_the_same(plugin: Plugin, name: str) -> None:
    words = COMMANDS[name]
    told = asked(plugin, *words)
    assert list(yaml.safe_load(plugin(*words, "-o", "yaml").stdout)) == list(told)
    for done in (plugin(*words, "-o", "wide"), plugin(*words)):
        assert (done.returncode, done.stderr) == (0, "")
        assert "on-demand-0" in done.stdout or name == "status"


@pytest.mark.parametrize("name", ["status", "nodes", "plan", "explain", "check", "migrations", "maintenance"])
def test_on_a_terminal_there_is_colour_and_the_same_text(plugin: Plugin, name: str) -> None:
    plain = plugin(*COMMANDS[name])
    shown = plugin.shown(*COMMANDS[name])
    assert shown.code == plain.returncode == 0, shown.text + plain.stderr
    assert "\x1b[" in shown.raw
    headings = [line.split()[0] for line in plain.stdout.splitlines() if line and line.split()[0].isupper()]
    assert all(word in shown.text for word in headings)


def test_the_status_is_that_of_the_cluster(plugin: Plugin, running: ControlPlane) -> None:
    told = asked(plugin, "status")
    lease = running.api().get("leases", "spotshift-descheduler", "spotshift-system")
    assert told["installed"] is True
    assert (told["leader"]["holder"], told["leader"]["leads"]) == (lease["spec"]["holderIdentity"], True)
    assert told["mode"] == "enforce"
    assert told["settings"] == {"source": "ConfigMap spotshift-system/spotshift-settings", "mistakes": []}
    assert (told["nodes"]["total"], told["nodes"]["spot"]) == (5, 2)
    assert told["pods"]["total"] == len(running.api().list("pods"))


def test_the_last_pass_is_told_by_the_leader(plugin: Plugin) -> None:
    first = eventually(lambda: asked(plugin, "status")["lastPass"], what="a pass", timeout=60)
    assert first["mode"] == "enforce"
    last = eventually(
        lambda: asked(plugin, "status")["lastPass"],
        until=lambda it: it["at"] > first["at"],
        timeout=90,
        what="another",
    )
    assert last["seconds"] < 10


def test_the_emergency_stop_shows(plugin: Plugin, running: ControlPlane) -> None:
    key = f"{PREFIX}emergency-stop"
    where = ("configmaps", "spotshift-settings")
    running.api().patch(*where, {"metadata": {"annotations": {key: "true"}}}, "spotshift-system")
    try:
        assert f"stopped by {key}" in plugin("status").stdout
        stopped = eventually(
            lambda: (asked(plugin, "status")["lastPass"] or {}).get("stopped"),
            timeout=60,
            what="the leader to say so",
        )
        assert key in str(stopped)
    finally:
        running.api().patch(*where, {"metadata": {"annotations": {key: None}}}, "spotshift-system")
    assert "stopped by" not in plugin("status").stdout


def test_nodes_are_those_of_the_cluster(plugin: Plugin, scene: Scene) -> None:
    node = "spot-1"
    with scene.only(node):
        scene.create("deployments", objects.deployment("web", replicas=3))
        scene.settle(3)
    told = {it["name"]: it for it in asked(plugin, "nodes")["nodes"]}
    assert set(told) == set(scene.node_names())
    assert {name: it["capacity"] for name, it in told.items() if "spot" in name} == {
        "spot-0": "spot",
        "spot-1": "spot",
    }
    pods = [it for it in scene.kube.list("pods") if it["spec"].get("nodeName") == node]
    assert told[node]["pods"] == len(pods)
    assert told[node]["states"] == ["ready"]
    cpu = sum(int(it["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m")) for it in pods)
    assert told[node]["shares"]["cpu"] == pytest.approx(100 * cpu / 8000, abs=0.1)


def test_nodes_in_trouble(plugin: Plugin, scene: Scene) -> None:
    scene.kube.patch("nodes", "spot-0", {"spec": {"unschedulable": True}})
    try:
        assert [it["name"] for it in asked(plugin, "nodes", "--state", "cordoned")["nodes"]] == ["spot-0"]
        assert asked(plugin, "nodes", "--state", "cordoned", "--capacity", "on-demand")["nodes"] == []
        assert "spot-0" in plugin("explain", "node", "spot-0").stdout
        assert "No pod is sent to it: it is cordoned" in plugin("explain", "node", "spot-0").stdout
    finally:
        scene.kube.patch("nodes", "spot-0", {"spec": {"unschedulable": None}})
    loads = [it["load"] for it in asked(plugin, "nodes", "--sort", "load")["nodes"]]
    assert loads == sorted(loads)


def test_plan_and_explain_agree_with_the_descheduler(plugin: Plugin, scene: Scene) -> None:
    """A pod that says no, on a node that is to be emptied: both commands name the reason that stands on the node."""
    node = "on-demand-1"
    with scene.only(node):
        stays = objects.deployment("stays", replicas=2, annotations={f"{PREFIX}rescheduling": "disabled"})
        scene.create("deployments", stays)
        scene.settle(2)
    pod = scene.pods()[0]["metadata"]["name"]
    scene.label(node)
    scene.drained(node)
    told = asked(plugin, "explain", "pod", pod, "-n", scene.namespace)
    assert told["plan"]["decision"] == "refuse"
    assert [it["code"] for it in told["plan"]["reasons"]] == ["OPTED_OUT"]
    planned = asked(plugin, "plan", "-n", scene.namespace)
    assert {it["pod"] for it in planned["refusals"]} == {it["metadata"]["name"] for it in scene.pods()}
    assert planned["moves"] == []
    story = asked(plugin, "explain", "node", node)
    assert {it["pod"]: it["standing"] for it in story["ifDrained"]}[pod] == "listed"
    assert "maintenance" in story["states"]
    scene.label(node, value=None)
    scene.restored(node)


UNKNOWN = {
    "pod": (("explain", "pod", "nobody"), "error: there is no running or waiting pod default/nobody"),
    "node": (("explain", "node", "on-demand-00"), "there is no node on-demand-00 (did you mean 'on-demand-0'?)"),
    "settings": (("plan", "--settings", "/none.yaml"), "error: /none.yaml: No such file or directory"),
}


@pytest.mark.parametrize(("words", "told"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_there_is_named(plugin: Plugin, words: tuple[str, ...], told: str) -> None:
    done = plugin(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr


def test_top_lives(plugin: Plugin, scene: Scene) -> None:
    """A node that is cordoned while somebody looks changes on their screen; Ctrl-C is the way out."""
    with plugin.started("top", "--interval", "200ms") as window:
        window.wait_for(r"spot-0 +spot")
        assert "\x1b[?1049h" in window.raw, "on a screen of its own"
        scene.kube.patch("nodes", "spot-0", {"spec": {"unschedulable": True}})
        try:
            window.wait_for("cordoned")
        finally:
            scene.kube.patch("nodes", "spot-0", {"spec": {"unschedulable": None}})
        window.interrupt()
        shown = window.ended()
    assert shown.code == 0
    assert "\x1b[?1049l" in shown.raw, "and back to what was there before"


def test_top_goes_by_other_signs_at_once(plugin: Plugin, scene: Scene, tmp_path: Path) -> None:
    """Its state is kept, and with it what nodes said by the settings of before."""
    file, label = tmp_path / "settings.yaml", "acme.example/going"
    file.write_text(SETTINGS)
    scene.kube.patch("nodes", "spot-0", {"metadata": {"labels": {label: "true"}}})
    try:
        with plugin.started("top", "--settings", str(file), "--interval", "200ms") as window:
            window.wait_for(r"spot-0 +spot")
            file.write_text("")  # an editor that writes it anew
            scene.kube.patch("nodes", "spot-1", {"spec": {"unschedulable": True}})
            window.wait_for("cordoned")
            file.write_text(f"{SETTINGS}signals: {{rows: [{{kind: interruption, place: label, key: {label}}}]}}\n")
            window.wait_for("interrupted")
            window.interrupt()
            assert window.ended().code == 0
    finally:
        scene.kube.patch("nodes", "spot-0", {"metadata": {"labels": {label: None}}})
        scene.kube.patch("nodes", "spot-1", {"spec": {"unschedulable": None}})


def test_top_into_a_pipe_is_one_picture(plugin: Plugin) -> None:
    done = plugin("top")
    assert done.returncode == 0
    assert done.stdout.count("NODE ") == 1
    assert done.stdout.startswith("WHAT ")
    twice = plugin("top", "--count", "2", "--interval", "100ms")
    assert twice.stdout.count("NODE ") == 2

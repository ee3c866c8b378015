"""`migrate`, `migrations`, `maintenance`: what is asked for happens, and is followed to its end."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from testbed import objects
from testbed.waiting import eventually
from tests.e2e.draining import LABEL, PREFIX, STATUS, Scene
from tests.integration.console.terminal import Plugin

SLOW = {"testbed.spotshift.dev/ready-delay": "2s"}


def web(scene: Scene, node: str, replicas: int = 2, **options: Any) -> str:
    """Pods of a Deployment on one node; the name of one of them."""
    with scene.only(node):
        scene.create("deployments", objects.deployment("web", replicas=replicas, **options))
        scene.settle(replicas)
    return min(str(it["metadata"]["name"]) for it in scene.pods())


def test_a_pod_is_moved_where_it_was_asked_to(plugin: Plugin, scene: Scene) -> None:
    pod = web(scene, "on-demand-0")
    done = plugin("migrate", pod, "--to", "on-demand-2", "-n", scene.namespace, "--wait", "--timeout", "2m")
    assert done.returncode == 0, done.stdout + done.stderr
    created, *steps, last = done.stdout.splitlines()
    name = re.fullmatch(r"podmigration.spotshift.dev/(migration-\d{13}-[a-z0-9]{6}) created", created)
    assert name is not None
    assert f"{pod}: InProgress AwaitReplacement" in steps
    assert re.fullmatch(r"Completed after \d+s: web-\S+ is Ready on on-demand-2, as planned", last)
    (move,) = scene.moves()
    assert move["metadata"]["name"] == name[1]
    assert set(move["spec"]) == {"podRef", "targetNode"}
    assert move["status"]["replacement"]["node"] == "on-demand-2"

    listed = plugin("migrations", "-n", scene.namespace).stdout.splitlines()
    assert listed[0].split() == ["NAME", "POD", "FROM", "TO", "LANDED", "STRATEGY", "PHASE", "STEP", "AGE"]
    assert listed[1].split()[:5] == [name[1], pod, "on-demand-0", "on-demand-2", "on-demand-2"]
    assert "by hand" in listed[1]
    assert plugin("migrations", "-n", scene.namespace, "--open").stdout == (
        f"No moves under way in namespace {scene.namespace}\n"
    )
    everywhere = json.loads(plugin("migrations", "-A", "-o", "json").stdout)["migrations"]
    assert [it["onTarget"] for it in everywhere if it["name"] == name[1]] == [True]


def test_a_move_on_a_terminal(plugin: Plugin, scene: Scene) -> None:
    pod = web(scene, "on-demand-0", annotations=SLOW)
    shown = plugin.shown("migrate", f"pod/{pod}", "-n", scene.namespace, "--wait")
    assert shown.code == 0, shown.text
    assert "━" in shown.raw
    assert "AwaitReplacement" in shown.text
    assert "Completed after" in shown.text


def test_a_move_that_is_refused_says_why(plugin: Plugin, scene: Scene) -> None:
    with scene.only("on-demand-0"):
        scene.create("deployments", objects.deployment("web", annotations={f"{PREFIX}rescheduling": "disabled"}))
        scene.settle(1)
    pod = scene.pods()[0]["metadata"]["name"]
    done = plugin("migrate", pod, "-n", scene.namespace, "--wait", "--timeout", "1m", "-o", "json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["phase"] in {"Cancelled", "Failed"}
    assert told["message"].startswith("OPTED_OUT")


def test_a_move_that_takes_longer_than_one_waits_goes_on(plugin: Plugin, scene: Scene) -> None:
    pod = web(scene, "on-demand-0", annotations=SLOW)
    done = plugin("migrate", pod, "-n", scene.namespace, "--wait", "--timeout", "500ms")
    assert done.returncode == 4
    assert done.stderr.startswith("error: the move has not ended, it is still ")
    eventually(scene.phases, until=lambda it: it == {"Completed"}, timeout=60, what="the end of the move")


def test_a_dry_run_asks_the_server_and_leaves_nothing(plugin: Plugin, scene: Scene) -> None:
    pod = web(scene, "on-demand-0")
    for words in (("migrate", "web"), ("explain", "pod/web")):
        done = plugin(*words, "-n", scene.namespace)
        names = ", ".join(sorted(it["metadata"]["name"] for it in scene.pods()))
        assert (done.returncode, f"pod {scene.namespace}/web (did you mean {names}?)" in done.stderr) == (1, True)
    done = plugin("migrate", pod, "-n", scene.namespace, "--dry-run")
    made, goes = done.stdout.splitlines()
    assert (done.returncode, made.endswith(" created (server dry run)")) == (0, True)
    assert re.fullmatch(r"it would go to (on-demand-[12]|spot-[01]) by \w+", goes)
    assert scene.moves() == []


def test_a_dry_run_tells_what_is_against_the_move(plugin: Plugin, scene: Scene) -> None:
    pod = web(scene, "on-demand-0", annotations={f"{PREFIX}rescheduling": "disabled"})
    done = plugin("migrate", pod, "-n", scene.namespace, "--dry-run")
    assert (done.returncode, scene.moves()) == (1, [])
    assert done.stderr.startswith("error: it would be cancelled: OPTED_OUT: ")


def test_a_move_to_its_own_node_is_refused_whoever_asks(plugin: Plugin, scene: Scene) -> None:
    """By the plugin at once, and by the descheduler if somebody writes it past the plugin: nothing is evicted."""
    node = "on-demand-0"
    pod = web(scene, node)
    before = {it["metadata"]["uid"] for it in scene.pods()}
    done = plugin("migrate", pod, "--to", node, "-n", scene.namespace)
    told = f"error: pod {scene.namespace}/{pod} runs on {node} already: name another node, or leave --to out\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    assert scene.moves() == []
    spec = {"podRef": {"name": pod}, "targetNode": node}
    kind = {"apiVersion": "spotshift.dev/v1alpha1", "kind": "PodMigration", "metadata": {"name": "by-hand"}}
    scene.create("podmigrations", {**kind, "spec": spec})
    eventually(scene.phases, until=lambda it: it == {"Cancelled"}, timeout=60, what="the end of the move")
    (move,) = scene.moves()
    assert move["status"]["message"] == f"ALREADY_THERE: it runs on {node} already"
    assert {it["metadata"]["uid"] for it in scene.pods()} == before


MISTAKES = {
    "pod": (("migrate", "web-none"), "there is no pod "),
    "pod where there are none": (("migrate", "web-none"), " has no pods; name another with -n)"),
    "node": (
        ("migrate", "POD", "--to", "on-demand-9"),
        "error: there is no node on-demand-9 (did you mean 'on-demand-",
    ),
    "nodes": (
        ("maintenance", "start", "none-1", "none-2"),
        "error: there is no node none-1\nerror: there is no node none-2",
    ),
}


@pytest.mark.parametrize(("words", "told"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_cannot_be_asked_for(plugin: Plugin, scene: Scene, words: tuple[str, ...], told: str) -> None:
    pod = web(scene, "on-demand-0", 1) if "POD" in words else ""
    done = plugin(*(word.replace("POD", pod) for word in words), "-n", scene.namespace)
    assert done.returncode == 1
    assert told in done.stderr
    assert scene.moves() == []


def test_moves_are_followed_as_they_happen(plugin: Plugin, scene: Scene, tmp_path: Path) -> None:
    pod = web(scene, "on-demand-0", annotations={"testbed.spotshift.dev/ready-delay": "4s"})
    words = ("migrations", "-n", scene.namespace, "-w")
    table, stream = tmp_path / "table", tmp_path / "stream"
    with (
        plugin.started(*words) as window,
        plugin.writing(table, *words) as one,
        plugin.writing(stream, *words, "-o", "json") as other,
    ):
        window.wait_for("No moves")
        eventually(table.read_text, what="the first line of the table", timeout=60)
        plugin("migrate", pod, "-n", scene.namespace)
        window.wait_for("Completed")
        assert "\x1b[32m" in window.raw
        for path in (table, stream):
            eventually(path.read_text, until=lambda text: "Completed" in text, what=f"the end in {path}")
        window.interrupt()
        assert window.ended().code == 130
        for process in (one, other):
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
    phases = [line.split()[-3] for line in table.read_text().splitlines() if line.startswith("migration-")]
    assert phases[-1] == "Completed"
    assert "InProgress" in phases
    events = [json.loads(line) for line in stream.read_text().splitlines()]
    assert (events[0]["event"], events[-1]["phase"]) == ("added", "Completed")
    again = plugin(*words, "--timeout", "100ms")
    assert (again.returncode, len(again.stdout.splitlines())) == (0, 2), "as long as asked, and nothing twice"


def test_a_node_is_emptied_and_given_back(plugin: Plugin, scene: Scene) -> None:
    node = "on-demand-1"
    web(scene, node, 3)
    with scene.only(node):
        stays = objects.deployment("stays", replicas=1, annotations={f"{PREFIX}rescheduling": "disabled"})
        scene.create("deployments", stays)
        scene.settle(4)
    done = plugin("maintenance", "start", f"node/{node}", "--deadline", "2h", "--wait", "--timeout", "3m")
    assert done.returncode == 5, done.stdout + done.stderr
    steps, _, left = done.stdout.partition("NODE ")
    first, *middle, last = steps.splitlines()
    assert first == f"node/{node} maintenance requested"
    assert any(re.fullmatch(rf"{node}: draining \d/\d", line) for line in middle)
    assert re.fullmatch(rf"{node}: drained, \d+ stay", last)
    assert re.search(rf"{scene.namespace}/stays-\S+ +OPTED_OUT: ", left), left
    assert scene.note(node, STATUS) == "drained"
    assert {it for it in scene.apps_on(node) if it in {"web", "stays"}} == {"stays"}

    status = plugin("maintenance", "status", node)
    assert status.stdout.splitlines()[0].split() == ["NODE", "STAGE", "PROGRESS", "LEFT", "SINCE", "DEADLINE"]
    assert "OPTED_OUT" in status.stdout
    assert re.search(r"in 1\d\dm", status.stdout)
    told = json.loads(plugin("maintenance", "status", "-o", "json").stdout)["maintenance"]
    assert [(it["node"], it["stage"], it["cordonedByUs"]) for it in told] == [(node, "drained", True)]
    assert "maintenance (drained), cordoned" in plugin("nodes").stdout

    stopped = plugin("maintenance", "stop", node, "--wait", "--timeout", "1m")
    assert stopped.returncode == 0, stopped.stderr
    assert stopped.stdout.splitlines()[-1] == f"{node}: in use, as it was found"
    scene.restored(node)
    assert f"{PREFIX}maintenance-deadline" not in scene.node(node)["metadata"]["annotations"]
    assert plugin("maintenance", "status").stdout == "No node is in maintenance\n"
    assert plugin("maintenance", "stop", node).stdout == f"node/{node} was not in maintenance\n"


def test_a_drain_on_a_terminal_has_a_bar(plugin: Plugin, scene: Scene) -> None:
    node = "on-demand-1"
    web(scene, node, 3)
    shown = plugin.shown("maintenance", "start", node, "--wait")
    assert shown.code == 0, shown.text
    assert re.search(rf"{node}.*━.*draining \d/\d", shown.text)
    assert "drained" in shown.text
    back = plugin.shown("maintenance", "stop", node, "--wait")
    assert (back.code, "as it was found" in back.text) == (0, True)


def test_a_drain_that_a_budget_holds_up_is_told_when_the_time_is_over(plugin: Plugin, scene: Scene) -> None:
    node = "on-demand-1"
    with scene.only(node):
        scene.create("statefulsets", objects.stateful_set("guarded", replicas=2))
        scene.create("poddisruptionbudgets", objects.budget("guarded", app="guarded", minAvailable=2))
        scene.settle(2)
    done = plugin("maintenance", "start", node, "--wait", "--timeout", "4s")
    assert done.returncode == 4
    assert f"error: node {node} has not come to its end within " in done.stderr
    assert "guarded-0" in done.stdout
    assert "PDB_NO_BUDGET" in plugin("status").stdout or "guarded" in plugin("status").stdout
    assert plugin("maintenance", "stop", node, "--wait").returncode == 0


@pytest.mark.campaign
def test_somebody_takes_the_label_away_meanwhile(plugin: Plugin, scene: Scene) -> None:
    node = "on-demand-1"
    with scene.only(node):
        scene.create("statefulsets", objects.stateful_set("guarded", replicas=2))
        scene.create("poddisruptionbudgets", objects.budget("guarded", app="guarded", minAvailable=2))
        scene.settle(2)
    with plugin.started("maintenance", "start", node, "--wait") as window:
        window.wait_for("draining")
        scene.kube.patch("nodes", node, {"metadata": {"labels": {LABEL: None}}})
        shown = window.ended()
    assert shown.code == 1
    assert f"error: somebody has changed the maintenance of node {node} meanwhile" in shown.text

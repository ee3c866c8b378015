"""`kubectl label node`, and what becomes of the node and its pods, with the whole product from its manifests."""

import os
import random
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import objects
from testbed.api import ApiError, Object
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.waiting import eventually
from tests.e2e import draining
from tests.e2e.draining import PREFIX, REMAINING, SINCE, STATUS, Scene, is_temporary

MANIFESTS = Path(__file__).parents[2] / "manifests"
EXAMPLE = MANIFESTS / "examples" / "maintenance.yaml"
STOPS = 10
"""Moments at which the label is taken away again; more in a long run."""
NOT_READY = {"testbed.spotshift.dev/ready": "false"}
SLOW = {"testbed.spotshift.dev/ready-delay": "3s"}
RUNS_ON = {"testbed.spotshift.dev/complete-after": "3600s"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("drain") / "bed"
    with draining.product(home, control_plane_binaries, nodes=5) as made:
        for part in ("rbac.yaml", "policy.yaml"):  # pods without a controller are copied only with this component
            made.kubectl("apply", "-f", str(MANIFESTS / "components" / "recreate" / part))
        yield made


@pytest.fixture
def scene(running: ControlPlane) -> Iterator[Scene]:
    with draining.scene(running, f"t-{secrets.token_hex(4)}") as made:
        yield made
        made.quiet()


def job(name: str, backoff_limit: int) -> dict[str, Any]:
    made = objects.job(name, annotations=RUNS_ON)
    made["spec"]["backoffLimit"] = backoff_limit
    return made


def test_all_that_may_move_moves_and_the_rest_is_named(scene: Scene) -> None:
    node = scene.node_names()[0]
    scene.create("daemonsets", objects.daemon_set("agent"))
    eventually(lambda: len(scene.pods()), until=lambda count: count == 5, what="the DaemonSet on every node")
    with scene.only(node):
        scene.create("deployments", objects.deployment("web", replicas=3))
        scene.create("deployments", objects.deployment("broken", replicas=2, annotations=NOT_READY))
        scene.create("statefulsets", objects.stateful_set("guarded", replicas=2))
        scene.create("statefulsets", objects.stateful_set("data", replicas=2))
        scene.create("jobs", job("fails", 0))
        scene.create("jobs", job("retries", 6))
        scene.create("pods", objects.pod("bare"))
        scene.create("pods", objects.pod("copied", annotations={f"{PREFIX}rescheduling": "enabled"}))
        scene.create("deployments", objects.deployment("stays", replicas=2))
        scene.create("poddisruptionbudgets", objects.budget("guarded", app="guarded", minAvailable=2))
        scene.settle(5 + 15, ready=5 + 13)
        scene.kube.patch(
            "deployments",
            "stays",
            {"metadata": {"annotations": {f"{PREFIX}rescheduling": "disabled"}}},
            scene.namespace,
        )
    scene.label(node)
    left = eventually(
        lambda: scene.apps_on(node),
        until=lambda it: it == ["agent", "bare", "fails", "guarded", "guarded", "stays", "stays"],
        timeout=120,
        what="everything that may move to have moved",
    )
    assert left.count("agent") == 1

    def named() -> dict[str, str]:
        return draining.reasons(scene.note(node, REMAINING))

    told = eventually(named, until=lambda it: len(it) == 6, what="the six that are left, by name")
    codes = {pod.split("-")[0]: why for pod, why in told.items()}
    assert codes["bare"].startswith("NO_CONTROLLER")
    assert codes["fails"].startswith("JOB_WOULD_FAIL")
    assert codes["guarded"].startswith("PDB_NO_BUDGET")
    assert codes["stays"].startswith("OPTED_OUT")
    done, total = map(int, scene.note(node, STATUS).removeprefix("draining ").split("/"))
    assert (total - done, total >= 12) == (3, True), "the two guarded ones and the Job still have to leave"

    # A pod that belongs to the node comes back to it although it is cordoned.
    agent = next(it for it in scene.pods() if it["spec"].get("nodeName") == node and is_app(it, "agent"))
    scene.kube.delete("pods", agent["metadata"]["name"], scene.namespace, gracePeriodSeconds=0)
    eventually(lambda: scene.apps_on(node).count("agent"), until=lambda count: count == 1, what="the agent again")

    scene.kube.patch(
        "poddisruptionbudgets", "guarded", {"spec": {"minAvailable": None, "maxUnavailable": 1}}, scene.namespace
    )
    eventually(lambda: "guarded" in scene.apps_on(node), until=lambda it: not it, timeout=60, what="guarded to leave")
    scene.kube.delete("jobs", "fails", scene.namespace, propagationPolicy="Background")
    scene.drained(node)
    assert set(draining.reasons(scene.note(node, REMAINING))) >= {"bare"}
    scene.label(node, value=None)
    scene.restored(node)


def is_app(pod: dict[str, Any], name: str) -> bool:
    return bool(pod["metadata"]["labels"]["app"] == name)


@pytest.mark.parametrize("seed", [0, *(pytest.param(it, marks=pytest.mark.campaign) for it in range(1, STOPS))])
def test_the_label_is_taken_away_at_any_moment(scene: Scene, seed: int) -> None:
    """Moves that have begun to evict end; the others leave nothing; the node is as it was."""
    node = scene.node_names()[0]
    with scene.only(node):
        scene.create("deployments", objects.deployment("web", replicas=5, annotations=SLOW))
        scene.settle(5)
    before = {it["metadata"]["uid"] for it in scene.pods()}
    scene.label(node)
    moment = time.monotonic() + random.Random(seed).uniform(0, 12)
    eventually(lambda: time.monotonic() > moment, interval=0.02, what="a random moment")
    scene.label(node, value=None)
    scene.restored(node)
    scene.quiet()
    scene.settle(5)
    moved = [it for it in scene.moves() if it["status"]["phase"] == "Completed"]
    after = {it["metadata"]["uid"] for it in scene.pods()}
    assert len(before - after) == len(moved), "a pod is gone if and only if its move was completed"
    assert all(it["status"]["phase"] in {"Completed", "Cancelled"} for it in scene.moves())


def test_a_cordon_of_somebody_else_stays(scene: Scene) -> None:
    node = scene.node_names()[0]
    scene.kube.patch("nodes", node, {"spec": {"unschedulable": True}})
    scene.label(node)
    scene.drained(node)
    assert f"{PREFIX}cordoned-by" not in scene.node(node)["metadata"]["annotations"]
    scene.label(node, value=None)
    scene.restored(node, cordoned=True)
    scene.kube.patch("nodes", node, {"spec": {"unschedulable": None}})


def told_of(move: Object) -> str:
    """For a failure: which way it went, and how it ended."""
    status = move["status"]
    resolved, landed = status.get("resolved", {}), status.get("replacement", {}).get("node")
    way = f"{resolved.get('sourceNode')} -> {resolved.get('targetNode')}, landed {landed}"
    return f"{move['spec']['podRef']['name']}: {way}, {status.get('phase')}: {status.get('message')}"


def test_three_of_five_nodes_at_once(scene: Scene) -> None:
    names = scene.node_names()
    chosen, open_nodes = names[:3], set(names[3:])
    scene.create("deployments", objects.deployment("web", replicas=10))
    scene.create("deployments", objects.deployment("api", replicas=5))
    scene.settle(15)
    on_chosen = sum(it["spec"]["nodeName"] in chosen for it in scene.pods())
    assert on_chosen >= 6
    scene.label(*chosen)
    order: list[str] = []
    told: dict[str, str] = {}

    def done() -> bool:
        for name in chosen:
            told[name] = scene.note(name, STATUS)
            if told[name] == "drained" and name not in order:
                order.append(name)
        assert sum(text.startswith("draining") for text in told.values()) <= 1 or len(order) < 3
        return len(order) == len(chosen)

    eventually(done, timeout=180, what="all three to be drained")
    assert order == chosen, "by the time on the node, then by name"
    assert len({scene.note(name, SINCE) for name in chosen}) <= 2
    scene.quiet()
    scene.settle(15)
    assert {it["spec"]["nodeName"] for it in scene.pods()} <= open_nodes
    ways = [told_of(it) for it in scene.moves()]
    moves = [it for it in scene.moves() if it["status"]["phase"] == "Completed"]
    assert len(moves) == on_chosen, f"no pod was moved twice: {ways}"
    landed = {it["status"]["replacement"]["node"] for it in moves}
    assert landed <= open_nodes, ways
    # Labels come one after the other: a target may be to be left as well before anybody has left for it.
    others = [it for it in scene.moves() if it["status"]["phase"] != "Completed"]
    assert [it for it in others if "is to be left as well" not in it["status"]["message"]] == [], ways
    scene.label(*chosen, value=None)
    for name in chosen:
        scene.restored(name)


ENDS = (
    *("success", "a budget of the user"),
    *(pytest.param(it, marks=pytest.mark.campaign) for it in ("failure", "cancel", "crash")),
)


@pytest.mark.parametrize("end", ENDS)
def test_the_temporary_budget_goes_with_the_move(scene: Scene, running: ControlPlane, end: str) -> None:
    node = scene.node_names()[0]
    with scene.only(node):
        kind = NOT_READY if end == "failure" else SLOW
        scene.create("deployments", objects.deployment("web", replicas=3, annotations=kind))
        if end == "failure":  # these become Ready, those that replace them do not
            eventually(lambda: len(scene.pods()), until=lambda count: count == 3, what="three pods")
            for pod in scene.pods():
                ready = {"metadata": {"annotations": dict.fromkeys(NOT_READY)}}
                scene.kube.patch("pods", pod["metadata"]["name"], ready, scene.namespace)
        scene.settle(3)
    scene.label(node)
    eventually(scene.budgets, until=lambda it: any(map(is_temporary, it)), interval=0.05, what="the budget")
    seen = running.kubectl("get", "pdb", "-A", "--no-headers")
    assert re.search(rf"^{scene.namespace} +web-rescheduler-pdb ", seen, re.MULTILINE), "shown while pods move"
    (budget,) = (it for it in scene.kube.list("poddisruptionbudgets", scene.namespace))
    owners = {it["kind"] for it in budget["metadata"]["ownerReferences"]}
    assert owners == {"PodMigration"}
    assert budget["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    match end:
        case "cancel":
            scene.label(node, value=None)
        case "crash":
            draining.kill_leader(running)
        case "a budget of the user":
            scene.create("poddisruptionbudgets", objects.budget("own", app="web", maxUnavailable=1))
            eventually(
                scene.budgets, until=lambda it: not any(map(is_temporary, it)), interval=0.02, what="ours to be gone"
            )
            assert "InProgress" in scene.phases()  # it goes with the other's arrival, not with the last move
    if end == "failure":
        eventually(scene.phases, until=lambda it: "Failed" in it, timeout=60, what="a move that failed")
        scene.label(node, value=None)
    elif end != "cancel":
        eventually(lambda: "web" in scene.apps_on(node), until=lambda it: not it, timeout=120, what="web to leave")
    scene.quiet()
    if end == "success":
        assert scene.phases() == {"Completed"}
    elif end not in {"cancel", "failure"}:  # what was called off on the way was planned again
        assert scene.phases() <= {"Completed", "Cancelled"}


def test_the_example(scene: Scene, running: ControlPlane) -> None:
    running.kubectl("apply", "-n", scene.namespace, "-f", str(EXAMPLE))
    scene.settle(7)
    stays = next(it for it in scene.pods() if is_app(it, "licence-server"))
    node = stays["spec"]["nodeName"]
    running.kubectl("label", "node", node, f"{PREFIX}maintenance=true")
    path = "{.metadata.annotations.scheduler\\.alpha\\.kubernetes\\.io/maintenance-status}"
    running.kubectl("wait", "node", node, f"--for=jsonpath={path}=drained", "--timeout=120s")
    assert scene.apps_on(node) == ["licence-server"]
    name = stays["metadata"]["name"]
    assert draining.reasons(scene.note(node, REMAINING))[name].startswith("OPTED_OUT")
    running.kubectl("label", "node", node, f"{PREFIX}maintenance-")
    scene.restored(node)
    scene.settle(7)


def test_the_opt_out_example(scene: Scene, running: ControlPlane) -> None:
    """First with the whole namespace opted out, then without, on one node that has everything."""
    node = scene.node_names()[0]
    disabled = f"{PREFIX}rescheduling"
    running.kubectl("annotate", "namespace", scene.namespace, f"{disabled}=disabled")
    with scene.only(node):
        running.kubectl("apply", "-n", scene.namespace, "-f", str(MANIFESTS / "examples" / "opt-out.yaml"))
        scene.settle(8)
    running.kubectl("label", "node", node, f"{PREFIX}maintenance=true")
    scene.drained(node)
    assert set(scene.apps_on(node)) == {"free", "bound", "bound-pods"}
    running.kubectl("annotate", "namespace", scene.namespace, f"{disabled}-")
    eventually(
        lambda: set(scene.apps_on(node)),
        until=lambda left: left == {"bound", "bound-pods"},
        timeout=60,
        what="free to leave as well",
    )
    scene.drained(node)
    told = draining.reasons(scene.note(node, REMAINING))
    assert len(told) == 4
    assert all(reason.startswith("OPTED_OUT") for reason in told.values()), told
    running.kubectl("label", "node", node, f"{PREFIX}maintenance-")
    scene.restored(node)
    scene.settle(8)


@pytest.fixture
def may_delete(running: ControlPlane, tmp_path: Path) -> Iterator[None]:
    """The component that gives the right, and the setting that makes use of it; taken back afterwards."""
    parts = {"resources": ["base/descheduler"], "components": ["components/recreate", "components/delete"]}
    relative = {
        kind: [os.path.relpath(MANIFESTS / path, tmp_path) for path in paths] for kind, paths in parts.items()
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(relative))
    rendered = running.kubectl("kustomize", str(tmp_path))
    wanted = {"ClusterRole", "ValidatingAdmissionPolicy"}
    changed = [it for it in yaml.safe_load_all(rendered) if it["kind"] in wanted]
    before = [running.kubectl("get", it["kind"], it["metadata"]["name"], "-o", "yaml") for it in changed]
    running.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(changed))
    node_maintenance = {**draining.POLICY["strategies"]["NodeMaintenance"], "onDeadline": "delete"}
    draining.configure(running.api(), {**draining.POLICY, "strategies": {"NodeMaintenance": node_maintenance}})
    yield
    draining.configure(running.api(), draining.POLICY)
    for was in before:
        running.kubectl("replace", "--force", "-f", "-", stdin=was)


@pytest.mark.usefixtures("may_delete")
def test_a_budget_holds_until_the_deadline(scene: Scene) -> None:
    node = scene.node_names()[0]
    with scene.only(node):
        scene.create("statefulsets", objects.stateful_set("guarded", replicas=2))
        scene.create("poddisruptionbudgets", objects.budget("guarded", app="guarded", minAvailable=2))
        scene.settle(2)
    limit = {"metadata": {"annotations": {f"{PREFIX}maintenance-deadline": str(int(time.time()) + 20)}}}
    scene.kube.patch("nodes", node, limit)
    scene.label(node)
    eventually(
        lambda: scene.node(node)["metadata"]["annotations"],
        until=lambda notes: "PDB_NO_BUDGET" in notes.get(REMAINING, ""),
        timeout=15,
        what="the budget, named on the node",
    )
    assert scene.apps_on(node) == ["guarded", "guarded"]
    scene.drained(node)
    scene.kube.patch("nodes", node, {"metadata": {"annotations": {f"{PREFIX}maintenance-deadline": None}}})
    scene.settle(2)


def test_nobody_else_meets_a_second_budget(scene: Scene) -> None:
    """An eviction by somebody else, as kubectl drain makes it, is answered by one budget: yes, or not now."""
    node = scene.node_names()[0]
    with scene.only(node):
        scene.create("deployments", objects.deployment("web", replicas=4, annotations=SLOW))
        scene.create("poddisruptionbudgets", objects.budget("own", app="web", maxUnavailable=1))
        scene.settle(4)
    scene.label(node)
    answers: list[int] = []

    def asked() -> bool:
        pods = [it["metadata"]["name"] for it in scene.pods() if it["spec"].get("nodeName") == node]
        assert not any(map(is_temporary, scene.budgets()))
        for name in pods[:1]:
            try:
                scene.kube.evict(name, scene.namespace)
                answers.append(201)
            except ApiError as refusal:
                answers.append(refusal.status)
        return not pods

    eventually(asked, timeout=120, interval=0.3, what="the node to be empty")
    assert 500 not in answers

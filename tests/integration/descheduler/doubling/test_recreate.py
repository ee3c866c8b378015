"""Pods that nobody would replace: copied if they ask for it, and never lost."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from testbed import access, cordons, objects
from testbed.api import ApiError, connect
from testbed.waiting import eventually
from tests.integration.descheduler.doubling.scene import OURS, SYSTEM, Scene

OPTED_IN = {OURS.rescheduling: "enabled"}
GATE = "example.com/serves"
OPEN = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
"""For one pod by the test; nobody opens the gate of its copy."""
STRATEGIC = "application/strategic-merge-patch+json"


def run(scene: Scene, annotations: dict[str, str] | None = None, **options: Any) -> str:
    scene.kube.create(
        "pods", objects.pod("web", annotations={**OPTED_IN, **(annotations or {})}, **options), scene.namespace
    )
    scene.wait_ready(1)
    return "web"


def test_a_copy_takes_its_place_twice(scene: Scene) -> None:
    name = run(scene)
    uid = scene.pods()[0]["metadata"]["uid"]
    for _ in range(2):
        move = scene.ask(name)
        status = scene.end(move)
        assert (status["phase"], status["resolved"]["mode"]) == ("Completed", "Recreate"), status
        copy, source = status["replacement"]["name"], status["resolved"]["sourceNode"]
        scene.told(
            move,
            {"event": "MIGRATION_STARTED", "mode": "Recreate", "sourceNode": source, "pod": name},
            {"event": "HINT_PUBLISHED", "preferredNode": status["resolved"]["targetNode"], "avoidNode": source},
            {"event": "COPY_CREATED", "newPod": copy, "preferredNode": status["resolved"]["targetNode"]},
            {"event": "REPLACEMENT_READY", "newPod": copy, "targetNode": status["replacement"]["node"]},
            {"event": "EVICTED", "sourceNode": source, "strategy": "Manual"},
            {"event": "MIGRATION_FINISHED", "targetNode": status["replacement"]["node"]},
            {"event": "CLEANED_UP"},
        )
        assert re.fullmatch(r"rescheduled-web-\d{10}", copy)
        (left,) = eventually(scene.pods, until=lambda pods: len(pods) == 1)
        assert left["metadata"]["name"] == copy
        assert left["metadata"]["annotations"][OURS.original_pod] == uid
        assert "ownerReferences" not in left["metadata"]
        assert scene.fewest == 1
        name, uid = copy, left["metadata"]["uid"]


def test_two_whose_copies_ask_for_one_name_get_one_each(scene: Scene) -> None:
    names = [f"runner-of-the-integration-tests-of-the-payments-{number}" for number in (1, 2)]
    for name in names:
        scene.kube.create("pods", objects.pod(name, annotations=OPTED_IN), scene.namespace)
    scene.wait_ready(2)
    uids = {it["metadata"]["uid"] for it in scene.pods()}
    for move in [scene.ask(name) for name in names]:
        assert scene.end(move)["phase"] == "Completed"
    left = eventually(scene.pods, until=lambda pods: not {it["metadata"]["name"] for it in pods} & set(names))
    assert {it["metadata"]["annotations"][OURS.original_pod] for it in left} == uids
    assert len(left) == len(names)


def test_a_copy_that_is_never_ready_goes_and_the_original_stays(scene: Scene) -> None:
    gated = objects.pod("web", annotations=OPTED_IN, readinessGates=[{"conditionType": GATE}])
    scene.kube.create("pods", gated, scene.namespace)
    scene.kube.patch("pods", "web", OPEN, scene.namespace, kind=STRATEGIC, subresource="status")
    scene.wait_ready(1)
    status = scene.end(scene.ask("web"))
    assert status["phase"] == "Failed"
    assert "is not Ready after" in status["message"]
    eventually(scene.names, until=lambda names: names == ["web"], what="the original alone")
    labels = scene.pods()[0]["metadata"]["labels"]
    assert not {OURS.migration_id, OURS.migration_status} & set(labels)


def test_a_copy_is_what_frees_the_budget_of_a_pod_that_is_alone(scene: Scene) -> None:
    name = run(scene)
    scene.kube.create("poddisruptionbudgets", objects.budget("one", app=name, minAvailable=1), scene.namespace)
    eventually(
        lambda: scene.kube.get("poddisruptionbudgets", "one", scene.namespace)["status"],
        until=lambda status: status.get("currentHealthy") == status.get("desiredHealthy") == 1,
        what="the budget to be counted",
    )
    with pytest.raises(ApiError, match="429"):
        scene.kube.evict(name, scene.namespace)
    status = eventually(  # the descheduler may hear of the count later than we do
        lambda: scene.end(scene.ask(name)),
        until=lambda it: "PDB_NO_BUDGET" not in it.get("message", ""),
        what="a move after the budget was counted",
    )
    assert (status["phase"], status["resolved"]["mode"]) == ("Completed", "Recreate"), status
    assert scene.names() == [status["replacement"]["name"]]
    assert scene.fewest == 1


def test_a_copy_outlives_the_node_that_takes_its_original(scene: Scene) -> None:
    """Before it is Ready, and with nothing else that would bring the pod back."""
    gated = objects.pod("web", annotations=OPTED_IN, readinessGates=[{"conditionType": GATE}])
    scene.kube.create("pods", gated, scene.namespace)
    scene.kube.patch("pods", "web", OPEN, scene.namespace, kind=STRATEGIC, subresource="status")
    node = scene.wait_ready(1)[0]["spec"]["nodeName"]
    cordons.cordon(scene.kube, [node])  # no webhook tells the copy where to go here
    move = scene.ask("web")
    scene.reach(move, "AwaitReady")
    scene.delete_node(node)
    with suppress(ApiError):  # the garbage collector of pods may have been quicker
        scene.kube.delete("pods", "web", scene.namespace, gracePeriodSeconds=0)
    scene.reach(move, "AwaitReplacement")
    (copy,) = scene.names()
    scene.kube.patch("pods", copy, OPEN, scene.namespace, kind=STRATEGIC, subresource="status")
    status = scene.end(move)
    assert (status["phase"], status["replacement"]["name"]) == ("Completed", copy), status
    assert scene.names() == [copy]


REFUSED: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "not opted in": ({}, {OURS.rescheduling: "disabled"}, "OPTED_OUT"),
    "host name": ({"hostname": "db", "subdomain": "x"}, {}, "NO_CONTROLLER"),
}


@pytest.mark.parametrize(("options", "annotations", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(scene: Scene, options: dict[str, Any], annotations: dict[str, str], code: str) -> None:
    name = run(scene, annotations, **options)
    status = scene.end(scene.ask(name))
    assert status["phase"] == "Cancelled"
    assert code in status["message"]
    assert scene.names() == ["web"]


def test_our_token_makes_copies_only(scene: Scene) -> None:
    run(scene)
    ours = connect(access.kubeconfig(scene.process.bed, "spotshift-descheduler", SYSTEM))
    marked = objects.pod("rescheduled-x-1780315200", nodeName="somewhere")
    marked["metadata"]["labels"][OURS.migration_id] = "m"
    calls: list[Callable[[], object]] = [
        lambda: ours.delete("pods", "web", scene.namespace),
        lambda: ours.create("pods", objects.pod("other"), scene.namespace),
        lambda: ours.create("pods", marked, scene.namespace),
    ]
    for call in calls:
        with pytest.raises(ApiError) as caught:
            call()
        assert caught.value.status == 403, caught.value
    del marked["spec"]["nodeName"]
    ours.create("pods", marked, scene.namespace)

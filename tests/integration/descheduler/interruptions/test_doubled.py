"""A single replica that is doubled when the time of its node runs out stops in order; the number stays the user's."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from testbed import objects
from testbed.api import Object
from testbed.waiting import eventually
from tests.integration.descheduler.interruptions.scene import ITN, KEYS, Scene

APP = "web"
GATE = "example.com/serves"
REBALANCE = "aws-node-termination-handler/rebalance-recommendation"
SOON = "cloud.google.com/impending-node-termination"
"""Fifteen seconds."""


def serves(on: Scene, pod: str) -> None:
    """Open its gate; a pod that nobody opens one for takes as long as the test likes."""
    body = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
    kind = "application/strategic-merge-patch+json"
    on.kube.patch("pods", pod, body, on.namespace, kind=kind, subresource="status")


def deploy(on: Scene, node: str, grace: int) -> Object:
    """One replica that serves there; none that comes after it does by itself."""
    body = objects.deployment(APP, terminationGracePeriodSeconds=grace, readinessGates=[{"conditionType": GATE}])
    with on.only(node):
        on.create("deployments", body)
        (pod,) = eventually(on.where, until=lambda it: list(it.values()) == [node], what="its pod")
        serves(on, pod)
        on.settle(1)
    return on.kube.get("pods", pod, on.namespace)


def move_of(on: Scene, step: str) -> Object:
    """The one move, once it is in this step."""

    def there(found: list[Object]) -> bool:
        return [it.get("status", {}).get("step") for it in found] == [step]

    (found,) = eventually(on.moves, until=there, timeout=60, what=step)
    return found


def drained(on: Scene, node: str) -> None:
    on.kube.patch("nodes", node, {"metadata": {"labels": {KEYS.maintenance: "true"}}})


def recommended(on: Scene, node: str) -> None:
    on.taint(node, REBALANCE)


Begin = Callable[[Scene, str], None]
SHOWN = "a drain began it, and the notice comes"
"""The others differ in what began the move, and belong to the campaigns."""
CASES: dict[str, tuple[Begin | None, str, int]] = {
    "the notice began it": (None, ITN, 90),
    "a recommendation began it, and the notice comes": (recommended, SOON, 5),
    SHOWN: (drained, SOON, 5),
}


@pytest.mark.parametrize(
    ("begin", "notice", "grace"),
    [
        pytest.param(*case, id=name, marks=() if name == SHOWN else pytest.mark.campaign)
        for name, case in CASES.items()
    ],
)
def test_the_original_stops_in_time_though_the_other_one_does_not_serve(
    on: Scene, begin: Begin | None, notice: str, grace: int
) -> None:
    lost, *_ = on.pool(spot=3, zone="z")
    original = deploy(on, lost, grace)
    if begin is not None:
        begin(on, lost)
        assert "deadline" not in move_of(on, "AwaitAvailable")["spec"]
    on.taint(lost, notice)
    assert move_of(on, "AwaitAvailable")["status"]["resolved"]["mode"] == "Surge"
    noted = eventually(lambda: on.marks(lost).get(KEYS.interruption_deadline), what="the deadline")
    stopping = eventually(lambda: asked_to_stop(on, original), timeout=90, what="the eviction")
    assert noted is not None
    assert stopping is not None
    deadline = datetime.fromisoformat(noted)
    assert deadline - timedelta(seconds=6) <= stopping <= deadline, "as late as it can be, and in order"
    one_serves_elsewhere(on, lost)


def asked_to_stop(on: Scene, pod: Object) -> datetime | None:
    """When its grace period ends."""
    for it in on.kube.list("pods", on.namespace):
        if it["metadata"]["uid"] == pod["metadata"]["uid"] and "deletionTimestamp" in it["metadata"]:
            return datetime.fromisoformat(it["metadata"]["deletionTimestamp"])
    return None


def one_serves_elsewhere(on: Scene, lost: str) -> None:
    """The user's number, one pod, and nothing of the move."""
    eventually(lambda: wanted(on)["spec"]["replicas"], until=lambda it: it == 1, what="the number as it was")
    (pod,) = eventually(on.where, until=lambda it: len(it) == 1 and "" not in it.values(), what="one pod")
    assert on.where()[pod] != lost
    serves(on, pod)
    eventually(on.open_moves, until=lambda it: not it, timeout=60, what="the move to be over")
    (move,) = on.moves()
    assert (move["status"]["phase"], move["status"]["replacement"]["name"]) == ("Completed", pod)
    eventually(lambda: wanted(on)["metadata"].get("labels", {}), until=lambda it: KEYS.moving not in it)
    assert list(on.where()) == [pod]


def wanted(on: Scene) -> dict[str, Any]:
    return on.kube.get("deployments", APP, on.namespace)

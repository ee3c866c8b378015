"""Ending a process, and stopping all moves: how long it takes, and what becomes of moves under way."""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from descheduler.brake import UNKNOWN
from policy import keys
from testbed import faults, objects
from testbed.waiting import eventually
from tests.integration.descheduler.moves import crashes, product
from tests.integration.descheduler.moves.crashes import STEPS
from tests.integration.descheduler.moves.product import SYSTEM, Product
from tests.integration.descheduler.moves.scene import APP, Scene

AT_ONCE = 2.0
STOP = keys.under().emergency_stop


@pytest.mark.parametrize(
    "at",
    ["evict", *(pytest.param(it, marks=pytest.mark.campaign) for it in ("mark the pod", "claim the replacement"))],
)
def test_a_process_ends_at_once_and_another_finishes_its_moves(running: Product, on: Scene, at: str) -> None:
    with crashes.held(running, STEPS[at], after=True) as request:
        on.drain()
        leader, _ = request.reached()
        took = running.end(leader)
    running.start(leader)
    eventually(on.is_drained, timeout=60, what="the drained node")
    on.return_node()
    assert on.left() == []
    assert took < AT_ONCE


def say_stop(running: Product, on: Scene, value: str | None) -> None:
    body = {"metadata": {"annotations": {STOP: value}}}
    on.kube.patch("configmaps", "spotshift-settings", body, SYSTEM)


def observe(running: Product, on: Scene, value: str | None) -> None:
    running.configure(**({"mode": "observe"} if value else {}))


STOPS: dict[str, Any] = {"emergency stop": say_stop, "mode: observe": observe}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS.keys())
def test_a_stop_calls_off_what_can_be_called_off_within_two_seconds(running: Product, on: Scene, stop: Any) -> None:
    on.kube.create("poddisruptionbudgets", objects.budget("none", app=APP, maxUnavailable=0), on.namespace)
    name = product.ask_for(on.kube, on.namespace, on.a_pod(), target=on.target)

    def status() -> dict[str, Any]:
        found: dict[str, Any] = on.kube.get("podmigrations", name, on.namespace).get("status", {})
        return found

    eventually(status, until=lambda it: "PDB_NO_BUDGET" in it.get("message", ""), what="a blocked move")
    said = datetime.now(UTC)
    stop(running, on, "true")
    try:
        ended = eventually(status, until=lambda it: it.get("phase") == "Cancelled", what="the end of the move")
        assert datetime.fromisoformat(ended["finishedAt"]) - said < timedelta(seconds=AT_ONCE)
        assert any(word in ended["message"] for word in ("emergency stop", "observe"))
        later = product.ask_for(on.kube, on.namespace, on.a_pod(), target=on.target)
        refused = eventually(
            lambda: on.kube.get("podmigrations", later, on.namespace).get("status", {}),
            until=lambda it: it.get("phase") == "Cancelled",
            what="a move that is not begun",
        )
        assert "startedAt" not in refused
    finally:
        stop(running, on, None)
    assert on.left() == []


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS.keys())
def test_past_its_eviction_a_move_is_finished_all_the_same(running: Product, on: Scene, stop: Any) -> None:
    with crashes.held(running, STEPS["evict"], after=True) as request:
        name = product.ask_for(on.kube, on.namespace, on.a_pod(), target=on.target)
        request.reached()
        stop(running, on, "true")
    try:
        ended = eventually(
            lambda: on.kube.get("podmigrations", name, on.namespace).get("status", {}),
            until=lambda it: it.get("phase") in {"Completed", "Failed", "Cancelled"},
            timeout=60,
            what="the end of the move",
        )
        assert ended["phase"] == "Completed", ended
    finally:
        stop(running, on, None)
    assert on.left() == []


@contextlib.contextmanager
def unseen(running: Product) -> Iterator[None]:
    """New processes, none of which is shown the ConfigMap of the settings."""
    rules = [
        (it.proxy.rules, it.proxy.rules.add(faults.Answer(403), resource="configmaps")) for it in running.members
    ]
    try:
        for member in running.members:
            running.kill(member)
            running.start(member)
        yield
    finally:
        for among, rule in rules:
            among.remove(rule)


def test_while_nobody_knows_of_a_stop_a_move_is_neither_carried_out_nor_called_off(
    running: Product, on: Scene
) -> None:
    def status() -> dict[str, Any]:
        found: dict[str, Any] = on.kube.get("podmigrations", name, on.namespace).get("status", {})
        return found

    with unseen(running):
        leader = running.leader()
        asked = len(leader.proxy.requests)
        before = {it["metadata"]["uid"] for it in product.running_pods(on.kube, on.namespace)}
        name = product.ask_for(on.kube, on.namespace, on.a_pod(), target=on.target)
        eventually(status, until=lambda it: it.get("step") == "Evict", timeout=60, what="a move that only evicts yet")
        eventually(lambda: UNKNOWN in running.log(leader), what="the reason in the log")
        on.drain()
        denied = len([it for it in leader.proxy.requests if it.resource == "configmaps"])
        eventually(
            lambda: len([it for it in leader.proxy.requests if it.resource == "configmaps"]) > denied,
            timeout=60,
            what="another look at the ConfigMap, by which time the eviction would have been sent",
        )
        assert not [it for it in leader.proxy.requests[asked:] if it.resource == "pods/eviction"]
        assert {it["metadata"]["uid"] for it in product.running_pods(on.kube, on.namespace)} == before
        assert len(product.migrations(on.kube, on.namespace)) == 1, "nor is another move written down"
    eventually(status, until=lambda it: it.get("phase") == "Completed", timeout=90, what="the end of the move")
    eventually(on.is_drained, timeout=90, what="the drained node")
    on.return_node()
    assert on.left() == []

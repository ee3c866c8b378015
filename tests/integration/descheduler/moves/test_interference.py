"""Somebody else changes the cluster while a move is at a certain step: how it ends, and that it leaves nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from testbed import objects
from testbed.api import ApiError
from testbed.waiting import eventually
from tests.integration.descheduler.moves import crashes, oracle, product
from tests.integration.descheduler.moves.crashes import STEPS
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import APP, Scene

pytestmark = pytest.mark.campaign

ENDED = ("Completed", "Failed", "Cancelled")
TIMEOUT = 60.0


@dataclass(frozen=True)
class Move:
    """One that was asked for by hand."""

    on: Scene
    name: str
    pod: str
    uid: str

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.on.kube.get("podmigrations", self.name, self.on.namespace).get("status", {})
        return found

    def ended(self) -> dict[str, Any]:
        """Wait for its end."""
        return eventually(
            self.status, until=lambda it: it.get("phase") in ENDED, timeout=TIMEOUT, what=f"the end of {self.name}"
        )

    def is_there(self) -> bool:
        """Whether the pod is still the one it was, and stays."""
        found = product.running_pods(self.on.kube, self.on.namespace)
        return self.uid in {it["metadata"]["uid"] for it in found}


def ask(on: Scene) -> Move:
    pod = on.kube.get("pods", on.a_pod(), on.namespace)
    name = pod["metadata"]["name"]
    move = product.ask_for(on.kube, on.namespace, name, target=on.target)
    return Move(on, move, name, pod["metadata"]["uid"])


def ballast(on: Scene) -> None:
    body = objects.pod("ballast", cpu="7950m")
    body["spec"]["nodeName"] = on.target
    on.kube.create("pods", body, on.namespace)


def patch_web(on: Scene, spec: dict[str, Any]) -> None:
    on.kube.patch("deployments", APP, {"spec": spec}, on.namespace)


def budget(name: str, **spec: Any) -> Callable[[Scene, Move], None]:
    def add(on: Scene, _: Move) -> None:
        on.kube.create("poddisruptionbudgets", objects.budget(name, app=APP, **spec), on.namespace)
        eventually(
            lambda: on.kube.get("poddisruptionbudgets", name, on.namespace)["status"],
            until=lambda status: status.get("observedGeneration"),
            what="a budget that is in force",
        )

    return add


def two_budgets(on: Scene, move: Move) -> None:
    budget("one", maxUnavailable=1)(on, move)
    budget("two", maxUnavailable=1)(on, move)


def roll_out(on: Scene, _: Move) -> None:
    patch_web(on, {"template": {"metadata": {"annotations": {"rolled": "out"}}}})


Act = Callable[[Scene, Move], object]
ACTS: dict[str, tuple[str, Act, str, str]] = {
    # what happens: at which request, how, in which phase the move ends, what it says
    "pod deleted at Guard": (
        "announce: Mark",
        lambda on, move: on.kube.delete("pods", move.pod, on.namespace),
        "Cancelled",
        "TERMINATING|went away",
    ),
    "pod deleted when marked": (
        "mark the workload",
        lambda on, move: on.kube.delete("pods", move.pod, on.namespace),
        "Cancelled",
        "TERMINATING|went away",
    ),
    "pod deleted when its eviction is announced": (
        "announce: Evict",
        lambda on, move: on.kube.delete("pods", move.pod, on.namespace),
        "Completed",
        "is Ready on",
    ),
    "pod deleted when it is evicted": (
        "evict",
        lambda on, move: on.kube.delete("pods", move.pod, on.namespace, gracePeriodSeconds=0),
        "Completed",
        "is Ready on",
    ),
    "replacement deleted when it is claimed": (
        "claim the replacement",
        lambda on, _: [
            on.kube.delete("pods", it["metadata"]["name"], on.namespace, gracePeriodSeconds=0)
            for it in product.running_pods(on.kube, on.namespace)
            if it["spec"].get("nodeName") == on.target
        ],
        "Completed",
        "is Ready on",
    ),
    "deployment deleted before": (
        "announce: Mark",
        lambda on, _: on.kube.delete("deployments", APP, on.namespace, propagationPolicy="Foreground"),
        "Cancelled",
        "TERMINATING|went away|NO_CONTROLLER",
    ),
    "deployment deleted at the eviction": (
        "evict",
        lambda on, _: on.kube.delete("deployments", APP, on.namespace, propagationPolicy="Background"),
        "Cancelled",
        "the workload was deleted",
    ),
    "deployment scaled to nothing": (
        "evict",
        lambda on, _: patch_web(on, {"replicas": 0}),
        "Completed",
        "scaled down",
    ),
    "deployment scaled up": ("evict", lambda on, _: patch_web(on, {"replicas": 5}), "Completed", "is Ready on"),
    "rollout before": ("announce: Mark", roll_out, "Cancelled", "PENDING_REVISION|TERMINATING|went away"),
    "rollout at the eviction": ("evict", roll_out, "Completed", "is Ready on"),
    "target gone before": (
        "announce: Mark",
        lambda on, _: on.kube.delete("nodes", on.target),
        "Cancelled",
        "NO_NODE_FITS",
    ),
    "target gone at the eviction": (
        "evict",
        lambda on, _: on.kube.patch("nodes", on.target, {"spec": {"unschedulable": True}}),
        "Completed",
        "own choice",
    ),
    "target filled before": ("announce: Mark", lambda on, _: ballast(on), "Cancelled", "NO_NODE_FITS"),
    "target filled at the eviction": ("evict", lambda on, _: ballast(on), "Completed", "own choice"),
    "budget without room": ("evict", budget("none", maxUnavailable=0), "Cancelled", "PDB_NO_BUDGET"),
    "budget with room": ("evict", budget("one", maxUnavailable=1), "Completed", "is Ready on"),
    "two budgets": ("evict", two_budgets, "Failed", "PDB_MULTIPLE"),
}


@pytest.mark.parametrize(("at", "act", "phase", "says"), ACTS.values(), ids=ACTS.keys())
def test_how_a_move_ends_when_somebody_interferes(
    running: Product, on: Scene, at: str, act: Act, phase: str, says: str
) -> None:
    with crashes.held(running, STEPS[at]) as request:
        move = ask(on)
        request.reached()
        act(on, move)
    status = move.ended()
    assert status["phase"] == phase, status
    assert any(word in status["message"] for word in says.split("|")), status
    if phase != "Completed" and "evict" not in at:
        assert move.pod not in {it.name for it in oracle.evictions(running.bed) if it.namespace == on.namespace}
    product.patch_each(on.kube, "nodes", [on.target], {"spec": {"unschedulable": None}})  # if that was the act
    assert on.left() == []


def test_a_budget_that_is_removed_lets_the_move_go_on(running: Product, on: Scene) -> None:
    budget("none", maxUnavailable=0)(on, Move(on, "", "", ""))
    move = ask(on)
    eventually(move.status, until=lambda it: "PDB_NO_BUDGET" in it.get("message", ""), what="a blocked move")
    on.kube.delete("poddisruptionbudgets", "none", on.namespace)
    assert move.ended()["phase"] == "Completed"
    assert on.left() == []


ORDER = list(STEPS)
BEFORE = ORDER[1 : ORDER.index("evict")]
PAST = ORDER[ORDER.index("evict") : ORDER.index("release") + 1]


@pytest.mark.parametrize("at", [*BEFORE, *PAST])
def test_deleting_a_migration_cancels_it_or_comes_too_late(running: Product, on: Scene, at: str) -> None:
    with crashes.held(running, STEPS[at]) as request:
        move = ask(on)
        request.reached()
        on.kube.delete("podmigrations", move.name, on.namespace)
    eventually(lambda: not product.migrations(on.kube, on.namespace), timeout=TIMEOUT, what="the end of the move")
    assert move.is_there() == (at in BEFORE)
    # The record is gone, so what the replacement says of itself can no longer be checked against it.
    left = eventually(
        lambda: oracle.problems(on.kube, on.namespace), until=lambda it: all("completed" in p for p in it)
    )
    assert len(left) == (0 if at in BEFORE else 1), left


@pytest.mark.parametrize("at", ["announce: Mark", "evict", "announce: AwaitReplacement", "announce: Settle"])
def test_a_namespace_that_is_deleted_goes(running: Product, on: Scene, at: str) -> None:
    with crashes.held(running, STEPS[at]) as request:
        ask(on)
        request.reached()
        on.kube.delete("namespaces", on.namespace)

    def is_gone() -> bool:
        try:
            on.kube.get("namespaces", on.namespace)
        except ApiError as answer:
            return answer.status == 404
        return False

    eventually(is_gone, timeout=TIMEOUT, what="the end of the namespace")


def test_without_a_webhook_the_move_is_made_unguided(running: Product, on: Scene) -> None:
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": on.namespace},
        "webhooks": [
            {
                "name": "down.spotshift.dev",
                "clientConfig": {"url": "https://127.0.0.1:1/mutate"},
                "failurePolicy": "Ignore",
                "timeoutSeconds": 1,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": on.namespace}},
            }
        ],
    }
    on.kube.create("mutatingwebhookconfigurations", hook)
    try:
        ended = ask(on).ended()
        assert ended["phase"] == "Completed"
        assert on.left() == []
        made = on.kube.get("pods", ended["replacement"]["name"], on.namespace)
        assert made["metadata"]["labels"][oracle.KEYS.migration_status] == "completed"
    finally:
        on.kube.delete("mutatingwebhookconfigurations", on.namespace)

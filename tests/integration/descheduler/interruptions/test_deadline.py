"""What a deadline means: it survives a restart, and past it pods are deleted only where somebody said so."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from testbed import objects
from testbed.api import ApiError
from testbed.waiting import eventually
from tests.integration.descheduler.interruptions.product import SETTINGS, Product
from tests.integration.descheduler.interruptions.scene import KEYS, Scene
from tests.integration.descheduler.moves.product import ACCOUNT, SYSTEM

SOON = "cloud.google.com/impending-node-termination"
"""Fifteen seconds."""


def test_a_restart_in_the_middle_grants_no_more_time(on: Scene) -> None:
    """Pods that wait for their budget leave after it as well, and the deadline is the first one."""
    lost, *_ = on.pool(spot=3, zone="z")
    with on.only(lost):
        on.create("poddisruptionbudgets", objects.budget("web", app="web", maxUnavailable=1))
        on.create("deployments", objects.deployment("web", replicas=6))
        on.settle(6)
    before = set(on.where())
    on.taint(lost)
    eventually(lambda: before - set(on.where()), what="the first to leave")
    on.product.kill()
    marks = on.marks(lost)
    on.product.start()
    eventually(lambda: before & set(on.where()), until=lambda it: not it, timeout=90, what="the rest to leave")
    assert on.marks(lost) == marks, "nothing was counted anew"
    told = {it["spec"]["deadline"] for it in on.moves()}
    assert {datetime.fromisoformat(it) for it in told} == {datetime.fromisoformat(marks[KEYS.interruption_deadline])}
    eventually(lambda: len(on.ready()), until=lambda it: it == 6, timeout=60, what="the replacements")
    eventually(on.open_moves, until=lambda it: not it, timeout=60, what="the moves to be over")
    assert {it["status"]["phase"] for it in on.moves()} == {"Completed"}


@pytest.fixture
def deleting(running: Product) -> Iterator[Product]:
    """The setting, and the right that the component gives."""
    name = "test-pods-delete"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    running.kube.create("clusterroles", {**rbac, "kind": "ClusterRole", "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}]
    body = {**rbac, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects}
    running.kube.create("clusterrolebindings", body)
    strategies = {**SETTINGS["strategies"], "SpotInterruption": {"notReadyAfter": "4s", "onDeadline": "delete"}}
    running.configure(strategies=strategies)
    yield running
    running.configure()
    for resource in ("clusterrolebindings", "clusterroles"):
        running.kube.delete(resource, name)


def test_a_pod_that_only_a_budget_holds_is_deleted_in_time_where_that_is_asked_for(
    on: Scene, deleting: Product
) -> None:
    lost, quiet, *_ = on.pool(spot=5, zone="z")
    for node, app in ((lost, "held"), (quiet, "silent")):
        with on.only(node):
            on.create("poddisruptionbudgets", objects.budget(app, app=app, maxUnavailable=0))
            on.create("statefulsets", objects.stateful_set(app, terminationGracePeriodSeconds=4))
            eventually(lambda: on.where(app=app), until=lambda it: set(it.values()) == {node}, what="its pod")  # noqa: B023
    on.settle(2)
    uid = uid_of(on, "held-0")
    counted = deleting.metric("deleted_past_budget_total")
    on.silence(quiet)
    on.taint(lost, SOON)
    eventually(lambda: on.marks(lost).get(KEYS.interruption_deadline), what="the deadline")
    deadline = datetime.fromisoformat(on.marks(lost)[KEYS.interruption_deadline])
    dying = eventually(lambda: asked_to_stop(on, "held-0", uid), timeout=60, what="the deletion")
    assert dying is not None
    assert -1 <= (dying - deadline).total_seconds() < 10, "its grace period ends with the node"
    eventually(lambda: on.told("DeletedPastBudget", lost), what="the Event")
    assert deleting.metric("deleted_past_budget_total") == counted + 1
    assert on.where(app="silent") == {"silent-0": quiet}, "a node that only says nothing has no deadline"


def uid_of(on: Scene, pod: str) -> str:
    return str(on.kube.get("pods", pod, on.namespace)["metadata"]["uid"])


def asked_to_stop(on: Scene, pod: str, uid: str) -> datetime | None:
    """When its grace period ends."""
    try:
        meta = on.kube.get("pods", pod, on.namespace)["metadata"]
    except ApiError:
        return None
    if meta["uid"] != uid or "deletionTimestamp" not in meta:
        return None
    return datetime.fromisoformat(meta["deletionTimestamp"])

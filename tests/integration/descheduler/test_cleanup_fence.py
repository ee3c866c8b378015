"""The cleanup has the descheduler's rights and stands behind the same fences, asked with its token."""

from functools import partial

import pytest

from descheduler import removal
from testbed import access, definitions, objects
from testbed.api import Api, connect
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from tests.integration.descheduler.test_fences import KEYS, MANIFESTS, OTHER, SYSTEM, refused


@pytest.fixture(scope="module")
def cleanup(cluster: ControlPlane) -> Api:
    """The API as the cleanup, with everything as it is shipped."""
    for part in ("namespace.yaml", "descheduler/rbac.yaml", "../cleanup/rbac.yaml"):
        cluster.kubectl("apply", "-f", str(MANIFESTS / part))
    cluster.kubectl("apply", "-k", str(MANIFESTS / "migrations"))
    definitions.established(cluster.api(), "podmigrations.spotshift.dev")
    definitions.policies_in_force(cluster.api())
    return connect(access.kubeconfig(cluster, "spotshift-cleanup", SYSTEM))


def test_the_cleanup_takes_back_our_marks_and_adds_none(cleanup: Api, kube: Api, namespace: str) -> None:
    marks = dict.fromkeys((*removal.ours(KEYS), *removal.ours(OTHER)), "x")
    pod = objects.pod("web-1")
    pod["metadata"]["labels"], pod["metadata"]["annotations"] = marks, marks
    kube.create("pods", pod, namespace)

    def change(place: str, key: str, value: str | None) -> object:
        return cleanup.patch("pods", "web-1", {"metadata": {place: {key: value}}}, namespace)

    assert "own labels" in refused(lambda: change("labels", "app", "other"))
    assert "own labels" in refused(lambda: change("labels", KEYS.managed, "false"))
    assert "own labels" in refused(lambda: change("labels", KEYS.rescheduling, "enabled"))
    assert "own annotations" in refused(lambda: change("annotations", KEYS.capacity, "spot"))
    assert "spec" in refused(
        lambda: cleanup.patch(
            "pods", "web-1", {"spec": {"containers": [{"name": "main", "image": "evil"}]}}, namespace
        )
    )
    gone = dict.fromkeys(marks)
    cleanup.patch("pods", "web-1", {"metadata": {"labels": gone, "annotations": gone}}, namespace)
    left = kube.get("pods", "web-1", namespace)["metadata"]
    assert not set(marks) & {*left.get("labels", ()), *left.get("annotations", ())}


def test_the_cleanup_takes_off_our_taint_under_any_prefix(cleanup: Api, kube: Api, nodes: Nodes) -> None:
    (node,) = nodes.make(on_demand=1)
    theirs = [*(kube.get("nodes", node)["spec"].get("taints") or ()), {"key": "a", "effect": "PreferNoSchedule"}]
    for draining in (KEYS.draining, OTHER.draining):
        ours = {"key": draining, "effect": "PreferNoSchedule"}
        kube.patch("nodes", node, {"spec": {"taints": [*theirs, ours]}})
        refusal = refused(lambda held=ours: cleanup.patch("nodes", node, {"spec": {"taints": [held]}}))
        assert "own taint" in refusal
        cleanup.patch("nodes", node, {"spec": {"taints": theirs}})


def test_the_cleanup_ends_our_programs_and_no_others(cleanup: Api, kube: Api, namespace: str) -> None:
    def scale(where: str, replicas: int) -> object:
        return cleanup.patch("deployments", "fenced", {"spec": {"replicas": replicas}}, where, subresource="scale")

    for where in (namespace, SYSTEM):
        kube.create("deployments", objects.deployment("fenced", replicas=3), where)
    try:
        assert "one replica" in refused(lambda: scale(namespace, 5))
        assert "not the last" in refused(lambda: scale(namespace, 0))
        assert "one replica" in refused(lambda: scale(SYSTEM, 5))
        scale(SYSTEM, 0)
        scale(namespace, 2)
    finally:
        kube.delete("deployments", "fenced", SYSTEM)


def test_the_cleanup_touches_temporary_budgets_only(cleanup: Api, kube: Api, namespace: str) -> None:
    kube.create("poddisruptionbudgets", objects.budget("web", app="web", maxUnavailable=1), namespace)
    ours = objects.budget("web-rescheduler-pdb", app="web", maxUnavailable=1)
    ours["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "spotshift"}
    kube.create("poddisruptionbudgets", ours, namespace)
    delete = partial(cleanup.delete, "poddisruptionbudgets")
    assert "own temporary budgets" in refused(lambda: delete("web", namespace))
    delete("web-rescheduler-pdb", namespace)

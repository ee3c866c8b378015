"""What the resource and its policies let through, asked of the real API server with real tokens."""

import json
from pathlib import Path
from typing import Any

import pytest

from policy import keys
from testbed import access, definitions, objects
from testbed.api import Api, ApiError, connect
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually

MANIFESTS = Path(__file__).parents[3] / "manifests" / "base"
RECREATE = MANIFESTS.parent / "components" / "recreate"
SYSTEM = "spotshift-system"
KEYS = keys.under()


@pytest.fixture(scope="module")
def fenced(cluster: ControlPlane) -> ControlPlane:
    """The resource, the policies and the descheduler's account, as they are shipped."""
    for part in ("namespace.yaml", "descheduler/rbac.yaml"):
        cluster.kubectl("apply", "-f", str(MANIFESTS / part))
    cluster.kubectl("apply", "-k", str(MANIFESTS / "migrations"))
    definitions.established(cluster.api(), "podmigrations.spotshift.dev")
    for part in ("rbac.yaml", "policy.yaml"):
        cluster.kubectl("apply", "-f", str(RECREATE / part))
    definitions.policies_in_force(cluster.api())
    return cluster


@pytest.fixture
def ours(fenced: ControlPlane) -> Api:
    """The API as the descheduler."""
    kubeconfig = access.kubeconfig(fenced, "spotshift-descheduler", SYSTEM)
    return connect(kubeconfig)


@pytest.fixture
def theirs(fenced: ControlPlane, kube: Api, namespace: str) -> Api:
    """The API as a user with every right in one namespace."""
    kube.create("serviceaccounts", {"metadata": {"name": "dev"}}, namespace)
    subject = {"kind": "ServiceAccount", "name": "dev", "namespace": namespace}
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    kube.create("roles", {"metadata": {"name": "all"}, "rules": [rule]}, namespace)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
    kube.create("rolebindings", {"metadata": {"name": "dev"}, "roleRef": role, "subjects": [subject]}, namespace)
    return connect(access.kubeconfig(fenced, "dev", namespace))


def migration(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "spotshift.dev/v1alpha1",
        "kind": "PodMigration",
        "metadata": {"generateName": "move-"},
        "spec": {"podRef": {"name": "web-1"}, **spec},
    }


def refused(call: Any) -> str:
    """What was said; an assertion where it is let through."""
    answer: ApiError | None = None
    try:
        call()
    except ApiError as refusal:
        answer = refusal
    assert answer is not None, "it was let through"
    assert answer.status in {403, 422}, answer
    return json.dumps(answer.body)


USERS = {
    "strategy": ({"strategy": "NodeMaintenance"}, "spec.strategy"),
    "weight": ({"weight": 500}, "spec.weight"),
    "deadline": ({"deadline": "2030-01-01T00:00:00Z"}, "spec.deadline"),
    "cause": ({"cause": "I want it"}, "spec.cause"),
}


@pytest.mark.parametrize(("spec", "named"), USERS.values(), ids=USERS.keys())
def test_a_user_cannot_give_a_move_weight(
    theirs: Api, ours: Api, namespace: str, spec: dict[str, Any], named: str
) -> None:
    eventually(lambda: named in refused(lambda: theirs.create("podmigrations", migration(**spec), namespace)))
    ours.create("podmigrations", migration(**spec), namespace)


def test_a_user_can_ask_for_a_move_but_not_write_its_status(theirs: Api, ours: Api, namespace: str) -> None:
    made = theirs.create("podmigrations", migration(targetNode="node-1", mode="Evict"), namespace)
    name = made["metadata"]["name"]
    status = {"status": {"phase": "InProgress", "resolved": {"owner": {"uid": "somebody-else"}}}}

    def write(api: Api) -> object:
        return api.patch("podmigrations", name, status, namespace, subresource="status")

    assert "written by the descheduler only" in refused(lambda: write(theirs))
    write(ours)


def test_a_user_can_let_go_of_what_the_planner_made(theirs: Api, ours: Api, namespace: str) -> None:
    """Labels and finalizers give a move no weight: the way out when nobody is left to take a finalizer off."""
    planned = migration(strategy="NodeMaintenance", weight=120, cause="maintenance")
    planned["metadata"]["finalizers"] = [keys.FINALIZER]
    name = ours.create("podmigrations", planned, namespace)["metadata"]["name"]
    changed = {"metadata": {"labels": {"seen": "yes"}, "finalizers": None}}
    eventually(lambda: _accepted(lambda: theirs.patch("podmigrations", name, changed, namespace)))
    theirs.delete("podmigrations", name, namespace)


def _accepted(call: Any) -> bool:
    """A right that was just given takes a moment to be known."""
    try:
        call()
    except ApiError as refusal:
        if refusal.status not in {403, 422}:
            raise
        return False
    return True


def test_who_may_delete_the_kind_may_write_a_status(
    fenced: ControlPlane, kube: Api, theirs: Api, namespace: str
) -> None:
    """Administrators of a managed cluster are not in system:masters, and may have to roll back what is under way."""
    name = theirs.create("podmigrations", migration(), namespace)["metadata"]["name"]
    status = {"status": {"phase": "Cancelled"}}

    def write() -> object:
        return theirs.patch("podmigrations", name, status, namespace, subresource="status")

    assert "written by the descheduler only" in refused(write)
    subject = {"kind": "ServiceAccount", "name": "dev", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    kube.create("clusterrolebindings", {"metadata": {"name": namespace}, "roleRef": role, "subjects": [subject]})
    try:
        eventually(lambda: _accepted(write))
    finally:
        kube.delete("clusterrolebindings", namespace)


BAD = {
    "no pod": ({"podRef": {}}, "podRef.name"),
    "mode": ({"mode": "Teleport"}, "spec.mode"),
    "node name": ({"targetNode": "Node_1"}, "spec.targetNode"),
    "pod name": ({"podRef": {"name": "Web!"}}, "spec.podRef.name"),
}


@pytest.mark.parametrize(("spec", "named"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_by_name(ours: Api, namespace: str, spec: dict[str, Any], named: str) -> None:
    assert named in refused(lambda: ours.create("podmigrations", migration(**spec), namespace))


def test_what_was_said_stays_said(ours: Api, namespace: str) -> None:
    name = ours.create("podmigrations", migration(), namespace)["metadata"]["name"]

    def write(status: dict[str, Any]) -> object:
        return ours.patch("podmigrations", name, {"status": status}, namespace, subresource="status")

    other = {"spec": {"targetNode": "other"}}
    assert "cannot be changed" in refused(lambda: ours.patch("podmigrations", name, other, namespace))
    write({"phase": "InProgress", "startedAt": "2026-01-01T00:00:00Z", "resolved": {"sourceNode": "a"}})
    assert "resolved" in refused(lambda: write({"resolved": {"sourceNode": "b"}}))
    write({"phase": "Completed"})
    assert "stays as it ended" in refused(lambda: write({"phase": "InProgress"}))


def test_our_token_changes_our_marks_and_nothing_else(ours: Api, kube: Api, namespace: str, nodes: Nodes) -> None:
    kube.create("pods", objects.pod("web-1"), namespace)
    kube.create("deployments", objects.deployment("web", replicas=1), namespace)
    (node,) = nodes.make(on_demand=1)

    def pod(body: dict[str, Any]) -> object:
        return ours.patch("pods", "web-1", body, namespace)

    def deployment(body: dict[str, Any]) -> object:
        return ours.patch("deployments", "web", body, namespace)

    pod({"metadata": {"labels": {KEYS.migration_id: "m-1"}, "annotations": {keys.POD_DELETION_COST: "-1"}}})
    pod({"metadata": {"labels": {KEYS.migration_id: None}}})
    deployment({"metadata": {"labels": {KEYS.moving: "migration-1-x"}}})
    image = {"containers": [{"name": "main", "image": "evil"}]}
    assert "spec" in refused(lambda: pod({"spec": image}))
    assert "own labels" in refused(lambda: pod({"metadata": {"labels": {"app": "other"}}}))
    assert "own annotations" in refused(lambda: pod({"metadata": {"annotations": {"x": "y"}}}))
    assert "finalizers" in refused(lambda: pod({"metadata": {"finalizers": ["example.com/x"]}}))
    assert "own labels" in refused(lambda: pod({"metadata": {"labels": {KEYS.rescheduling: "enabled"}}}))
    assert "spec" in refused(lambda: deployment({"spec": {"replicas": 5}}))
    assert "own taint" in refused(
        lambda: ours.patch("nodes", node, {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})
    )
    assert "own labels" in refused(lambda: ours.patch("nodes", node, {"metadata": {"labels": {"x": "y"}}}))
    assert "own labels" in refused(
        lambda: ours.patch("nodes", node, {"metadata": {"labels": {KEYS.maintenance: "true"}}})
    )


OTHER = keys.under("spot.example.com/")


def test_our_token_marks_under_another_prefix(ours: Api, kube: Api, namespace: str, nodes: Nodes) -> None:
    kube.create("pods", objects.pod("web-1"), namespace)
    kube.create("deployments", objects.deployment("web", replicas=1), namespace)
    (node,) = nodes.make(on_demand=1)
    told = dict.fromkeys((OTHER.cordoned_by, OTHER.maintenance_status, OTHER.interruption_cause), "x")
    for values in (told, dict.fromkeys(told)):
        cordon = True if values is told else None
        ours.patch("nodes", node, {"spec": {"unschedulable": cordon}, "metadata": {"annotations": values}})
    for label, note in (("m-1", "-1"), ("m-2", "-2"), (None, None)):
        notes = {OTHER.migration_time: label, keys.POD_DELETION_COST: note}
        marks = {"metadata": {"labels": {OTHER.migration_id: label}, "annotations": notes}}
        ours.patch("pods", "web-1", marks, namespace)
        ours.patch("deployments", "web", {"metadata": {"labels": {OTHER.moving: label}}}, namespace)


FOREIGN = {
    "another name": "spot.example.com/team",
    "a name that people ask by": OTHER.rescheduling,
    "a name that ends as one of ours": "spot.example.com/not-moving",
    "no prefix": "moving",
    "of Kubernetes": "kubernetes.io/moving",
    "below it": "node.kubernetes.io/moving",
    "its other domain": "scheduling.k8s.io/moving",
    "of its projects": "cluster.x-k8s.io/moving",
}


@pytest.mark.parametrize("place", ["labels", "annotations"])
@pytest.mark.parametrize("key", FOREIGN.values(), ids=FOREIGN.keys())
def test_our_token_changes_no_foreign_mark_under_any_prefix(
    ours: Api, kube: Api, namespace: str, key: str, place: str
) -> None:
    kube.create("pods", objects.pod("web-1"), namespace)

    def change(value: str | None) -> object:
        return ours.patch("pods", "web-1", {"metadata": {place: {key: value}}}, namespace)

    assert f"own {place}" in refused(lambda: change("x"))
    kube.patch("pods", "web-1", {"metadata": {place: {key: "theirs"}}}, namespace)
    assert f"own {place}" in refused(lambda: change("x"))
    assert f"own {place}" in refused(lambda: change(None))


COPY_LABELS = {
    "ours": (KEYS.migration_id, True),
    "another prefix": (OTHER.migration_id, True),
    "no mark": ("app", False),
    "of Kubernetes": ("node.kubernetes.io/migration-id", False),
    "no prefix": ("migration-id", False),
}


@pytest.mark.parametrize(("label", "accepted"), COPY_LABELS.values(), ids=COPY_LABELS.keys())
def test_our_token_creates_copies_that_carry_our_mark(ours: Api, namespace: str, label: str, accepted: bool) -> None:
    def create(name: str) -> object:
        copy = objects.pod(name)
        copy["metadata"]["labels"] = {label: "m-1"}
        return ours.create("pods", copy, namespace)

    assert "no other pods" in refused(lambda: create("another"))
    if accepted:
        create("rescheduled-web-1")
    else:
        assert "no other pods" in refused(lambda: create("rescheduled-web-1"))


def test_our_token_touches_budgets_of_its_own_only(ours: Api, kube: Api, namespace: str) -> None:
    def budget(name: str, **labels: str) -> dict[str, Any]:
        made = objects.budget(name, app="web", maxUnavailable=1)
        made["metadata"]["labels"] = labels
        return made

    mark = {"app.kubernetes.io/managed-by": "spotshift"}
    theirs = budget("web-rescheduler-pdb")
    kube.create("poddisruptionbudgets", theirs, namespace)

    def delete() -> object:
        return ours.delete("poddisruptionbudgets", "web-rescheduler-pdb", namespace)

    def patch() -> object:
        return ours.patch("poddisruptionbudgets", "web-rescheduler-pdb", {"spec": {"maxUnavailable": 5}}, namespace)

    assert "own temporary budgets" in refused(delete)
    assert "own temporary budgets" in refused(patch)
    assert "own temporary budgets" in refused(
        lambda: ours.create("poddisruptionbudgets", budget("x", **mark), namespace)
    )
    ours.create("poddisruptionbudgets", budget("db-rescheduler-pdb", **mark), namespace)
    ours.delete("poddisruptionbudgets", "db-rescheduler-pdb", namespace)


def test_our_token_cordons_and_tells_how_far_a_drain_is(ours: Api, nodes: Nodes) -> None:
    (node,) = nodes.make(on_demand=1)
    told = {
        KEYS.cordoned_by: "spotshift",
        KEYS.maintenance_status: "draining 0/1",
        KEYS.maintenance_remaining: "default/web: to be moved",
        KEYS.maintenance_since: "2026-01-01T00:00:00Z",
        KEYS.interruption_cause: "NotReady",
        KEYS.interruption_since: "2026-01-01T00:00:00Z",
        KEYS.interruption_deadline: "2026-01-01T00:02:00Z",
    }
    ours.patch("nodes", node, {"spec": {"unschedulable": True}, "metadata": {"annotations": told}})
    ours.patch("nodes", node, {"spec": {"unschedulable": None}, "metadata": {"annotations": dict.fromkeys(told)}})
    deadline = {"metadata": {"annotations": {KEYS.maintenance_deadline: "2026-01-01T00:00:00Z"}}}
    assert "own annotations" in refused(lambda: ours.patch("nodes", node, deadline))


def test_our_token_adds_one_replica_and_takes_one_away(ours: Api, kube: Api, namespace: str) -> None:
    kube.create("deployments", objects.deployment("web", replicas=2), namespace)

    def scale(replicas: int) -> object:
        return ours.patch("deployments", "web", {"spec": {"replicas": replicas}}, namespace, subresource="scale")

    assert "one replica" in refused(lambda: scale(4))
    assert "one replica" in refused(lambda: scale(0))
    for replicas in (3, 2, 1):
        scale(replicas)
    assert "not the last" in refused(lambda: scale(0))

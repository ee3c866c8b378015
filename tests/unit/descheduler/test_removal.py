"""What an uninstall takes back, object by object, and what it leaves alone because it was never ours."""

from typing import Any

import pytest

from cluster.resources import DEPLOYMENTS, NODES, PDBS, PODMIGRATIONS, PODS, Resource
from descheduler import removal
from descheduler.requests import Request, Verb
from policy import keys

KEYS = keys.under()
PREFIX = keys.DEFAULT_PREFIX
LOWEST = "-2147483648"
COST = keys.POD_DELETION_COST


def meta(
    labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "name": "it",
        "uid": "u",
        "resourceVersion": "7",
        "labels": labels or {},
        "annotations": annotations or {},
        **more,
    }


def wrote(manager: str) -> list[dict[str, Any]]:
    return [{"manager": manager, "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{COST}": {}}}}}]


def asked(resource: Resource, found: dict[str, Any]) -> list[Request]:
    return list(removal.requests(resource, found, KEYS))


PATCHES: dict[str, tuple[Resource, dict[str, Any], dict[str, Any]]] = {
    "marks of a move": (
        PODS,
        {
            "metadata": meta(
                {KEYS.migration_id: "m", KEYS.managed: "true", "app": "web"}, {KEYS.original_pod: "o", "theirs": "x"}
            )
        },
        {
            "metadata": {
                "uid": "u",
                "labels": {KEYS.managed: None, KEYS.migration_id: None},
                "annotations": {KEYS.original_pod: None},
            }
        },
    ),
    "our deletion cost": (
        PODS,
        {"metadata": meta(annotations={COST: LOWEST}, managedFields=wrote("spotshift-descheduler"))},
        {"metadata": {"uid": "u", "annotations": {COST: None}}},
    ),
    "a workload that says what moves": (
        DEPLOYMENTS,
        {"metadata": meta({KEYS.moving: "m"}, {KEYS.spot: "avoid"})},
        {"metadata": {"uid": "u", "labels": {KEYS.moving: None}}},
    ),
    "a cordon of ours": (
        NODES,
        {
            "metadata": meta(
                {KEYS.maintenance: "true"}, {KEYS.cordoned_by: "spotshift", KEYS.maintenance_since: "t"}
            ),
            "spec": {"unschedulable": True, "taints": [{"key": "node.kubernetes.io/unschedulable"}]},
        },
        {
            "metadata": {
                "uid": "u",
                "resourceVersion": "7",
                "annotations": {KEYS.cordoned_by: None, KEYS.maintenance_since: None},
            },
            "spec": {"unschedulable": None},
        },
    ),
    "progress on a node that somebody else cordoned": (
        NODES,
        {"metadata": meta(annotations={KEYS.maintenance_status: "drained"}), "spec": {"unschedulable": True}},
        {"metadata": {"uid": "u", "resourceVersion": "7", "annotations": {KEYS.maintenance_status: None}}},
    ),
    "our taint beside others": (
        NODES,
        {"metadata": meta(), "spec": {"taints": [{"key": KEYS.draining}, {"key": "theirs", "effect": "NoSchedule"}]}},
        {
            "metadata": {"uid": "u", "resourceVersion": "7"},
            "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
        },
    ),
    "our taint alone": (
        NODES,
        {"metadata": meta(), "spec": {"taints": [{"key": KEYS.draining}]}},
        {"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"taints": None}},
    ),
}


@pytest.mark.parametrize(("resource", "found", "body"), PATCHES.values(), ids=PATCHES.keys())
def test_what_is_ours_is_taken_back(resource: Resource, found: dict[str, Any], body: dict[str, Any]) -> None:
    (request,) = asked(resource, found)
    assert (request.verb, request.name, request.body) == (Verb.PATCH, "it", body)


LEFT: dict[str, tuple[Resource, dict[str, Any]]] = {
    "a pod of nobody": (PODS, {"metadata": meta({"app": "web"})}),
    "no labels at all": (PODS, {"metadata": {"name": "it", "uid": "u", "resourceVersion": "7"}}),
    "wishes of users": (
        PODS,
        {
            "metadata": meta(
                {KEYS.rescheduling: "disabled"},
                {KEYS.spot: "avoid", KEYS.tier: "batch", KEYS.spot_percentage: "50", KEYS.min_on_demand: "1"},
            )
        },
    ),
    "a cost that a user wrote": (
        PODS,
        {"metadata": meta(annotations={COST: LOWEST}, managedFields=wrote("kubectl"))},
    ),
    "another cost": (PODS, {"metadata": meta(annotations={COST: "5"}, managedFields=wrote("spotshift-descheduler"))}),
    "a cordon of somebody else": (NODES, {"metadata": meta(), "spec": {"unschedulable": True}}),
    "a node that a user wants drained": (
        NODES,
        {"metadata": meta({KEYS.maintenance: "true"}, {KEYS.maintenance_deadline: "1"}), "spec": {}},
    ),
    "a budget of a user": (PDBS, {"metadata": {**meta(), "name": "web-rescheduler-pdb"}}),
    "a budget that goes": (
        PDBS,
        {
            "metadata": {
                **meta({"app.kubernetes.io/managed-by": "spotshift"}),
                "name": "web-rescheduler-pdb",
                "deletionTimestamp": "t",
            }
        },
    ),
    "a record that goes": (PODMIGRATIONS, {"metadata": meta(deletionTimestamp="t")}),
}


@pytest.mark.parametrize(("resource", "found"), LEFT.values(), ids=LEFT.keys())
def test_what_is_not_ours_stays(resource: Resource, found: dict[str, Any]) -> None:
    assert asked(resource, found) == []


def test_a_temporary_budget_is_deleted() -> None:
    labels = {"app.kubernetes.io/managed-by": "spotshift"}
    (request,) = asked(PDBS, {"metadata": {**meta(labels), "name": "web-rescheduler-pdb", "namespace": "shop"}})
    assert (request.verb, request.namespace, request.uid) == (Verb.DELETE, "shop", "u")


def test_a_record_is_let_go_before_it_is_deleted() -> None:
    others = meta(finalizers=[keys.FINALIZER, "theirs"])
    assert [(it.verb, it.body) for it in asked(PODMIGRATIONS, {"metadata": others})] == [
        (Verb.PATCH, {"metadata": {"uid": "u", "finalizers": ["theirs"]}}),
        (Verb.DELETE, {}),
    ]


def test_every_key_is_either_ours_or_a_users() -> None:
    """A new key of ours is taken back without a word here; a new one of users has to be named."""
    users = set(KEYS.all) - removal.ours(KEYS)
    assert {key.removeprefix(PREFIX) for key in users} == {
        "maintenance",
        "maintenance-deadline",
        "rescheduling",
        "spot",
        "spot-percentage",
        "min-on-demand",
        "tier",
    }


def test_it_is_told_in_words() -> None:
    (request,) = asked(*PATCHES["a cordon of ours"][:2])
    assert removal.described(request) == "nodes it: cordoned-by, maintenance-since, unschedulable"

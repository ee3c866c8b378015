"""What holds for every pod, however strange: the patch applies, twice is once, and nothing of the user's is lost."""

import copy
import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy import placement
from policy.placement import Subject
from tests.effort import many
from tests.unit.webhook import building, pods
from tests.unit.webhook.building import CAPACITY
from tests.unit.webhook.pods import AZURE, VIEWS
from webhook import mutate, selfcheck
from webhook.handle import handle
from webhook.patch import Op
from webhook.reasons import Note, Result
from webhook.view import View

Json = dict[str, Any]
Leaf = tuple[str | int, ...]

views = st.sampled_from(sorted(VIEWS)).map(VIEWS.__getitem__)


def patched(pod: Json, view: View) -> tuple[Json, mutate.Decision]:
    decision = mutate.decide(building.parsed(pod), view, building.NOW)
    return jsonpatch.apply_patch(pod, [op.plain() for op in decision.ops]), decision


def leaves(value: object, at: Leaf = ()) -> Iterator[tuple[Leaf, object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*at, index))
    elif value is not None:  # null means absent, and may be filled
        yield at, value


def is_ours(leaf: Leaf, decision: mutate.Decision, view: View) -> bool:
    """The only leaves that may change: keys of moves, and what a PriorityClass replaces."""
    if leaf[0] == "metadata":
        return leaf[-1] in (*view.keys.migration_labels, *view.keys.migration_annotations)
    cleared = {("spec", "priority"), ("spec", "preemptionPolicy"), ("spec", "priorityClassName")}
    return Note.CLASS_SET in decision.notes and leaf in cleared


@given(pods.pods, views)
@settings(max_examples=many(120))
def test_user_fields_stay_and_twice_is_once(pod: Json, view: View) -> None:
    before = copy.deepcopy(pod)
    after, decision = patched(pod, view)
    kept = dict(leaves(after))
    for leaf, value in leaves(before):
        assert kept.get(leaf) == value or is_ours(leaf, decision, view), leaf
    again = mutate.decide(building.parsed(after), view, building.NOW)
    assert again.ops == ()


@given(pods.pods, views)
@settings(max_examples=many(50))
def test_the_answer_is_an_allowed_one_that_the_api_server_reads(pod: Json, view: View) -> None:
    outcome = handle(building.body(pod), view, building.NOW)
    assert outcome.result in {Result.PATCHED, Result.UNCHANGED, Result.LEFT_ALONE}
    response = json.loads(outcome.body)["response"]
    assert response["allowed"] is True
    assert ("patch" in response) is ("patchType" in response) is (outcome.result is Result.PATCHED)
    assert sum(map(len, response.get("warnings", []))) <= 2048


def holds(rule: Json, labels: Mapping[str, str]) -> bool:
    own, listed = labels.get(rule.get("key", "")), rule.get("values") or []
    match rule.get("operator"):
        case "In":
            return own in listed
        case "NotIn":
            return bool(listed) and own not in listed
        case "Exists":
            return own is not None and not listed
        case "DoesNotExist":
            return own is None and not listed
    return False  # comparisons of the generated values, and operators that do not exist, match nothing


def matches(term: Json, labels: Mapping[str, str]) -> bool:
    rules, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    named = {"metadata.name": labels["kubernetes.io/hostname"]}
    return bool(rules or fields) and all(holds(it, labels) for it in rules) and all(holds(it, named) for it in fields)


def admits(pod: Json, labels: Mapping[str, str]) -> bool:
    node_affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity")) or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(matches(term, labels) for term in required.get("nodeSelectorTerms") or [])


def universe() -> list[dict[str, str]]:
    choices = product(
        ("w-1", "w-2", "x"),
        (None, "spot", "on-demand", "a"),
        (None, "spot", "regular"),
        (None, "spot", "on-demand"),
        (None, "a", "3"),
        (None, ""),
    )
    names = (
        "kubernetes.io/hostname",
        CAPACITY,
        AZURE,
        "karpenter.sh/capacity-type",
        "zone",
        "node-role.kubernetes.io/spot-worker",
    )
    return [
        {name: value for name, value in zip(names, values, strict=True) if value is not None} for values in choices
    ]


NODES = universe()


@given(pods.pods, views)
@settings(max_examples=many(60))
def test_no_node_becomes_allowed(pod: Json, view: View) -> None:
    after, _ = patched(pod, view)
    widened = [labels for labels in NODES if admits(after, labels) and not admits(pod, labels)]
    assert widened == []


@given(pods.pods, st.sampled_from(["two labels", "ordinary", "tainted"]).map(VIEWS.__getitem__))
@settings(max_examples=many(50))
def test_require_leaves_spot_nodes_only(pod: Json, view: View) -> None:
    """Where the rule was set, a term that still admits other nodes is one in which the user speaks of capacity."""
    pod["metadata"]["annotations"] = {f"{building.PREFIX}spot": "require"}
    pod["metadata"]["labels"] = {}
    after, decision = patched(pod, view)
    if Note.SPOT_REQUIRED not in decision.notes:
        return
    known = {row.key for row in view.capacity_table}
    terms = after["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    for term in terms["nodeSelectorTerms"]:
        rules = term.get("matchExpressions") or []
        assert not (rules or term.get("matchFields")) or any(rule.get("key") in known for rule in rules)


@given(pods.pods, views)
@settings(max_examples=many(50))
def test_the_intent_is_that_of_the_policy(pod: Json, view: View) -> None:
    found = building.parsed(pod).pod
    assert found is not None
    subject = Subject(namespace_name="shop", pod=found, namespace=view.namespaces["shop"])
    assert mutate.intent(found, None, "shop", view) == placement.decide(
        subject, keys=view.keys, settings=view.settings
    )


POINTERS = st.lists(
    st.sampled_from(
        ["metadata", "spec", "labels", "annotations", "affinity", "nodeAffinity", "tolerations", "priority"]
    )
    | st.sampled_from(
        ["0", "1", "2", "-", "x", "a~1b", "preferredDuringSchedulingIgnoredDuringExecution", "containers"]
    ),
    min_size=1,
    max_size=5,
).map(lambda parts: "/" + "/".join(parts))
OPS = st.builds(Op, st.just("add"), POINTERS, st.just("v")) | st.builds(Op, st.just("remove"), POINTERS)


@given(pods.pods, st.lists(OPS, min_size=1, max_size=3))
@settings(max_examples=many(120))
def test_the_self_check_says_what_the_whole_pod_would_say(pod: Json, ops: list[Op]) -> None:
    try:
        jsonpatch.apply_patch(pod, [op.plain() for op in ops])
        applies = True
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        applies = False
    assert selfcheck.applies(ops, building.body(pod)) is applies


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_every_view_changes_an_ordinary_pod_in_the_same_way_twice(view: View) -> None:
    owner = {"kind": "ReplicaSet", "name": "web-6f7", "uid": pods.OWNER, "controller": True}
    pod = {"metadata": {"labels": {"app": "web"}, "ownerReferences": [owner]}, "spec": {"priority": 0}}
    first, second = patched(pod, view), patched(pod, view)
    assert first == second
    assert patched(first[0], view)[1].ops == ()

"""Pods as large as a review may be: what they cost grows with their size and no faster, and little is kept."""

import json
import time
from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest

from tests.unit.webhook import building, pods
from tests.unit.webhook.building import PREFIX
from webhook import memory, mutate, room, selfcheck, spot
from webhook.handle import handle
from webhook.memory import Memory
from webhook.patch import Op
from webhook.reasons import Note, Result

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ONE, THREE = pods.VIEWS["ordinary"], pods.VIEWS["two labels"]
OF_OWNER = {"kind": "ReplicaSet", "name": "web-6f7", "uid": pods.OWNER}
MOVING = building.view(objects=[pods.move("m", "w-1", "w-2", owner=OF_OWNER)])
MOST = spot.NARROWED_AT_MOST


def requiring(terms: int, *, long: int = 1, own: int = 0) -> bytes:
    """The creation of a pod that wants spot; some of its terms speak of capacity themselves."""
    said: list[Any] = [{"matchExpressions": [{"key": building.CAPACITY, "operator": "Exists"}]}] * own
    said += [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a" * long]}]}] * terms
    metadata = {"labels": {PREFIX + "managed": "true"}, "annotations": {PREFIX + "spot": "require"}}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": said}}}
    return building.body({"metadata": metadata, "spec": {"affinity": affinity}})


def labelled(count: int) -> list[Op]:
    return [Op("add", f"/metadata/labels/{number}x", "v") for number in range(count)]


@pytest.mark.parametrize(
    ("body", "view", "note", "operations"),
    [
        pytest.param(requiring(MOST), ONE, Note.SPOT_REQUIRED, MOST, id="as many as are joined"),
        pytest.param(requiring(MOST + 1), ONE, Note.TOO_MANY_TERMS, 0, id="one more"),
        pytest.param(requiring(MOST, own=5000), ONE, Note.SPOT_REQUIRED, MOST, id="own rules do not count"),
        pytest.param(requiring(MOST), THREE, Note.SPOT_REQUIRED, 5 * MOST, id="copied for each label"),
        pytest.param(requiring(1, long=500_000), ONE, Note.SPOT_REQUIRED, 1, id="a long one that is not copied"),
        pytest.param(requiring(1, long=500_000), THREE, Note.TOO_MANY_TERMS, 0, id="too long to be copied"),
    ],
)
def test_the_rule_joins_a_bounded_number_of_terms(body: bytes, view: Any, note: Note, operations: int) -> None:
    outcome = handle(body, view, building.NOW)
    placed = [it for it in outcome.decision.ops if it.path.startswith("/spec/affinity")]
    assert note in outcome.notes
    assert len(placed) == operations
    told = json.loads(outcome.body)["response"].get("warnings", [])
    assert any("spot is not required for this pod" in it for it in told) is (note is Note.TOO_MANY_TERMS)


@pytest.mark.parametrize(
    ("work", "few"),
    [
        pytest.param(lambda n: handle(requiring(n), ONE, building.NOW), 1000, id="terms"),
        pytest.param(
            lambda n: handle(requiring(n, own=n), ONE, building.NOW), 1000, id="terms with rules of their own"
        ),
        pytest.param(lambda n: handle(requiring(1, own=n), ONE, building.NOW), 1000, id="one among them without"),
        pytest.param(
            lambda n: selfcheck.applies(labelled(n), building.body({"metadata": {"labels": {}}, "spec": {}})),
            500,
            id="operations",
        ),
    ],
)
def test_what_it_costs_grows_no_faster_than_the_pod(work: Callable[[int], object], few: int) -> None:
    """Four times the size is four times the work; 16 times if each meets each. Only the ratio counts."""
    assert cost(work, 4 * few) / cost(work, few) < 9


def cost(work: Callable[[int], object], size: int) -> float:
    """The least of a few runs, each on what no run before it has seen."""
    found = []
    for more in range(5):
        began = time.process_time()
        work(size + more)
        found.append(time.process_time() - began)
    return min(found)


ADDED = sum(
    len(PREFIX) + len(name) + len(value)
    for name, value in {
        "migration-time": "2026-11-16T04:00:00Z",
        "original-pod": "u-old",
        "original-pod-name": "web-old",
        "migration-target": "w-2",
    }.items()
)
LIMIT = room.ANNOTATIONS_AT_MOST_BYTES
STALE = {PREFIX + "migration-target": "w-9"}


@pytest.mark.parametrize(
    ("spare", "held", "full"),
    [
        pytest.param(ADDED, {}, False, id="just enough"),
        pytest.param(ADDED - 1, {}, True, id="one byte less"),
        pytest.param(0, {}, True, id="none at all"),
        pytest.param(ADDED, STALE, False, id="what is replaced makes room"),
        pytest.param(0, STALE, True, id="what is not replaced goes"),
    ],
)
def test_annotations_that_are_full_stay_below_the_limit(spare: int, held: dict[str, str], full: bool) -> None:
    """The API server adds up keys and values, and refuses the pod for ours."""
    owner = {"kind": "ReplicaSet", "name": "web-6f7", "uid": pods.OWNER, "controller": True}
    taken = sum(len(key) + len(value) for key, value in held.items())
    own = {"é": "é" * ((LIMIT - spare - taken - 9) // 2), "a": "", **held}
    own["a"] = "x" * (LIMIT - spare - sum(len((key + value).encode()) for key, value in own.items()))
    pod = {"metadata": {"annotations": own, "ownerReferences": [owner]}, "spec": {}}
    decision = mutate.decide(building.parsed(pod), MOVING, building.NOW)
    after = jsonpatch.apply_patch(pod, [op.plain() for op in decision.ops])
    found = after["metadata"]["annotations"]
    assert sum(len((key + value).encode()) for key, value in found.items()) <= LIMIT
    assert (Note.ANNOTATIONS_FULL in decision.notes) is full
    assert found.get(PREFIX + "migration-target") == (None if full else "w-2")
    assert after["metadata"]["labels"][PREFIX + "migration-id"] == "m"
    assert mutate.decide(building.parsed(after), MOVING, building.NOW).ops == ()


def test_the_verdict_on_a_long_patch_is_not_remembered() -> None:
    body = building.body({"metadata": {"labels": {}}, "spec": {}})
    selfcheck._verdicts.clear()
    for count, kept in ((selfcheck.STEPS_REMEMBERED, 1), (selfcheck.STEPS_REMEMBERED + 1, 1)):
        assert selfcheck.applies(labelled(count), body)
        assert len(selfcheck._verdicts) == kept


@pytest.mark.parametrize(("terms", "known"), [(4, True), (MOST, False)])
def test_a_long_answer_is_not_remembered(terms: int, known: bool) -> None:
    kept, body = Memory(), requiring(terms)
    assert len(body) < memory.KEY_LIMIT_BYTES
    assert handle(body, THREE, building.NOW, kept).result is Result.PATCHED
    assert (kept.recall(body, THREE) is not None) is known

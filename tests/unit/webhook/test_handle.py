"""One request, whatever it brings: an answer, and never one that denies."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.unit.webhook import building, pods
from webhook import handle as handling
from webhook import selfcheck
from webhook.handle import Outcome, handle
from webhook.mutate import Decision
from webhook.patch import Op
from webhook.reasons import Result
from webhook.view import Metadata, View

POD = {
    "metadata": {
        "generateName": "web-6f7-",
        "labels": {"app": "web", "pod-template-hash": "6f7"},
        "annotations": {f"{building.PREFIX}tier": "batch", f"{building.PREFIX}spot": "oops"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web-6f7", "uid": pods.OWNER, "controller": True}],
    },
    "spec": {
        "containers": [{"name": "main", "image": "app:1", "env": [{"name": "TOKEN", "value": "hunter2"}]}],
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
                }
            }
        },
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
    },
}
BODY = building.body(POD)
VIEW = pods.VIEWS["requires"]


class Broken(Mapping[str, Metadata]):
    """A part of a view that fails when it is asked, as a defect of ours would."""

    def __getitem__(self, key: str) -> Metadata:
        raise ZeroDivisionError("hunter2")

    def __iter__(self) -> Iterator[str]:
        raise ZeroDivisionError("hunter2")

    def __len__(self) -> int:
        raise ZeroDivisionError("hunter2")


def response(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(outcome.body)["response"]
    return found


def test_what_logs_and_metrics_get() -> None:
    outcome = handle(BODY, VIEW, building.NOW)
    assert (outcome.status, outcome.content_type, outcome.result) == (200, "application/json", Result.PATCHED)
    assert (outcome.namespace, outcome.dry_run, outcome.error) == ("shop", False, "")
    assert outcome.uid == response(outcome)["uid"]
    assert outcome.operations > 0
    assert outcome.warnings == len(response(outcome)["warnings"]) == 1


def test_audit_annotations_tell_the_decision_and_quote_nothing_of_the_pod() -> None:
    audit = response(handle(BODY, VIEW, building.NOW))["auditAnnotations"]
    assert audit == {
        "decision": "PATCHED",
        "reason": "WORKLOAD_UNKNOWN,REPLACEMENT,HINTED,CLASS_SET,SPOT_PREFERRED,SPOT_TOLERATED",
        "intent": f"spot=prefer (pod {building.PREFIX}tier),tier=batch (pod {building.PREFIX}tier),"
        "rescheduling=enabled (settings placement.rescheduling)",
        "migration": "b",
    }


def test_a_bad_request_is_answered_in_words() -> None:
    outcome = handle(b"{", VIEW, building.NOW)
    assert (outcome.status, outcome.result, outcome.error) == (400, Result.BAD_REQUEST, "")
    assert outcome.content_type == "text/plain; charset=utf-8"
    assert outcome.body.startswith(b"the body is not an AdmissionReview")


def test_an_error_of_ours_lets_the_pod_through() -> None:
    outcome = handle(BODY, replace(VIEW, namespaces=Broken()), building.NOW)
    assert (outcome.status, outcome.result) == (200, Result.INTERNAL_ERROR)
    assert response(outcome) == {
        "uid": outcome.uid,
        "allowed": True,
        "auditAnnotations": {"decision": "INTERNAL_ERROR"},
    }
    assert outcome.error.startswith("ZeroDivisionError at __getitem__:")
    assert "hunter2" not in outcome.error


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(Op("add", "/metadata/missing/parent", "x"), id="missing parent"),
        pytest.param(Op("add", "/metadata/labels/a/b", "x"), id="below a text"),
        pytest.param(Op("remove", "/metadata/labels/nobody"), id="remove what is not there"),
        pytest.param(Op("add", "/spec/tolerations/7", {}), id="beyond the end of a list"),
        pytest.param(Op("add", "/spec/containers/0/env/x", {}), id="outside of our fields"),
        pytest.param(Op("copy", "/spec/tolerations/-", source="/spec/tolerations/9"), id="copy of nothing"),
        pytest.param(Op("add", "no pointer", {}), id="not a pointer"),
    ],
)
def test_a_patch_that_does_not_apply_is_not_sent(op: Op) -> None:
    outcome = handling._answer(building.parsed(POD), Decision(ops=(op,)))
    assert (outcome.status, outcome.result, outcome.operations) == (200, Result.PATCH_UNAPPLICABLE, 0)
    assert "patch" not in response(outcome)
    assert response(outcome)["auditAnnotations"]["decision"] == "PATCH_UNAPPLICABLE"


@pytest.mark.parametrize("path", ["/spec/containers/0/image", "/spec/tolerations/-", "/spec/affinity/podAffinity"])
def test_a_patch_that_applies_is_sent(path: str) -> None:
    outcome = handling._answer(building.parsed(POD), Decision(ops=(Op("add", path, {}),)))
    assert (outcome.result, outcome.operations) == (Result.PATCHED, 1)


def test_without_a_uid_only_the_failure_policy_can_allow() -> None:
    outcome = handle(cast("bytes", None), VIEW, building.NOW)
    assert (outcome.status, outcome.result, outcome.body) == (500, Result.INTERNAL_ERROR, b"internal error")
    assert outcome.error.startswith("AttributeError at parse:")


def test_a_part_of_the_pod_that_only_the_self_check_reads() -> None:
    body = building.body(POD).replace(b'"nodeAffinity"', b'"podAffinity": 1e999, "nodeAffinity"')
    assert handle(body, VIEW, building.NOW).result is Result.PATCH_UNAPPLICABLE


def test_the_self_check_remembers_a_bounded_number_of_answers() -> None:
    for number in range(selfcheck.REMEMBERED + 10):
        assert selfcheck.applies([Op("add", f"/metadata/labels/{number}x", "v")], BODY)
        assert len(selfcheck._verdicts) <= selfcheck.REMEMBERED


ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    {"": None},
    [None],
    {"a": {"b": []}},
)


def swapped(rng: random.Random, value: Any) -> Any:
    """The same document with one value somewhere in it replaced, removed or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        return value | {key: swapped(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        index = rng.randrange(len(value))
        return [*value[:index], swapped(rng, value[index]), *value[index : index + rng.randrange(3)]]
    return rng.choice(ODD)


def scrambled(rng: random.Random, body: bytes) -> bytes:
    """The same bytes with a few of them changed, lost, repeated or cut off."""
    data = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(data)), rng.randint(1, 40)
        match rng.randrange(5):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[max(0, at - length) : at]
            case 3:
                data[at:at] = rng.choice((b'"', b"{", b"}", b"[", b"]", b"\x00", b"\xff", b",", b"\\u0000", b"1e999"))
            case _:
                del data[at:]
        if not data:
            break
    return bytes(data)


def is_safe(outcome: Outcome) -> bool:
    return outcome.status == 400 or (outcome.status == 200 and response(outcome)["allowed"] is True)


@pytest.mark.parametrize("seed", range(4))
def test_hostile_bytes_never_break_it(seed: int) -> None:
    rng = random.Random(seed)
    views: list[View] = list(pods.VIEWS.values())
    document = json.loads(BODY)
    for _ in range(500):
        body = scrambled(rng, BODY) if rng.random() < 0.5 else json.dumps(swapped(rng, document)).encode()
        outcome = handle(body, rng.choice(views), building.NOW)
        assert is_safe(outcome), body
        assert outcome.result is not Result.INTERNAL_ERROR, (outcome.error, body)

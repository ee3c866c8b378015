"""Bytes to a review, and an answer to bytes."""

import base64
import json
from typing import Any

import pytest

from tests.unit.webhook import building
from webhook import review
from webhook.review import BadRequest, Review

POD = {"metadata": {"name": "web"}, "spec": {}}


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(building.body(POD)) | fields).encode()


def test_a_review_is_read() -> None:
    body = building.body(POD, dryRun=True)
    found = review.parse(body)
    assert isinstance(found, Review)
    assert (found.uid, found.namespace) == ("705ab4f5-6393-11e8-b7cc-42010a800002", "shop")
    assert (found.operation, found.subresource, found.dry_run) == ("CREATE", "", True)
    assert found.pod is not None
    assert found.pod.name == "web"
    assert found.body is body


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(b"", "not an AdmissionReview", id="empty"),
        pytest.param(b"null", "Expected `object`", id="null"),
        pytest.param(b"[]", "Expected `object`", id="array"),
        pytest.param(building.body(POD)[:-2], "truncated", id="truncated"),
        pytest.param(building.body(POD) + b"x", "trailing", id="more after the end"),
        pytest.param(b"[" * 100_000, "not an AdmissionReview", id="deep arrays"),
        pytest.param(
            building.body(POD).replace(b'"oldObject": null', b'"x": ' + b"[" * 100_000), "deeply", id="deep"
        ),
        pytest.param(building.body({"x": []}).replace(b"[]", b'{"x":' * 100_000), "deeply", id="deep object"),
        pytest.param(building.body(POD).replace(b"705ab4f5", b"\xff\xfe"), "UTF-8", id="not UTF-8"),
        pytest.param(building.body(POD).decode().encode("utf-16"), "UTF-8", id="UTF-16"),
        pytest.param(changed(apiVersion="admission.k8s.io/v1beta1"), "admission.k8s.io/v1 ", id="v1beta1"),
        pytest.param(changed(kind="ConversionReview"), "AdmissionReview", id="another kind"),
        pytest.param(changed(request=None), "no request", id="no request"),
        pytest.param(changed(request={}), "missing required field `uid`", id="empty request"),
        pytest.param(building.body(POD, uid=""), "uid", id="empty uid"),
        pytest.param(building.body(POD, uid=7), "Expected `str`, got `int` - at `$.request.uid`", id="uid a number"),
        pytest.param(building.body(POD, kind={"kind": "Deployment"}), "not about a Pod", id="not a Pod"),
        pytest.param(building.body(POD, resource={"resource": "nodes"}), "not about pods", id="not pods"),
        pytest.param(
            building.body(POD, resource={"group": "x.io", "resource": "pods"}), "not about pods", id="group"
        ),
        pytest.param(building.body(None), "no pod", id="no object"),
        pytest.param(building.body({"metadata": {}}), "no pod", id="no spec"),
        pytest.param(building.body({"spec": {}, "metadata": None}), "no pod", id="no metadata"),
        pytest.param(
            building.body({"metadata": {"labels": {"a": 1}}, "spec": {}}), "labels[...]", id="label a number"
        ),
        pytest.param(building.body({"metadata": {"labels": ["a"]}, "spec": {}}), "got `array`", id="labels a list"),
        pytest.param(building.body({"metadata": {}, "spec": {"priority": "1"}}), "priority", id="priority a text"),
        pytest.param(building.body({"metadata": {}, "spec": {"priority": 1e300}}), "priority", id="priority a float"),
        pytest.param(building.body({"metadata": {}, "spec": {"tolerations": {}}}), "tolerations", id="tolerations"),
        pytest.param(
            building.body({"metadata": {}, "spec": {"affinity": {"nodeAffinity": "x"}}}),
            "nodeAffinity",
            id="affinity",
        ),
    ],
)
def test_what_is_not_a_review_of_a_pod_is_refused(body: bytes, told: str) -> None:
    found = review.parse(body)
    assert isinstance(found, BadRequest)
    assert found.status == 400
    assert told in found.message


def test_a_refusal_quotes_no_value() -> None:
    pod = {"metadata": {"labels": {"password-of-the-admin": 1}}, "spec": {"schedulerName": ["hunter2"]}}
    found = review.parse(building.body(pod))
    assert isinstance(found, BadRequest)
    assert "password" not in found.message
    assert "hunter2" not in found.message


def test_an_allowing_answer() -> None:
    answer = json.loads(review.allowed("u-1"))
    assert answer == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


def test_a_patching_answer() -> None:
    answer = json.loads(review.patched("u-1", b"[]", warnings=["w"], audit={"decision": "PATCHED"}))
    assert answer["response"] == {
        "uid": "u-1",
        "allowed": True,
        "patch": base64.b64encode(b"[]").decode(),
        "patchType": "JSONPatch",
        "warnings": ["w"],
        "auditAnnotations": {"decision": "PATCHED"},
    }


@pytest.mark.parametrize(
    ("warnings", "sent"),
    [
        pytest.param(["a", "b", "a"], ["a", "b"], id="each once"),
        pytest.param(["x" * 256], ["x" * 256], id="at the limit"),
        pytest.param(["x" * 257], ["x" * 253 + "..."], id="too long"),
        pytest.param([f"{i:0256d}" for i in range(20)], [f"{i:0256d}" for i in range(8)], id="too many"),
    ],
)
def test_warnings_are_bounded(warnings: list[str], sent: list[str]) -> None:
    assert json.loads(review.allowed("u-1", warnings=warnings))["response"]["warnings"] == sent


@pytest.mark.parametrize("uid", ["a", "uid", '"uid":', "AdmissionReview", "näh\n", "}"])
@pytest.mark.parametrize("other", ["b", "uid", '","allowed":false'])
def test_an_answer_can_be_given_again_to_another_uid(uid: str, other: str) -> None:
    def answer(to: str) -> bytes:
        return review.patched(to, b"[]", warnings=['"uid":"a"'], audit={"uid": "a"})

    assert review.framed(review.frame(answer(uid), uid), other) == answer(other)


def test_an_answer_to_somebody_else_is_not_cut_open() -> None:
    with pytest.raises(ValueError, match="not an answer"):
        review.frame(review.allowed("a"), "b")

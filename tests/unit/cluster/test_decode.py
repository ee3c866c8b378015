"""Objects, pages and events out of bytes, sparse and odd ones included."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import errors
from cluster.decode import Decoder, Decoders
from cluster.objects import CSINode, HorizontalPodAutoscaler, Node, PartialObjectMetadata, Pod, PodMetrics
from cluster.tolerant import without_nulls


def decoder(typed: Any) -> Decoder[Any]:
    return Decoders().of(typed)


def event(kind: str, body: Any) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode()


def event_of(typed: Any, line: bytes) -> tuple[str, Any]:
    return decoder(typed).decode_event(line)


BOTH = pytest.mark.parametrize("typed", [pytest.param(Pod, id="pod"), pytest.param(Node, id="node")])


@BOTH
def test_page(typed: Any) -> None:
    body = {"metadata": {"resourceVersion": "5", "continue": "abc"}, "items": [{"metadata": {"name": "x"}}]}
    page = decoder(typed).decode_list_page(json.dumps(body).encode())
    assert [item.metadata.name for item in page.items] == ["x"]
    assert (page.continue_token, page.resource_version, page.first) == ("abc", "5", False)


@BOTH
@pytest.mark.parametrize("items", [pytest.param([], id="empty"), pytest.param(None, id="null")])
def test_empty_page(typed: Any, items: Any) -> None:
    page = decoder(typed).decode_list_page(json.dumps({"metadata": {}, "items": items}).encode())
    assert (page.items, page.continue_token) == ((), "")


@BOTH
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_event(typed: Any, kind: str) -> None:
    found, item = event_of(typed, event(kind, {"metadata": {"name": "x", "resourceVersion": "9"}}))
    assert (found, item.metadata.name, item.metadata.resource_version) == (kind, "x", "9")
    assert isinstance(item, typed)


@BOTH
def test_bookmark(typed: Any) -> None:
    metadata = {"resourceVersion": "12", "annotations": {"k8s.io/initial-events-end": "true"}}
    body = {
        "kind": "X",
        "metadata": {**metadata, "creationTimestamp": None},
        "spec": {"containers": None},
        "status": {},
    }
    found, item = event_of(typed, event("BOOKMARK", body))
    assert (found, item.metadata.resource_version) == ("BOOKMARK", "12")
    assert item.metadata.annotations == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(Pod, id="pod"),
        pytest.param(Node, id="node"),
        pytest.param(PartialObjectMetadata, id="metadata"),
        pytest.param(None, id="dict"),
    ],
)
def test_error_event(typed: Any) -> None:
    body = {
        "kind": "Status",
        "status": "Failure",
        "code": 410,
        "reason": "Expired",
        "message": "too old",
        "metadata": {},
    }
    kind, found = decoder(typed).decode_event(event("ERROR", body))
    assert kind == "ERROR"
    assert isinstance(found, errors.Gone)
    assert found.message == "too old"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        pytest.param(event("ERROR", {"code": 429, "reason": "TooManyRequests"}), errors.Throttled, id="throttled"),
        pytest.param(event("ERROR", {}), errors.ServerError, id="empty-status"),
        pytest.param(event("ERROR", "text"), errors.Malformed, id="not-a-status"),
        pytest.param(b'{"type":"ADDED","obj', errors.Malformed, id="cut"),
        pytest.param(event("ADDED", [1]), errors.Malformed, id="not-an-object"),
        pytest.param(event("ADDED", {"metadata": {"name": 5}}), errors.Malformed, id="wrong-type"),
        pytest.param(b"", errors.Malformed, id="empty"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', errors.Malformed, id="not-utf8"),
        pytest.param(b'{"type":"ADDED","object":' + b"[" * 100_000, errors.Malformed, id="bottomless"),
        pytest.param(event("ADDED", {"metadata": {"labels": {"a": 5}}}), errors.Malformed, id="wrong-label"),
    ],
)
@BOTH
def test_bad_lines_are_errors(typed: Any, line: bytes, kind: type[errors.ApiError]) -> None:
    found, failure = decoder(typed).decode_event(line)
    assert found == "ERROR"
    assert isinstance(failure, kind)


@pytest.mark.parametrize(
    ("typed", "body", "read"),
    [
        pytest.param(CSINode, {"spec": {"drivers": None}}, lambda o: o.spec.drivers, id="csinode-drivers"),
        pytest.param(PodMetrics, {"containers": None}, lambda o: o.containers, id="metrics-containers"),
        pytest.param(Node, {"spec": {"taints": None}}, lambda o: o.spec.taints, id="node-taints"),
        pytest.param(
            Node, {"metadata": {"ownerReferences": None}}, lambda o: o.metadata.owner_references, id="owners"
        ),
        pytest.param(Pod, {"spec": {"containers": None}}, lambda o: o.spec.containers, id="containers"),
        pytest.param(Pod, {"spec": {"tolerations": None}}, lambda o: o.spec.tolerations, id="raw-tolerations"),
        pytest.param(
            Pod, {"metadata": {"ownerReferences": None}}, lambda o: o.metadata.owner_references, id="pod-owners"
        ),
        pytest.param(Pod, {"status": {"conditions": None}}, lambda o: o.status.conditions, id="conditions"),
    ],
)
def test_null_means_absent(typed: Any, body: Any, read: Any) -> None:
    found = decoder(typed).decode(json.dumps(body).encode())
    assert read(found) == ()


def test_null_in_one_item_does_not_cost_the_others() -> None:
    items = [{"metadata": {"name": "a", "labels": None}}, {"metadata": {"name": "b", "labels": {"x": "y"}}}]
    page = decoder(HorizontalPodAutoscaler).decode_list_page(json.dumps({"items": items}).encode())
    assert [(one.metadata.name, dict(one.metadata.labels)) for one in page.items] == [("a", {}), ("b", {"x": "y"})]


BAD = {"namespace": "ns", "name": "bad", "uid": "u-1", "resourceVersion": "7", "labels": {"a": 5}}


@pytest.mark.parametrize(
    ("bad", "known"),
    [
        pytest.param({"metadata": BAD, "spec": {"password": "hunter2"}}, ("ns", "bad", "u-1", "7"), id="wrong-label"),
        pytest.param({"metadata": {"name": "bad"}, "spec": 5}, ("", "bad", "", ""), id="wrong-spec"),
        pytest.param({"metadata": {"name": 5, "uid": "u"}}, ("", "", "u", ""), id="wrong-name"),
        pytest.param({"metadata": 5}, ("", "", "", ""), id="wrong-metadata"),
        pytest.param("text", ("", "", "", ""), id="not-an-object"),
    ],
)
@BOTH
def test_one_bad_item_does_not_cost_the_page(typed: Any, bad: Any, known: tuple[str, ...]) -> None:
    items = [{"metadata": {"name": "a"}}, bad, {"metadata": {"name": "b"}}]
    body = {"metadata": {"resourceVersion": "5", "continue": "abc"}, "items": items}
    page = decoder(typed).decode_list_page(json.dumps(body).encode())
    assert [item.metadata.name for item in page.items] == ["a", "b"]
    assert (page.continue_token, page.resource_version) == ("abc", "5")
    (left,) = page.left_out
    assert (left.namespace, left.name, left.uid, left.version) == known
    assert "hunter2" not in f"{left!r} {left} {vars(left)}"


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
@BOTH
def test_an_event_with_a_bad_object_says_which(typed: Any, kind: str) -> None:
    found, left = event_of(typed, event(kind, {"metadata": BAD}))
    assert found == "ERROR"
    assert isinstance(left, errors.Unreadable)
    assert (left.event, left.namespace, left.name, left.uid, left.version) == (kind, "ns", "bad", "u-1", "7")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def has_null(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(one is None or has_null(one) for one in inner)


@given(JSON)
def test_without_nulls(value: Any) -> None:
    assert not has_null(without_nulls(value))
    if not has_null(value):
        assert without_nulls(value) == value


@given(JSON)
@pytest.mark.parametrize("typed", [pytest.param(Pod, id="pod"), pytest.param(Node, id="node")])
def test_any_json_decodes_or_is_malformed(typed: Any, value: Any) -> None:
    body = {"metadata": value, "spec": value, "status": value}
    with contextlib.suppress(errors.Malformed):
        decoder(typed).decode(json.dumps(body).encode())


def test_one_decoder_per_type() -> None:
    decoders = Decoders()
    assert decoders.of(Node) is decoders.of(Node)
    assert decoders.of(None) is decoders.of(None)
    assert decoders.of(Pod) is not Decoders().of(Pod)

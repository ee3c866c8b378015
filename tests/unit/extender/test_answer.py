"""From bytes to bytes, in both forms that kube-scheduler has, and with everything that can go wrong."""

import json
from typing import Any

import pytest

from extender import answer, score
from extender import filter as filters
from extender.answer import Outcome, Result
from extender.promises import Promises
from extender.view import NodeFacts, View
from policy.signal_table import Kind
from tests.unit.extender.building import (
    NOW,
    ON_DEMAND,
    PREFIX,
    SPOT,
    a_view,
    annotated,
    by_names,
    facts,
    move,
    node,
    pod,
    whole,
)

NODES = {"a": facts(SPOT), "b": facts(ON_DEMAND), "c": facts(ON_DEMAND, Kind.MAINTENANCE)}
AVOIDS = pod(annotations=annotated(spot="avoid"))
CAPACITY = "node.kubernetes.io__capacity"


def filtered(body: bytes, seen: View, promises: Promises | None = None) -> tuple[Outcome, dict[str, Any]]:
    found = answer.to_filter(body, seen, NOW, promises or Promises())
    return found, json.loads(found.body)


def test_names_come_back_as_names() -> None:
    found, sent = filtered(by_names(AVOIDS, "a", "b", "c", "unknown"), a_view(nodes=NODES))
    assert sent == {
        "NodeNames": ["b", "unknown"],
        "FailedAndUnresolvableNodes": {"c": "node is to be drained for maintenance"},
    }
    assert (found.result, found.out, found.target) == (Result.ANSWERED, 1, None)


def test_whole_nodes_come_back_whole() -> None:
    there = node("b", **{CAPACITY: "on-demand"}, odd="x")
    body = whole(AVOIDS, node("a", **{CAPACITY: "spot"}), there, node("c", **{PREFIX + "maintenance": "true"}))
    _, sent = filtered(body, a_view())
    assert sent["Nodes"] == {"items": [there]}
    assert sent["FailedAndUnresolvableNodes"] == {"c": "node is to be drained for maintenance"}
    assert "NodeNames" not in sent


@pytest.mark.parametrize(
    ("known", "sent_version", "passed"),
    [
        pytest.param("", None, ["a"], id="without versions"),
        pytest.param("7", "8", ["a"], id="newer"),
        pytest.param("8", "7", ["a"], id="older: what the scheduler sees decides"),
        pytest.param("7", "7", [], id="the same, which need not be read again"),
    ],
)
def test_what_whole_nodes_say_counts_before_what_is_known(
    known: str, sent_version: str | None, passed: list[str]
) -> None:
    sent = node("a")
    if sent_version:
        sent["metadata"]["resourceVersion"] = sent_version
    seen = a_view(nodes={"a": NodeFacts(SPOT, Kind.INTERRUPTION, version=known)})
    _, answered = filtered(whole(pod(), sent), seen)
    assert [it["metadata"]["name"] for it in answered["Nodes"]["items"]] == passed


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        pytest.param(by_names(pod()), {"NodeNames": []}, id="no names"),
        pytest.param(whole(pod()), {"Nodes": {"items": []}}, id="no nodes"),
        pytest.param(json.dumps({"Pod": pod()}).encode(), {"Nodes": {"items": []}}, id="neither"),
        pytest.param(
            json.dumps({"Pod": pod(), "Nodes": {"items": None}}).encode(), {"Nodes": {"items": []}}, id="a nil list"
        ),
        pytest.param(
            by_names({"metadata": {"labels": None}, "spec": {"affinity": None}}, "a"),
            {"NodeNames": ["a"]},
            id="nulls",
        ),
    ],
)
def test_sparse_questions(body: bytes, sent: dict[str, Any]) -> None:
    assert filtered(body, a_view(nodes=NODES))[1] == sent


def test_scores_in_the_order_of_the_nodes() -> None:
    seen = a_view(nodes=NODES, loads={"a": 0.5, "b": 0.0})
    found = answer.to_prioritize(by_names(pod(), "b", "a"), seen, NOW, Promises())
    assert json.loads(found.body) == [{"Host": "b", "Score": 3}, {"Host": "a", "Score": 8}]


def test_whole_nodes_are_scored_with_the_load_that_is_known() -> None:
    body = whole(pod(), node("a", **{CAPACITY: "spot"}))
    found = answer.to_prioritize(body, a_view(loads={"a": 1.0}), NOW, Promises())
    assert json.loads(found.body) == [{"Host": "a", "Score": 7}]


def test_a_replacement_gets_its_target_and_nothing_else() -> None:
    promises, seen = Promises(), a_view(move(target="b"), nodes=NODES)
    found, sent = filtered(by_names(pod(), "a", "b", "c"), seen, promises)
    assert sent["NodeNames"] == ["b"]
    assert found.target is True
    scores = answer.to_prioritize(by_names(pod(), "a", "b"), seen, NOW, promises)
    assert json.loads(scores.body) == [{"Host": "a", "Score": 0}, {"Host": "b", "Score": 10}]


@pytest.mark.parametrize(
    ("made", "said", "target", "passed", "reached"),
    [
        pytest.param(pod(), "extender: {target: score}", "b", ["a", "b"], True, id="only scored, by the settings"),
        pytest.param(
            pod(creationTimestamp="2026-11-16T11:00:00Z"), "", "b", ["a", "b"], True, id="too old to be held"
        ),
        pytest.param(pod(), "", "c", ["a", "b"], False, id="the target is drained by now"),
        pytest.param(pod(), "", "z", ["a", "b"], False, id="the target cannot take it"),
    ],
)
def test_a_replacement_that_is_not_held(
    made: dict[str, Any], said: str, target: str, passed: list[str], reached: bool
) -> None:
    found, sent = filtered(by_names(made, "a", "b", "c"), a_view(move(target=target), nodes=NODES, said=said))
    assert (sent["NodeNames"], found.target) == (passed, reached)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff", id="no text"),
        pytest.param(b"[" * 100_000, id="deeply nested"),
        pytest.param(b"{}", id="no pod"),
        pytest.param(by_names(pod(), "a")[:-5], id="truncated"),
        pytest.param(b'{"Pod": {}, "NodeNames": "a"}', id="not a list"),
    ],
)
@pytest.mark.parametrize("ask", [answer.to_filter, answer.to_prioritize], ids=["filter", "prioritize"])
def test_what_cannot_be_read_is_refused(body: bytes, ask: Any) -> None:
    assert ask(body, a_view(), NOW, Promises()).result is Result.REFUSED


def test_when_something_of_ours_fails_everything_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(filters, "nodes", broken)
    monkeypatch.setattr(score, "nodes", broken)
    found, sent = filtered(by_names(pod(), "a", "b"), a_view(nodes=NODES))
    assert (found.result, found.error, sent) == (Result.PASSED, "RuntimeError", {"NodeNames": ["a", "b"]})
    nodes = [node("a"), node("b")]
    assert filtered(whole(pod(), *nodes), a_view())[1] == {"Nodes": {"items": nodes}}
    scores = answer.to_prioritize(by_names(pod(), "a"), a_view(), NOW, Promises())
    assert (scores.result, scores.body) == (Result.PASSED, b"[]")


def test_a_node_that_cannot_be_read_lets_everything_pass() -> None:
    found, sent = filtered(whole(pod(), {"metadata": 7}), a_view())
    assert (found.result, sent) == (Result.PASSED, {"Nodes": {"items": [{"metadata": 7}]}})

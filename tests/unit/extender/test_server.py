"""The numbers that the server counts, and the statuses a scheduler sees."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from extender import server, wire
from extender.view import View
from policy.signal_table import Kind
from serving.asgi import Answer
from telemetry.metrics import Metric
from tests.unit.cluster.surroundings import World
from tests.unit.extender.building import ON_DEMAND, SPOT, a_view, by_names, facts, move, pod

NODES = {"a": facts(SPOT), "b": facts(ON_DEMAND, Kind.MAINTENANCE)}


def ask(world: World, path: str, body: bytes, view: Callable[[], View] = lambda: a_view(nodes=NODES)) -> Answer:
    return server.application(view, runtime=world.runtime).answer(path, body)


def test_a_question_is_answered_and_counted() -> None:
    world = World()
    found = ask(world, "/filter", by_names(pod(), "a", "b"))
    assert (found.status, found.content_type) == (200, "application/json")
    assert json.loads(found.body)["NodeNames"] == ["a"]
    assert world.meter.read(Metric.EXTENDER_REQUESTS, verb="filter", result="answered") == 1
    assert world.meter.read(Metric.EXTENDER_SECONDS, verb="filter") == 1
    assert world.meter.read(Metric.EXTENDER_NODES_OUT) == 1
    assert world.events() == []


@pytest.mark.parametrize(("target", "result"), [("a", "reachable"), ("b", "unreachable"), ("z", "unreachable")])
def test_replacements_are_counted_once(target: str, result: str) -> None:
    world = World()
    app = server.application(
        lambda: a_view(move(target=target, started=world.runtime.wall()), nodes=NODES), runtime=world.runtime
    )
    for path in ("/filter", "/prioritize"):
        assert app.answer(path, by_names(pod(), "a", "b")).status == 200
    assert world.meter.read(Metric.EXTENDER_TARGETS, result=result) == 1


def test_what_cannot_be_read_is_a_400_and_the_scheduler_goes_on() -> None:
    world = World()
    found = ask(world, "/prioritize", b"{")
    assert (found.status, found.body) == (400, b"not ExtenderArgs")
    assert world.meter.read(Metric.EXTENDER_REQUESTS, verb="prioritize", result="refused") == 1
    assert world.meter.read(Metric.INTERNAL_ERRORS) == 0


EMPTY = b'{"Pod":{},"Nodes":{"items":[%s]}}'
NAMED = b'{"Pod":{},"NodeNames":[%s]}'


@pytest.mark.parametrize("path", ["/filter", "/prioritize"])
@pytest.mark.parametrize(
    ("frame", "item", "most", "told"),
    [
        pytest.param(EMPTY, b"{}", wire.WHOLE_AT_MOST, b"2001 whole nodes in one question, at most 2000", id="whole"),
        pytest.param(
            NAMED, b'"a"', wire.NAMES_AT_MOST, b"20001 names of nodes in one question, at most 20000", id="names"
        ),
    ],
)
def test_a_question_is_about_a_bounded_number_of_nodes(
    path: str, frame: bytes, item: bytes, most: int, told: bytes
) -> None:
    """Small ones cost as much as real ones, and everybody waits for the answer."""
    world = World()
    assert ask(world, path, frame % b",".join([item] * most)).status == 200
    refused = ask(world, path, frame % b",".join([item] * (most + 1)))
    assert (refused.status, refused.body) == (400, told + b" are read")
    verb = path.removeprefix("/")
    assert world.meter.read(Metric.EXTENDER_REQUESTS, verb=verb, result="refused") == 1
    assert world.meter.read(Metric.INTERNAL_ERRORS) == 0


def test_an_error_of_ours_lets_everything_pass_and_is_told() -> None:
    world = World()
    nothing: View = None  # type: ignore[assignment]  # a view that no rule can read
    found = ask(world, "/filter", by_names(pod(), "a", "b"), lambda: nothing)
    assert (found.status, json.loads(found.body)) == (200, {"NodeNames": ["a", "b"]})
    assert world.meter.read(Metric.EXTENDER_REQUESTS, verb="filter", result="passed") == 1
    assert world.meter.read(Metric.INTERNAL_ERRORS) == 1
    assert world.events() == ["INTERNAL_ERROR"]


@pytest.mark.parametrize("path", ["/", "/bind", "/preempt", "/filter/"])
def test_nothing_else_is_served(path: str) -> None:
    assert not server.application(a_view, runtime=World().runtime).serves(path)


@pytest.mark.parametrize("path", ["/filter", "/prioritize", "/", "/bind", "/preempt"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT"])
def test_a_question_is_a_post_and_nothing_else(path: str, method: str) -> None:
    """The two questions are answered from what is known; there is no third thing to ask for, and none that binds."""
    app = server.application(a_view, runtime=World().runtime)
    told: list[Any] = []

    async def send(message: Any) -> None:
        told.append(message)

    async def receive() -> Any:
        raise AssertionError("the body is not even read")

    scope = {"type": "http", "method": method, "path": path, "headers": []}
    asyncio.run(app(scope, receive, send))
    assert told[0]["status"] == (405 if app.serves(path) else 404)

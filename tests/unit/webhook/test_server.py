"""The ASGI application, called as a server would: every status, every number, and nothing that denies a pod."""

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from serving import asgi
from serving.asgi import Application, Message
from telemetry.metrics import Metric
from tests.unit.cluster.surroundings import World
from tests.unit.webhook import building
from webhook import server
from webhook.view import View

POD = {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
JSON = (b"content-type", b"application/json")
LIMIT = server.BODY_LIMIT_BYTES


@dataclass
class Exchange:
    """One request and what came back."""

    messages: list[Message] = field(default_factory=list)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])


def piece(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def ask(
    app: Application,
    incoming: Sequence[Message],
    *,
    path: str = "/mutate",
    method: str = "POST",
    headers: Sequence[tuple[bytes, bytes]] = (JSON,),
) -> Exchange:
    left, found = list(incoming), Exchange()

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()  # a peer that says no more
        return left.pop(0)

    async def send(message: Message) -> None:
        found.messages.append(message)

    scope = {"type": "http", "path": path, "method": method, "headers": list(headers), "query_string": b"timeout=2s"}
    asyncio.run(app(scope, receive, send))
    return found


def application(world: World, view: Callable[[], View] = building.view) -> Application:
    return server.application(view, runtime=world.runtime)


def test_a_review_is_answered_and_counted() -> None:
    world = World()
    found = ask(application(world), [piece(building.body(POD))])
    response = json.loads(found.body)["response"]
    assert (found.status, found.headers[b"content-type"]) == (200, b"application/json")
    assert found.headers[b"content-length"] == str(len(found.body)).encode()
    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")
    assert world.meter.read(Metric.ADMISSIONS, result="patched") == 1
    assert world.meter.read(Metric.ADMISSION_SECONDS) == 1
    ((event, pod, namespace, count),) = [(it["event"], it["pod"], it["namespace"], it["count"]) for it in world.lines]
    operations = len(json.loads(base64.b64decode(response["patch"])))
    assert (event, pod, namespace, count) == ("ADMITTED", "web-0", "shop", operations)


def test_nothing_is_told_of_ordinary_pods_unless_somebody_asks_for_it() -> None:
    world = World(level=logging.INFO)
    assert ask(application(world), [piece(building.body(POD))]).status == 200
    assert world.events() == []


def test_a_replacement_is_told_with_the_nodes_of_its_move() -> None:
    world = World()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f", "uid": "rs", "controller": True}
    move = {
        "apiVersion": "spotshift.dev/v1alpha1",
        "kind": "PodMigration",
        "metadata": {"name": "m", "namespace": "shop", "uid": "m"},
        "spec": {"podRef": {"name": "web-1"}, "strategy": "LoadBalancing"},
        "status": {
            "phase": "InProgress",
            "startedAt": datetime.now(UTC).isoformat(),
            "resolved": {"owner": owner, "podUid": "p", "sourceNode": "a", "targetNode": "b"},
        },
    }
    pod = {**POD, "metadata": {"generateName": "web-5f-", "ownerReferences": [owner]}}
    assert ask(application(world, lambda: building.view(objects=[move])), [piece(building.body(pod))]).status == 200
    (line,) = world.lines
    assert (line["workload"], line["preferredNode"], line["avoidNode"]) == ("ReplicaSet/web-5f", "b", "a")
    assert "pod" not in line, "it has no name yet"


def test_a_body_may_come_in_pieces() -> None:
    body = building.body(POD)
    pieces = [piece(body[:100], more=True), piece(b"", more=True), piece(body[100:])]
    assert ask(application(World()), pieces).status == 200


@pytest.mark.parametrize("kind", [b"application/json; charset=utf-8", b"Application/JSON"])
def test_parameters_and_case_of_the_content_type_do_not_matter(kind: bytes) -> None:
    found = ask(application(World()), [piece(building.body(POD))], headers=[(b"content-type", kind)])
    assert found.status == 200


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        pytest.param(404, {"path": "/"}, id="another path"),
        pytest.param(404, {"path": "/healthz", "method": "GET"}, id="a probe, which has its own port"),
        pytest.param(404, {"path": "/mutate/"}, id="not quite the path"),
        pytest.param(405, {"method": "GET"}, id="another method"),
        pytest.param(405, {"method": "HEAD"}, id="a method whose answer has no body"),
        pytest.param(415, {"headers": []}, id="no content type"),
        pytest.param(415, {"headers": [(b"content-type", b"text/plain")]}, id="another content type"),
        pytest.param(
            413, {"headers": [JSON, (b"content-length", b"%d" % (4 * LIMIT + 1))]}, id="announced too large"
        ),
    ],
)
def test_refused_before_the_body_is_read(status: int, request_: dict[str, Any]) -> None:
    world = World()
    found = ask(application(world), [], **request_)
    assert found.status == status
    assert b"allowed" not in found.body
    assert (b"allow" in found.headers) == (status == 405)
    assert (found.body == b"") == (request_.get("method") == "HEAD")
    assert world.meter.read(Metric.ADMISSION_SECONDS) == 0


@pytest.mark.parametrize(
    ("status", "incoming"),
    [
        pytest.param(413, [piece(b" " * (LIMIT + 1))], id="too large at once"),
        pytest.param(413, [piece(b" " * LIMIT, more=True), piece(b" ")], id="too large in pieces"),
        pytest.param(413, [piece(b" " * LIMIT, more=True)] * 5, id="and never ends"),
        pytest.param(400, [piece(b"")], id="empty"),
        pytest.param(400, [piece(building.body(POD)[:-50])], id="truncated"),
        pytest.param(400, [piece(b"[" * 100_000)], id="deeply nested"),
        pytest.param(400, [piece(b"\xff\xfe")], id="no text"),
    ],
)
def test_a_body_that_is_no_review(status: int, incoming: list[Message]) -> None:
    found = ask(application(World()), incoming)
    assert found.status == status
    assert b"allowed" not in found.body


@pytest.mark.parametrize("said", [[], [piece(b"{", more=True)]], ids=["nothing of it came", "it does not end"])
def test_a_body_that_is_late_is_given_up(monkeypatch: pytest.MonkeyPatch, said: list[Message]) -> None:
    monkeypatch.setattr(asgi, "BODY_SECONDS", 0.01)
    assert ask(application(World()), said).status == 408


@pytest.mark.parametrize("before", [[], [piece(b"{", more=True)]], ids=["at once", "in the middle"])
def test_nobody_is_answered_who_went_away(before: list[Message]) -> None:
    assert ask(application(World()), [*before, {"type": "http.disconnect"}]).messages == []


def test_an_error_of_ours_is_a_500_without_details() -> None:
    def broken() -> View:
        raise RuntimeError("password=hunter2")

    world = World()
    found = ask(application(world, broken), [piece(building.body(POD))])
    assert (found.status, found.body) == (500, b"internal error")
    assert world.meter.read(Metric.INTERNAL_ERRORS) == 1
    assert world.events() == ["INTERNAL_ERROR"]
    assert "hunter2" not in str(world.lines)


def test_an_error_in_the_decision_lets_the_pod_through_and_is_told() -> None:
    world = World()
    nothing: Any = None  # a view that no rule can read
    found = ask(application(world, lambda: nothing), [piece(building.body(POD))])
    response = json.loads(found.body)["response"]
    assert (found.status, response["allowed"], "patch" in response) == (200, True, False)
    assert world.meter.read(Metric.ADMISSIONS, result="failed") == 1
    assert world.meter.read(Metric.INTERNAL_ERRORS) == 1
    assert "web-0" not in str(world.lines)


def test_values_that_are_not_accepted_are_counted() -> None:
    world = World()
    marked = {
        **POD,
        "metadata": {"annotations": {building.PREFIX + "spot": "perhaps", building.PREFIX + "tier": "x"}},
    }
    ask(application(world), [piece(building.body(marked))])
    assert world.meter.read(Metric.VALUES_IGNORED) == 2


def test_the_life_of_a_worker() -> None:
    lived: list[str] = []
    app = server.application(
        building.view, runtime=World().runtime, start=lambda: lived.append("start"), stop=lambda: lived.append("stop")
    )
    incoming: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        lived.append(message["type"])

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert lived == ["start", "lifespan.startup.complete", "stop", "lifespan.shutdown.complete"]


def test_a_websocket_is_turned_away() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(application(World())({"type": "websocket", "path": "/mutate"}, receive, send))
    assert sent == [{"type": "websocket.close"}]


def test_draining_is_not_ready_and_still_answers() -> None:
    world = World()
    app = application(world)
    assert app.problem() is None
    app.drain()
    assert world.events() == ["STOPPING"]
    assert app.problem() == "shutting down"
    assert ask(app, [piece(building.body(POD))]).status == 200

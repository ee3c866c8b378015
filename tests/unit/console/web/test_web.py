"""The page without a browser: what is sent, to whom, and that nothing of it is taken for markup."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from jinja2 import TemplateNotFound

from console.web import app, events
from console.web.access import LOCAL, Access
from console.web.board import KEPT, Board
from console.web.events import BATCH, Sender
from console.web.picture import TILES, Painter, Picture
from console.web.streams import Streams
from descheduler import plan
from tests.unit.console import looks
from tests.unit.console.web import pictures
from tests.unit.console.web.pictures import MARKUP

OPEN = Access()


def client(picture: Picture | None = None, access: Access = OPEN, pages: int = 2) -> FlaskClient:
    board = Board()
    if picture is not None:
        board.hang(picture)
    return app.create(board, access, Streams(pages)).test_client()


def parsed(sent: Iterator[bytes]) -> list[tuple[str, Any]]:
    found = []
    for it in sent:
        head, *lines = it.decode().rstrip("\n").split("\n")
        text = "\n".join(line.removeprefix("data: ") for line in lines)
        name = head.removeprefix("event: ")
        found.append((name, json.loads(text) if name in {"nodes", "samples"} else text))
    return found


def sender() -> Sender:
    return Sender(lambda part, picture: f"{part} of {len(picture.nodes)}")


def test_a_picture_holds_what_the_cluster_holds() -> None:
    look = looks.golden()
    made = Painter().paint(look, plan.make(look.state, look.settings, look.now))
    assert set(made.nodes) == {name for name, it in look.state.nodes.items() if it.node is not None}
    tiles = {name for node in made.nodes.values() for name, _ in node["tiles"]}
    assert tiles == {f"{ns}/{name}" for (ns, name), pod in look.state.pods.items() if pod.node_name}
    assert all(0 <= kind < len(TILES) for node in made.nodes.values() for _, kind in node["tiles"])
    refused = plan.make(look.state, look.settings, look.now).refusals
    assert sum(map(len, made.refusals.values())) == sum(len(it.reasons) for it in refused) > 0
    assert 0 < made.sample.mean <= made.sample.highest


def test_a_node_that_did_not_change_is_the_same_object() -> None:
    look, painter = looks.golden(), Painter()
    made = plan.make(look.state, look.settings, look.now)
    first, second = painter.paint(look, made), painter.paint(look, made)
    assert all(first.nodes[name] is second.nodes[name] for name in first.nodes)


def test_everything_is_sent_once_and_then_what_changed() -> None:
    stays, changes, goes = (pictures.node(name) for name in ("a", "b", "c"))
    first = pictures.picture(stays, changes, goes)
    second = pictures.picture(stays, pictures.node("b", load=50.0))
    sending = sender()
    told = parsed(sending.first(first, (first.sample,)))
    assert [name for name, _ in told] == [*events.PARTS, "nodes", "nodes", "samples"]
    assert told[4][1] == {"all": ["a", "b", "c"], "nodes": []}
    assert [it["name"] for it in told[5][1]["nodes"]] == ["a", "b", "c"]
    again = [it for it in parsed(sending.next(second)) if it[0] not in events.PARTS]
    changed = json.loads(json.dumps(second.nodes["b"]))
    assert [it for _, it in again[:-1]] == [{"all": ["a", "b"], "nodes": []}, {"nodes": [changed]}]
    assert again[-1][1]["anew"] is False
    assert [name for name, _ in parsed(sending.next(second))] == ["samples"]


def test_a_large_cluster_comes_in_pieces() -> None:
    told = [it for name, it in parsed(sender().first(pictures.large(450, 900), ())) if name == "nodes"]
    assert [len(it["nodes"]) for it in told] == [0, BATCH, BATCH, 50]


def test_line_breaks_stay_inside_of_an_event() -> None:
    assert events.event("x", b"one\r\n\nevent: y") == b"event: x\ndata: one\ndata: \ndata: event: y\n\n"


def test_whoever_waits_gets_the_latest_and_is_let_go_at_the_end() -> None:
    board = Board()
    assert board.after(0, 0) is None
    for number in range(KEPT + 5):
        board.hang(pictures.picture(at=float(number)))
    found = board.after(0, 0)
    assert found is not None
    assert found.number == KEPT + 5
    assert len(board.samples()) == KEPT
    assert board.after(found.number, 0) is None
    board.close()
    assert board.after(0, 10) is None


PATHS = ("/", f"/refusals/{quote(MARKUP, safe='')}", f"/nodes/{quote(MARKUP, safe='')}", "/settings")


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_taken_for_markup(path: str) -> None:
    answer = client(pictures.hostile()).get(path)
    assert answer.status_code == 200
    assert "<img src=x" not in answer.text
    assert "<script>" not in answer.text
    assert path == "/" or "&lt;img" in answer.text


def test_nothing_that_is_streamed_is_taken_for_markup() -> None:
    with client(pictures.hostile()).get("/events", buffered=False) as answer:
        stream = answer.iter_encoded()
        sent = b"".join(next(stream) for _ in range(7)).decode()
    html = "".join(part for part in sent.split("\n\n") if not part.startswith("event: nodes"))
    assert "<img src=x" not in html
    assert html.count("&lt;img src=x") >= 8


@pytest.mark.parametrize("path", ["/", "/healthz", "/static/map.js", "/nowhere"])
def test_every_answer_says_what_the_page_may_do(path: str) -> None:
    with client(pictures.picture()).get(path) as answer:
        headers = answer.headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
@pytest.mark.parametrize("path", ["/", "/events", "/settings", "/nodes/a"])
def test_nothing_can_be_written(method: str, path: str) -> None:
    assert getattr(client(pictures.picture()), method)(path).status_code == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8090", 200), ("127.0.0.1", 200), ("[::1]:8090", 200), ("evil.example:8090", 421), ("", 421)],
)
def test_only_our_own_names_are_answered(host: str, status: int) -> None:
    assert client(pictures.picture()).get("/", headers={"Host": host}).status_code == status
    assert Access(hosts=LOCAL | {"*"}).knows_host(host)


def test_a_token_is_needed_where_there_is_one() -> None:
    browser = client(pictures.picture(), Access("secret"))
    assert browser.get("/").status_code == 401
    assert browser.get("/?token=wrong").status_code == 401
    assert browser.get("/healthz").status_code == 200
    assert browser.get("/", headers={"Authorization": "Bearer secret"}).status_code == 200
    answer = browser.get("/?token=secret")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert "HttpOnly" in answer.headers["Set-Cookie"]
    assert "SameSite=Strict" in answer.headers["Set-Cookie"]
    assert browser.get("/").status_code == 200


def test_before_the_first_picture_and_beyond_the_last_page() -> None:
    early = client()
    assert early.get("/healthz").status_code == 503
    assert early.get("/settings").status_code == 503
    full = client(pictures.picture(), pages=0)
    assert full.get("/events").status_code == 503
    assert client(pictures.picture()).get("/nodes/none").status_code == 404


def test_a_page_that_was_never_read_leaves_its_place() -> None:
    """Whoever asks for the head only, or goes away before the first byte, has begun no stream that could end."""
    board = Board()
    board.hang(pictures.picture())
    browser = app.create(board, OPEN, Streams(1)).test_client()
    for _ in range(3):
        head = browser.head("/events")
        assert (head.status_code, head.mimetype, head.data) == (200, "text/event-stream", b"")
        browser.get("/events", buffered=False).close()
    with browser.get("/events", buffered=False) as read:
        assert next(read.iter_encoded()) == b"retry: 1000\n\n"
        assert browser.get("/events").status_code == 503, "there is one place, and somebody has it"
        assert browser.head("/events").status_code == 200, "a head needs none"
    with browser.get("/events", buffered=False) as again:
        assert again.status_code == 200


def test_a_page_whose_picture_cannot_be_made_leaves_its_place() -> None:
    board = Board()
    board.hang(pictures.picture())
    made = app.create(board, OPEN, Streams(1))
    made.jinja_loader = None
    browser = made.test_client()
    for _ in range(2):
        with pytest.raises(TemplateNotFound), browser.get("/events", buffered=False) as read:
            list(read.iter_encoded())


def test_no_route_takes_anything_but_a_look() -> None:
    made = app.create(Board(), OPEN, Streams(1))
    rules = list(made.url_map.iter_rules())
    assert len(rules) >= 7
    assert {method for rule in rules for method in rule.methods or ()} == {"GET", "HEAD", "OPTIONS"}

"""Which bytes may take the short way, and which must not."""

import pytest

from serving import lane
from serving.lane import Cut, Heads

START = b"POST /mutate?timeout=2s HTTP/1.1\r\nHost: webhook\r\n"
PATH = "/mutate"
HEAD = START + b"Content-Length: 5\r\nContent-Type: application/json\r\n\r\n"
LONGER = HEAD.replace(b"5", b"12345")
PLAIN = [(b"host", b"webhook"), (b"content-length", b"5"), (b"content-type", b"application/json")]


@pytest.fixture
def heads() -> Heads:
    made = Heads()
    made.learn(HEAD, PATH)
    return made


@pytest.mark.parametrize(
    ("data", "cut"),
    [
        pytest.param(HEAD + b"12345", Cut(len(HEAD), len(HEAD) + 5, PATH), id="whole"),
        pytest.param(HEAD, Cut(len(HEAD), len(HEAD) + 5, PATH), id="no body yet"),
        pytest.param(HEAD + b"12345POST", Cut(len(HEAD), len(HEAD) + 5, PATH), id="and the next"),
        pytest.param(LONGER, Cut(len(LONGER), len(LONGER) + 12345, PATH), id="another length"),
        pytest.param(HEAD.replace(b"5", b"0"), Cut(len(HEAD), len(HEAD), PATH), id="no body"),
    ],
)
def test_known(heads: Heads, data: bytes, cut: Cut) -> None:
    assert heads.cut(data) == cut


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(HEAD[:-1], id="head not complete"),
        pytest.param(b"\r\n" + HEAD, id="an empty line before"),
        pytest.param(HEAD.replace(b"/mutate", b"/other"), id="another path"),
        pytest.param(HEAD.replace(b"POST", b"PUT"), id="another method"),
        pytest.param(HEAD.replace(b"json", b"yaml"), id="another type"),
        pytest.param(HEAD.replace(b"Host: webhook", b"Host: other"), id="another host"),
        pytest.param(HEAD.replace(b"Content-Length", b"content-length"), id="spelt differently"),
        pytest.param(HEAD.replace(b": 5", b": +5"), id="a sign"),
        pytest.param(HEAD.replace(b": 5", b": 5 "), id="a blank"),
        pytest.param(HEAD.replace(b": 5", b": "), id="no number"),
        pytest.param(HEAD.replace(b": 5", b": 0x5"), id="no decimal"),
        pytest.param(HEAD.replace(b": 5", b": 262145"), id="too long"),
        pytest.param(HEAD.replace(b": 5", b": 0000005"), id="too many digits"),
        pytest.param(HEAD.replace(b": 5\r\n", b": 5\r\nContent-Length: 5\r\n"), id="two lengths"),
        pytest.param(HEAD.replace(b": 5\r\n", b": 5\r\nTransfer-Encoding: chunked\r\n"), id="chunked too"),
        pytest.param(START + b"X: " + b"x" * 5000 + HEAD[len(START) :], id="a long head"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_unknown(heads: Heads, data: bytes) -> None:
    assert heads.cut(data) is None


def test_a_length_in_a_value_is_not_the_length() -> None:
    head = HEAD.replace(b"webhook", b"Content-Length: 7")
    heads = Heads()
    heads.learn(head, PATH)
    assert heads.cut(head) == Cut(len(head), len(head) + 5, PATH)
    assert heads.cut(head.replace(b": 7", b": 8")) is None


def test_a_head_without_a_length_is_not_learnt() -> None:
    heads = Heads()
    head = HEAD.replace(b"Content-Length: 5\r\n", b"")
    heads.learn(head, PATH)
    assert heads.cut(head) is None


def test_not_more_heads_than_there_is_room_for(heads: Heads) -> None:
    for number in range(lane.REMEMBERED):
        heads.learn(HEAD.replace(b"webhook", b"host-%d" % number), PATH)
    assert heads.cut(HEAD) is None
    heads.learn(HEAD, PATH)
    assert heads.cut(HEAD) is not None


@pytest.mark.parametrize(
    ("method", "version", "headers", "plain"),
    [
        pytest.param("POST", (1, 1), PLAIN, True, id="plain"),
        pytest.param("PUT", (1, 1), PLAIN, False, id="method"),
        pytest.param("POST", (1, 0), PLAIN, False, id="version"),
        pytest.param("POST", (1, 1), PLAIN[:1], False, id="no length"),
        pytest.param("POST", (1, 1), [*PLAIN, (b"content-length", b"5")], False, id="two lengths"),
        pytest.param("POST", (1, 1), [*PLAIN, (b"transfer-encoding", b"chunked")], False, id="chunked"),
        pytest.param("POST", (1, 1), [*PLAIN, (b"expect", b"100-continue")], False, id="waits for a word"),
        pytest.param("POST", (1, 1), [*PLAIN, (b"connection", b"close")], False, id="wants to close"),
        pytest.param("POST", (1, 1), [*PLAIN, (b"upgrade", b"h2c")], False, id="wants to upgrade"),
    ],
)
def test_plain(method: str, version: tuple[int, int], headers: list[tuple[bytes, bytes]], plain: bool) -> None:
    assert lane.plain(method, version, headers) is plain

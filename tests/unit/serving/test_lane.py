"""Which bytes may take the short way, and which must not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def cut(heads: Heads, data: bytes) -> Cut | None:
    """As a connection does that has used no head yet."""
    head = heads.find(data)
    return None if head is None else head.cut(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(HEAD + b"12345", Cut(len(HEAD), len(HEAD) + 5, PATH), id="whole"),
        pytest.param(HEAD, Cut(len(HEAD), len(HEAD) + 5, PATH), id="no body yet"),
        pytest.param(HEAD + b"12345POST", Cut(len(HEAD), len(HEAD) + 5, PATH), id="and the next"),
        pytest.param(LONGER, Cut(len(LONGER), len(LONGER) + 12345, PATH), id="another length"),
        pytest.param(HEAD.replace(b"5", b"0"), Cut(len(HEAD), len(HEAD), PATH), id="no body"),
    ],
)
def test_known(heads: Heads, data: bytes, expected: Cut) -> None:
    assert cut(heads, data) == expected


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
    last = heads.find(HEAD)
    assert last is not None
    assert cut(heads, data) is None
    assert last.cut(data) is None, "nor by the head that was used last"


_EDITS = st.lists(
    st.tuples(
        st.integers(0, len(HEAD)),
        st.integers(0, 3),
        st.sampled_from(
            [b"", b"5", b"12", b"0", b"-", b" ", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\r\nContent-Length: ", b"x"]
        ),
    ),
    max_size=3,
)


@given(_EDITS, st.binary(max_size=8))
def test_the_head_used_last_says_what_all_of_them_say(edits: list[tuple[int, int, bytes]], body: bytes) -> None:
    heads = Heads()
    heads.learn(HEAD, PATH)
    last = heads.find(HEAD)
    assert last is not None
    data = HEAD + body
    for at, gone, put in edits:
        data = data[:at] + put + data[at + gone :]
    assert last.cut(data) == cut(heads, data)


def test_a_length_in_a_value_is_not_the_length() -> None:
    head = HEAD.replace(b"webhook", b"Content-Length: 7")
    heads = Heads()
    heads.learn(head, PATH)
    assert cut(heads, head) == Cut(len(head), len(head) + 5, PATH)
    assert cut(heads, head.replace(b": 7", b": 8")) is None


def test_a_head_without_a_length_is_not_learnt() -> None:
    heads = Heads()
    head = HEAD.replace(b"Content-Length: 5\r\n", b"")
    heads.learn(head, PATH)
    assert cut(heads, head) is None


def test_not_more_heads_than_there_is_room_for(heads: Heads) -> None:
    for number in range(lane.REMEMBERED):
        heads.learn(HEAD.replace(b"webhook", b"host-%d" % number), PATH)
    assert cut(heads, HEAD) is None
    heads.learn(HEAD, PATH)
    assert cut(heads, HEAD) is not None


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

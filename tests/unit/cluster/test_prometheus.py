"""One question to Prometheus over real HTTP: every kind of answer, the hostile ones included."""

import base64
import gzip
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import errors, prometheus
from cluster.prometheus import Prometheus, Sample
from testbed import pki
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi

ROW = {"metric": {"node": "n0"}, "value": [1700000000.5, "1.5"]}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api.running() as api:
        yield api


def vector(*rows: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "vector", "result": list(rows)}}


def ask(api: FakeApi, answer: Answer, *, timeout: float = 5.0) -> tuple[Sample, ...]:
    api.answer(answer)
    return Prometheus(api.url, timeout=timeout).query("up")


def test_a_vector_becomes_samples(api: FakeApi) -> None:
    assert ask(api, Answer(body=vector(ROW))) == (Sample({"node": "n0"}, 1.5),)
    (seen,) = api.seen
    assert (seen.method, seen.path, seen.query) == ("GET", "/api/v1/query", {"query": "up"})


def test_a_path_before_the_api_is_kept(api: FakeApi) -> None:
    api.answer(Answer(body=vector()))
    assert Prometheus(f"{api.url}/prometheus/", timeout=5.0).query("up") == ()
    assert api.seen[0].path == "/prometheus/api/v1/query"


def test_a_connection_serves_many_questions(api: FakeApi) -> None:
    client = Prometheus(api.url, timeout=5.0)
    api.answer(Answer(422, {"status": "error", "error": "no"}), Answer(body=vector(ROW)), Answer(body=vector(ROW)))
    with pytest.raises(errors.Invalid):
        client.query("up")
    assert client.query("up") == client.query("up")


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "-1", "", "many", "0x10"])
def test_a_value_that_is_no_amount_is_left_out(api: FakeApi, text: str) -> None:
    assert ask(api, Answer(body=vector(ROW, {"metric": {}, "value": [0, text]}))) == (Sample({"node": "n0"}, 1.5),)


HOSTILE: dict[str, tuple[Answer, type[errors.ApiError]]] = {
    "empty": (Answer(body=b""), errors.Malformed),
    "a page": (Answer(body=b"<html>log in</html>"), errors.Malformed),
    "not UTF-8": (Answer(body=b'{"status": "\xff"}'), errors.Malformed),
    "nested": (Answer(body=b"[" * 100_000), errors.Malformed),
    "null": (Answer(body=b"null"), errors.Malformed),
    "no data": (Answer(body={"status": "success"}), errors.Malformed),
    "an error that says 200": (Answer(body={"status": "error", "error": "x"}), errors.Malformed),
    "a matrix": (
        Answer(body={"status": "success", "data": {"resultType": "matrix", "result": []}}),
        errors.Malformed,
    ),
    "a number for a value": (Answer(body=vector({"metric": {}, "value": [0, 1]})), errors.Malformed),
    "no value": (Answer(body=vector({"metric": {"node": "n0"}})), errors.Malformed),
    "a number for a label": (Answer(body=vector({"metric": {"node": 1}, "value": [0, "1"]})), errors.Malformed),
    "compressed, though nobody asked": (
        Answer(body=gzip.compress(json.dumps(vector(ROW)).encode()), headers={"Content-Encoding": "gzip"}),
        errors.Malformed,
    ),
    "cut": (Answer(body=b'{"status":', cut=True), errors.Unreachable),
    "elsewhere": (Answer(302, headers={"Location": "http://127.0.0.1:1/"}), errors.Invalid),
    "elsewhere for good": (Answer(308, headers={"Location": "http://127.0.0.1:1/"}), errors.Invalid),
    "nothing inside": (Answer(204, b""), errors.Invalid),
    "unknown": (Answer(401, {}), errors.Unauthorized),
    "not allowed": (Answer(403, b"no"), errors.Forbidden),
    "no such page": (Answer(404, b"404 page not found"), errors.NotFound),
    "refused": (Answer(422, {"status": "error", "errorType": "execution", "error": "too many"}), errors.Invalid),
    "busy": (Answer(503, {"status": "error", "error": "queue is full"}), errors.ServerError),
}


@pytest.mark.parametrize(("answer", "kind"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_answer_is_an_api_error(api: FakeApi, answer: Answer, kind: type[errors.ApiError]) -> None:
    with pytest.raises(errors.ApiError) as caught:
        ask(api, answer)
    assert type(caught.value) is kind
    assert len(api.seen) == 1


def test_the_sentence_of_prometheus_is_told(api: FakeApi) -> None:
    with pytest.raises(errors.ApiError, match="422 execution: too many samples"):
        ask(api, Answer(422, {"status": "error", "errorType": "execution", "error": "too many samples"}))


def test_a_body_is_read_up_to_a_limit(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MAX_BYTES", 1 << 10)
    with pytest.raises(errors.Malformed, match="the answer is larger"):
        ask(api, Answer(body=b" " * 1025))


def test_silence_ends(api: FakeApi) -> None:
    with pytest.raises(errors.Unreachable) as caught:
        ask(api, Answer(body=b"{", hold=True), timeout=0.2)
    assert caught.value.timed_out


def test_drops_that_keep_coming_end_too(api: FakeApi) -> None:
    """No single read takes long."""
    api.answer(Answer(body=vector(ROW)))
    times = iter((0.0, 11.0, 12.0))
    with pytest.raises(errors.Unreachable, match="longer than 10 s"):
        Prometheus(api.url, timeout=10.0, now=lambda: next(times)).query("up")


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "https://127.0.0.1:1", "http://no such host/"])
def test_nobody_there(address: str) -> None:
    with pytest.raises(errors.Unreachable):
        Prometheus(address, timeout=1.0).query("up")


def test_https_is_checked_by_the_trust_store_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca = pki.authority(tmp_path, "ca")
    pair = ca.server("prometheus")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    with fake_api.running(context) as api:
        with pytest.raises(errors.Unreachable, match="certificate verify failed"):
            ask(api, Answer(body=vector(ROW)))
        monkeypatch.setenv("SSL_CERT_FILE", str(ca.pair.cert))
        assert ask(api, Answer(body=vector(ROW))) == (Sample({"node": "n0"}, 1.5),)


@pytest.mark.parametrize(
    ("user", "sent"),
    [("reader:p%40ss", "reader:p@ss"), ("reader", "reader:"), (":only", ":only"), ("a:%E2%82%AC", "a:€")],
)
def test_a_name_and_password_are_sent_and_not_told(api: FakeApi, user: str, sent: str) -> None:
    client = Prometheus(api.url.replace("://", f"://{user}@"), timeout=1.0)
    api.answer(Answer(401, {"status": "error"}))
    with pytest.raises(errors.Unauthorized) as caught:
        client.query("up")
    headers = {name.lower(): value for name, value in api.seen[0].headers.items()}
    assert headers["authorization"] == f"Basic {base64.b64encode(sent.encode()).decode()}"
    assert user not in str(caught.value)
    with pytest.raises(errors.Unreachable) as gone:
        Prometheus(f"http://{user}@127.0.0.1:1", timeout=1.0).query("up")
    assert user not in f"{gone.value}{gone.value.__cause__}"

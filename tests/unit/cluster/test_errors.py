"""One tree, one translator: which answer becomes which error, and what the error tells."""

from __future__ import annotations

import json
from typing import Any

import pytest
import urllib3
import urllib3.exceptions
from hypothesis import given
from hypothesis import strategies as st

from cluster import errors

BLOCKED = {
    "reason": "TooManyRequests",
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "details": {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget web-pdb needs 2 healthy pods and has 2 currently",
            }
        ]
    },
}
MULTIPLE = {"reason": "InternalError", "message": "This pod has more than one PodDisruptionBudget, which ..."}


@pytest.mark.parametrize(
    ("code", "body", "kind", "retryable"),
    [
        pytest.param(404, {"reason": "NotFound"}, errors.NotFound, False, id="not-found"),
        pytest.param(409, {"reason": "Conflict"}, errors.Conflict, False, id="conflict"),
        pytest.param(409, {"reason": "AlreadyExists"}, errors.AlreadyExists, False, id="exists"),
        pytest.param(410, {"reason": "Expired"}, errors.Gone, False, id="gone"),
        pytest.param(403, {"reason": "Forbidden"}, errors.Forbidden, False, id="forbidden"),
        pytest.param(401, {"reason": "Unauthorized"}, errors.Unauthorized, False, id="unauthorized"),
        pytest.param(400, {"reason": "BadRequest"}, errors.Invalid, False, id="bad-request"),
        pytest.param(422, {"reason": "Invalid"}, errors.Invalid, False, id="invalid"),
        pytest.param(415, {}, errors.Invalid, False, id="unsupported-patch"),
        pytest.param(302, {}, errors.Invalid, False, id="redirect"),
        pytest.param(429, {"reason": "TooManyRequests"}, errors.Throttled, True, id="throttled"),
        pytest.param(429, BLOCKED, errors.DisruptionBlocked, True, id="blocked-by-budget"),
        pytest.param(500, MULTIPLE, errors.MultipleBudgets, False, id="two-budgets"),
        pytest.param(500, {"reason": "InternalError"}, errors.ServerError, True, id="internal"),
        pytest.param(503, {}, errors.ServerError, True, id="unavailable"),
        pytest.param(504, {"reason": "Timeout"}, errors.ServerError, True, id="gateway-timeout"),
        pytest.param(408, {}, errors.ServerError, True, id="request-timeout"),
    ],
)
def test_translation(code: int, body: dict[str, Any], kind: type[errors.ApiError], retryable: bool) -> None:
    found = errors.from_response(code, {}, json.dumps(body).encode())
    assert type(found) is kind
    assert (found.status, found.reason, found.retryable) == (code, body.get("reason", ""), retryable)


def test_blocked_eviction_names_the_budget() -> None:
    found = errors.from_response(429, {}, json.dumps(BLOCKED).encode())
    assert isinstance(found, errors.DisruptionBlocked)
    assert found.budget == "web-pdb"
    assert "needs 2 healthy pods" in str(found)


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        pytest.param("3", {}, 3.0, id="header"),
        pytest.param(None, {"retryAfterSeconds": 7}, 7.0, id="details"),
        pytest.param("3", {"retryAfterSeconds": 7}, 3.0, id="header-wins"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", {}, None, id="date"),
        pytest.param(None, {}, None, id="none"),
    ],
)
def test_retry_after(header: str | None, details: dict[str, Any], seconds: float | None) -> None:
    headers = urllib3.HTTPHeaderDict({"retry-after": header} if header else {})
    found = errors.from_response(429, headers, json.dumps({"details": details}).encode())
    assert isinstance(found, errors.Throttled)
    assert found.retry_after == seconds


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>password=hunter2</html>", id="html"),
        pytest.param(b'{"data": "hunter2"', id="broken"),
        pytest.param(b'{"kind": "Secret", "data": {"password": "hunter2"}}', id="another-object"),
        pytest.param(b'["hunter2"]', id="list"),
        pytest.param(b"\xff\xfehunter2", id="not-text"),
        pytest.param(b"", id="empty"),
    ],
)
def test_a_body_never_gets_into_an_error(body: bytes) -> None:
    found = errors.from_response(502, {}, body)
    assert isinstance(found, errors.ServerError)
    assert "hunter2" not in f"{found} {found!r} {found.args} {vars(found)}"


def test_long_messages_are_cut_everywhere() -> None:
    found = errors.from_response(422, {}, json.dumps({"message": "x" * 10_000}).encode())
    assert len(found.message) == errors.MESSAGE_LIMIT
    assert len(str(found)) < errors.MESSAGE_LIMIT + 50
    assert len(repr(found)) < errors.MESSAGE_LIMIT + 50


@given(status=st.integers(300, 599), body=st.binary(max_size=200))
def test_anything_is_translated(status: int, body: bytes) -> None:
    assert errors.from_response(status, {}, body).status == status


POOL = urllib3.HTTPConnectionPool("api")
CONNECTION = urllib3.connection.HTTPConnection("api")


@pytest.mark.parametrize(
    ("raised", "timed_out", "maybe_applied"),
    [
        pytest.param(urllib3.exceptions.NewConnectionError(CONNECTION, "refused"), False, False, id="refused"),
        pytest.param(urllib3.exceptions.ConnectTimeoutError(CONNECTION, "slow"), True, False, id="connect-timeout"),
        pytest.param(urllib3.exceptions.ReadTimeoutError(POOL, "/", "slow"), True, True, id="read-timeout"),
        pytest.param(urllib3.exceptions.ProtocolError("cut"), False, True, id="cut"),
        pytest.param(TimeoutError(), True, True, id="socket-timeout"),
        pytest.param(ConnectionResetError(), False, True, id="reset"),
    ],
)
def test_transport(raised: Exception, timed_out: bool, maybe_applied: bool) -> None:
    found = errors.from_transport(raised)
    assert (found.timed_out, found.maybe_applied, found.retryable) == (timed_out, maybe_applied, True)
    assert str(found)

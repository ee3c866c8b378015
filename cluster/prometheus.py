"""One question to Prometheus, one answer: the instant query of its HTTP API.

Knows nothing about what is asked. Raises ApiError and nothing else, as a client of Kubernetes does. A redirect is not
followed, a body is read up to a limit and up to a deadline, and neither the body nor a name and password in the
address get into errors.
"""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote, urlencode, urlsplit

import msgspec
import urllib3
from urllib3.response import BaseHTTPResponse

from cluster import errors
from cluster.tolerant import Tolerant
from cluster.transport import CONNECT_TIMEOUT_SECONDS, PIECE_BYTES, TRANSPORT_ERRORS

PATH: Final = "/api/v1/query"
MAX_BYTES: Final = 64 << 20
"""Twice the largest answer that is asked for: 150,000 pods with some 200 bytes of labels each."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One row of an answer."""

    labels: Mapping[str, str]
    value: float
    """Finite and not negative; rows with another value are left out."""


class _Row(msgspec.Struct, frozen=True, gc=False):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: Literal["vector"]
    result: tuple[_Row, ...]


class _Success(msgspec.Struct, frozen=True):
    status: Literal["success"]
    data: _Data


class _Refusal(msgspec.Struct, frozen=True, rename="camel"):
    error_type: str = ""
    error: str = ""


_SUCCESS: Final = Tolerant(_Success)
_REFUSAL: Final = Tolerant(_Refusal)


class Prometheus:
    """At one address, http or https; https by the trust store of the system, which SSL_CERT_FILE replaces."""

    def __init__(self, address: str, *, timeout: float, now: Callable[[], float] = time.monotonic) -> None:
        """`timeout` in seconds, for each question as a whole."""
        self._timeout = timeout
        self._now = now
        self._url, self._headers = _destination(address)
        self._pool = urllib3.PoolManager(cert_reqs="CERT_REQUIRED", maxsize=1)

    def query(self, expression: str) -> tuple[Sample, ...]:
        """What the expression, which must be an instant vector, comes to now."""
        until = self._now() + self._timeout
        try:
            response = self._pool.request(
                "GET",
                f"{self._url}?{urlencode({'query': expression})}",
                headers=self._headers,
                timeout=urllib3.Timeout(connect=min(self._timeout, CONNECT_TIMEOUT_SECONDS), read=self._timeout),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            body = self._body(response, until)
        except TRANSPORT_ERRORS as exc:
            raise errors.from_transport(exc) from exc
        if response.status != 200:
            raise _refused(response.status, body)
        return tuple(it for it in map(_sample, _SUCCESS.decode(body).data.result) if it is not None)

    def _body(self, response: BaseHTTPResponse, until: float) -> bytes:
        """The connection is used again only if everything was read."""
        try:
            return self._read(response, until)
        except BaseException:
            response.close()
            raise
        finally:
            response.release_conn()

    def _read(self, response: BaseHTTPResponse, until: float) -> bytes:
        found = bytearray()
        while piece := response.read1(PIECE_BYTES):
            found += piece
            if len(found) > MAX_BYTES:
                raise errors.Malformed(f"the answer is larger than {MAX_BYTES >> 20} MiB")
            if self._now() > until:
                raise errors.Unreachable(f"the answer took longer than {self._timeout:g} s", timed_out=True)
        return bytes(found)


def _destination(address: str) -> tuple[str, Mapping[str, str]]:
    """Where to ask, and with which headers: a name and password are sent as such and stand in no URL of ours."""
    parts = urlsplit(address)
    _, _, place = parts.netloc.rpartition("@")
    headers = urllib3.make_headers(accept_encoding="identity", user_agent="spotshift")
    if parts.username is not None:
        known = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {base64.b64encode(known.encode()).decode()}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}{PATH}", headers


def _refused(status: int, body: bytes) -> errors.ApiError:
    """With the sentence of Prometheus, if it was Prometheus who answered."""
    try:
        said = _REFUSAL.decode(body)
    except errors.Malformed:
        said = _Refusal()
    message = said.error or "the answer is not one of Prometheus"
    return errors.from_status(errors.Status(message=message, reason=said.error_type), status=status)


def _sample(row: _Row) -> Sample | None:
    """None for what no amount can be: NaN and its like."""
    try:
        value = float(row.value[1])
    except ValueError:
        return None
    return Sample(row.metric, value) if math.isfinite(value) and value >= 0 else None

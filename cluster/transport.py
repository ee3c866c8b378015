"""One request out, one answer back: URL, headers, timeouts, rate limit, credentials, error translation.

Knows nothing about resources. Bodies are neither logged nor put into errors. Nothing is retried, with one
exception: after a 401 the credentials are read again and the request is sent once more, because a token file may
have been replaced a moment ago.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import urllib3
import urllib3.exceptions

from cluster import auth, errors, ratelimit
from telemetry.meter import Meter
from telemetry.metrics import Metric

CONNECT_TIMEOUT_SECONDS = 5.0
"""A TCP and TLS handshake inside a cluster takes milliseconds; longer means the other side is gone."""

PIECE_BYTES = 1 << 16
"""Of a body that is read as it arrives; some items of a list."""

TRANSPORT_ERRORS = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)
"""Everything that can go wrong below HTTP."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to send, before server, credentials and timeouts are known."""

    verb: str
    """What Kubernetes calls it, for metrics: `list`, `evict`."""
    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Transport:
    """Sends requests over one connection pool. Safe to use from many threads."""

    def __init__(
        self,
        connection: auth.Connection,
        *,
        user_agent: str,
        bucket: ratelimit.Bucket | None,
        on_warning: Callable[[str], None] | None,
        meter: Meter | None,
        now: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._user_agent = user_agent
        self._bucket = bucket
        self._on_warning = on_warning
        self._meter = meter
        self._now = now

    def send(self, request: Request, *, timeout: float) -> bytes:
        """Body of the answer, or an ApiError."""
        self._wait_turn()
        response = self._timed(request, timeout, preload=True)
        self._tell_warnings(response)
        if response.status >= 300:
            raise errors.from_response(response.status, response.headers, response.data)
        return response.data

    def stream(self, request: Request, *, timeout: float, read_timeout: float) -> urllib3.response.BaseHTTPResponse:
        """An open answer whose body the caller reads and closes; `timeout` holds until the headers are here."""
        response = self._timed(request, timeout, preload=False)
        if response.status >= 300:
            raise errors.from_response(response.status, response.headers, _drain(response))
        self._tell_warnings(response)
        sock = getattr(response.connection, "sock", None)
        if sock is not None:
            sock.settimeout(read_timeout)
        return response

    def pieces(self, request: Request, *, timeout: float) -> Iterator[bytes]:
        """Body of the answer as it arrives, or an ApiError; `timeout` holds until the headers are here and for every
        silence after that. Timed up to its end.
        """
        self._wait_turn()
        began = self._now()
        try:
            response = self._authorized(request, timeout, preload=False)
            self._tell_warnings(response)
            if response.status >= 300:
                raise errors.from_response(response.status, response.headers, _drain(response))
            yield from _arriving(response)
        finally:
            self._observe(request, began)

    def close(self) -> None:
        """Close idle connections."""
        self._connection.pool.clear()

    def _wait_turn(self) -> None:
        waited = self._bucket.take() if self._bucket else 0.0
        if waited and self._meter:
            self._meter.inc(Metric.THROTTLE_SECONDS, waited)

    def _timed(self, request: Request, timeout: float, *, preload: bool) -> urllib3.response.BaseHTTPResponse:
        """Measured however it ends: a server that is slow to fail is slow."""
        began = self._now()
        try:
            return self._authorized(request, timeout, preload=preload)
        finally:
            self._observe(request, began)

    def _observe(self, request: Request, began: float) -> None:
        if self._meter:
            self._meter.observe(Metric.REQUEST_SECONDS, self._now() - began, verb=request.verb)

    def _authorized(self, request: Request, timeout: float, *, preload: bool) -> urllib3.response.BaseHTTPResponse:
        response = self._once(request, timeout, preload=preload)
        if response.status == 401 and self._connection.credentials.reload():
            _drain(response)
            response = self._once(request, timeout, preload=preload)
        if response.status == 401:
            _drain(response)
            raise errors.Unauthorized(
                f"{self._connection.server} refused us: {self._connection.credentials.describe()}",
                status=401,
                reason="Unauthorized",
            )
        return response

    def _once(self, request: Request, timeout: float, *, preload: bool) -> urllib3.response.BaseHTTPResponse:
        headers = self._headers(request)
        try:
            return self._connection.current_pool().request(
                request.method,
                self._connection.server + request.target,
                body=request.body,
                headers=headers,
                timeout=urllib3.Timeout(connect=min(timeout, CONNECT_TIMEOUT_SECONDS), read=timeout),
                retries=False,
                redirect=False,
                preload_content=preload,
            )
        except TRANSPORT_ERRORS as exc:
            raise errors.from_transport(exc) from exc

    def _headers(self, request: Request) -> Mapping[str, str]:
        headers = {"Accept": request.accept, "User-Agent": self._user_agent}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        authorization = self._connection.credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        return headers

    def _tell_warnings(self, response: urllib3.response.BaseHTTPResponse) -> None:
        if self._on_warning is None:
            return
        for header in response.headers.getlist("Warning"):
            self._on_warning(warning_text(header))


def warning_text(header: str) -> str:
    """The sentence inside `299 - "sentence"`; whatever else comes is passed on as it is."""
    _, quote, rest = header.partition('"')
    text, end, _ = rest.rpartition('"')
    return text.replace('\\"', '"').replace("\\\\", "\\") if quote and end else header


def _arriving(response: urllib3.response.BaseHTTPResponse) -> Iterator[bytes]:
    """The connection is used again only if everything was read."""
    try:
        yield from response.stream(PIECE_BYTES)
    except TRANSPORT_ERRORS as exc:
        response.close()
        raise errors.from_transport(exc) from exc
    except BaseException:
        response.close()
        raise
    finally:
        response.release_conn()


def _drain(response: urllib3.response.BaseHTTPResponse) -> bytes:
    """Read a refused stream to its end, so that the connection can be used again."""
    try:
        return response.data
    except TRANSPORT_ERRORS:
        return b""
    finally:
        response.release_conn()

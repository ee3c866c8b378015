"""Every way a call to the Kubernetes API can end badly, as one tree with one translator.

Errors are outcomes: callers branch on the class and on `retryable`, never on the text. The text is one short
sentence for people, taken from the server's Status message; the body itself is never kept, it may hold secrets.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import ClassVar

import msgspec
import urllib3.exceptions

MESSAGE_LIMIT = 400
"""Characters kept of a server's message: enough for the first causes of an invalid object."""


class ApiError(Exception):
    """A call that did not do what it was asked to do."""

    retries: ClassVar[bool] = False

    def __init__(self, message: str, *, status: int = 0, reason: str = "", retry_after: float | None = None) -> None:
        self.message = _shorten(message)
        super().__init__(self.message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        """Seconds the server asked to wait, from the header or from the Status details."""

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later although its sender changed nothing."""
        return self.retries

    def __str__(self) -> str:
        head = " ".join(part for part in (str(self.status or ""), self.reason) if part)
        return f"{head}: {self.message}" if head else self.message


class NotFound(ApiError):
    """404: the object, or the whole resource, is not there."""


class Conflict(ApiError):
    """409: the object changed, or a UID or resourceVersion precondition does not hold. Read again first."""


class AlreadyExists(Conflict):
    """409 on create: the name is taken."""


class DisruptionBlocked(ApiError):
    """429 on an eviction because a PodDisruptionBudget has no room. Retried on budget events, not on a timer."""

    retries = True

    def __init__(self, message: str, *, budget: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, status=429, reason="TooManyRequests", retry_after=retry_after)
        self.budget = budget
        """Name of the PodDisruptionBudget, when the server named it."""


class Throttled(ApiError):
    """429 for any other reason: the server wants fewer requests."""

    retries = True


class Gone(ApiError):
    """410: a resourceVersion or continue token is too old. List again."""


class Forbidden(ApiError):
    """403: authorisation, admission or a terminating namespace said no."""


class Unauthorized(ApiError):
    """401 although the credentials were read again: they are wrong or have expired."""


class Invalid(ApiError):
    """400, 422 and the other answers that blame the request."""


class Malformed(ApiError):
    """The answer arrived but is not what the API promises, such as a proxy's HTML page with status 200."""


class Unreadable(Malformed):
    """One object that does not have the type it should have. Says which one it is, as far as that can be read.

    Its neighbours are fine, so whoever reads many leaves it out and goes on.
    """

    def __init__(
        self, *, namespace: str = "", name: str = "", uid: str = "", version: str = "", event: str = ""
    ) -> None:
        """`event` is the type of the watch event it came in; nothing of the body is kept."""
        super().__init__("an object cannot be decoded")
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.version = version
        self.event = event


class ServerError(ApiError):
    """5xx: the server could not, at least not now."""

    retries = True


class MultipleBudgets(ServerError):
    """500 on an eviction because several PodDisruptionBudgets select the pod: nobody can evict it."""

    retries = False


class Unreachable(ApiError):
    """No answer: refused, cut, timed out, or TLS failed."""

    retries = True

    def __init__(self, message: str, *, timed_out: bool = False, maybe_applied: bool = True) -> None:
        super().__init__(message, reason="Unreachable")
        self.timed_out = timed_out
        self.maybe_applied = maybe_applied
        """False only if no connection was made, so that the server cannot have acted on the request."""


class _Cause(msgspec.Struct, frozen=True):
    reason: str | None = None
    message: str | None = None


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, frozen=True):
    """The part of meta/v1 Status that explains a failure."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: ServerError,
    409: Conflict,
    410: Gone,
    429: Throttled,
}
_BUDGET = re.compile(r"disruption budget (\S+)")
_DECODER = msgspec.json.Decoder(Status)


def from_response(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Translate an answer of 300 or more."""
    try:
        found = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = Status(message="the answer is not a Kubernetes Status")
    return from_status(found, status=status, header=headers.get("Retry-After"))


def from_status(found: Status, *, status: int | None = None, header: str | None = None) -> ApiError:
    """Translate a Status object: the body of a failed call, or the object of an ERROR event in a watch."""
    code = status or found.code or 500
    message = found.message or "the server gave no message"
    wait = _wait(header, found)
    if code == 429 and _caused_by_budget(found):
        return _disruption_blocked(found, message, wait)
    kind = _kind(code, found.reason or "", message)
    return kind(message, status=code, reason=found.reason or "", retry_after=wait)


def from_transport(exc: Exception) -> Unreachable:
    """Translate what urllib3, ssl or the socket raised."""
    unsent = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
    timed_out = isinstance(exc, (urllib3.exceptions.TimeoutError, TimeoutError)) and not isinstance(
        exc, urllib3.exceptions.NewConnectionError
    )
    text = str(exc) or type(exc).__name__
    return Unreachable(text, timed_out=timed_out, maybe_applied=not isinstance(exc, unsent))


def _kind(code: int, reason: str, message: str) -> type[ApiError]:
    if reason == "AlreadyExists":
        return AlreadyExists
    if code == 500 and "more than one PodDisruptionBudget" in message:
        return MultipleBudgets
    return _BY_STATUS.get(code) or (ServerError if code >= 500 else Invalid)


def _caused_by_budget(found: Status) -> bool:
    causes = found.details.causes if found.details else None
    return any(cause.reason == "DisruptionBudget" for cause in causes or ())


def _disruption_blocked(found: Status, message: str, wait: float | None) -> DisruptionBlocked:
    causes = (found.details.causes if found.details else None) or ()
    told = next((c.message for c in causes if c.reason == "DisruptionBudget" and c.message), message)
    named = _BUDGET.search(told)
    return DisruptionBlocked(told, budget=named.group(1) if named else None, retry_after=wait)


def _wait(header: str | None, found: Status) -> float | None:
    try:
        wait = float(header) if header else (found.details.retry_after_seconds if found.details else None)
    except ValueError:  # an HTTP date: Kubernetes never sends one, a proxy may
        return None
    return wait if wait is not None and 0 <= wait < math.inf else None


def _shorten(message: str) -> str:
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"

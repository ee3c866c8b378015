"""What the fault proxy can do to a request, and to which ones. Pure: no sockets here."""

import random
import re
import threading
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import parse_qs, urlsplit

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]


@dataclass(frozen=True, slots=True)
class Delay:
    """Forward the request so many seconds later."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Slow:
    """Pass the answer on at so many bytes a second."""

    bytes_per_second: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Break the connection in the middle of the answer.

    After the head and so many bytes of the body; None: before the head, so that the request took effect but
    nobody heard of it.
    """

    after_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Stop sending in the middle of the answer but keep the connection open. Counts as `Cut` does."""

    after_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer in the place of the apiserver with an error; the request does not reach it."""

    status: int
    retry_after: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Blackhole:
    """Swallow the request: nothing is forwarded, nothing is answered, the connection stays open."""


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """Hold one request before it is forwarded, or its answer before it is passed on, until the gate is opened.

    `reached` tells that it is held, so that a test can act at exactly this moment.
    """

    after: bool = False
    """The request took effect; its answer is held."""
    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)


Fault = Delay | Slow | Cut | Hold | Answer | Blackhole | Gate

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request as Kubernetes' own authorisation sees it."""

    verb: str
    resource: str
    """Plural name, with the subresource: `pods`, `pods/eviction`. Empty for paths outside the API."""
    path: str
    """With the query."""
    body: bytes = field(default=b"", compare=False, repr=False)


@dataclass(slots=True)
class Rule:
    """Do `fault` to requests that match; a rule with a count is spent after so many."""

    fault: Fault
    verb: str | None = None
    resource: str | None = None
    path: re.Pattern[str] | None = None
    body: re.Pattern[bytes] | None = None
    probability: float = 1.0
    remaining: int | None = None
    hits: int = 0

    def matches(self, request: Request) -> bool:
        return (
            self.remaining != 0
            and self.verb in (None, request.verb)
            and self.resource in (None, request.resource)
            and (self.path is None or self.path.search(request.path) is not None)
            and (self.body is None or self.body.search(request.body) is not None)
        )


@dataclass(slots=True)
class Rules:
    """The rules in force; set and asked from different threads."""

    rng: random.Random = field(default_factory=random.Random)
    _rules: list[Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self,
        fault: Fault,
        *,
        verb: Verb | None = None,
        resource: str | None = None,
        path: str | None = None,
        body: str | None = None,
        probability: float = 1.0,
        count: int | None = None,
    ) -> Rule:
        """From now on; `hits` of the returned rule tells how often it was used."""
        if not 0 <= probability <= 1:
            raise ValueError(f"probability: {probability} is not between 0 and 1")
        if count is not None and count < 1:
            raise ValueError(f"count: {count} is not a positive number")
        if verb is not None and verb not in get_args(Verb):
            raise ValueError(f"verb: {verb!r} is not one of {', '.join(get_args(Verb))}")
        where = re.compile(path) if path else None
        what = re.compile(body.encode()) if body else None
        rule = Rule(fault, verb, resource, where, what, probability, count)
        with self._lock:
            self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        with self._lock:
            self._rules = [kept for kept in self._rules if kept is not rule]

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def choose(self, request: Request) -> Fault | None:
        """The fault of the first rule that matches and whose dice fall, counted."""
        with self._lock:
            for rule in self._rules:
                if rule.matches(request) and self.rng.random() < rule.probability:
                    rule.hits += 1
                    if rule.remaining is not None:
                        rule.remaining -= 1
                    return rule.fault
        return None


_WITH_NAME = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_WITHOUT_NAME = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_OF_A_NAMESPACE = ("finalize", "status")
"""Parts of a namespace itself; any other third part is a resource inside it."""


def parse(method: str, target: str, body: bytes = b"") -> Request:
    """Tell verb and resource from method and target, by the rules of Kubernetes' request info."""
    url = urlsplit(target)
    parts = [part for part in url.path.split("/") if part]
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:] if parts[:1] == ["apis"] else []
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _OF_A_NAMESPACE:
        rest = rest[2:]
    if not rest:
        return Request(_WITH_NAME.get(method, method.lower()), "", target, body)
    resource = "/".join((rest[0], *rest[2:3]))
    if len(rest) > 1:
        return Request(_WITH_NAME.get(method, method.lower()), resource, target, body)
    watch = parse_qs(url.query, keep_blank_values=True).get("watch", ["false"])[0]
    if method == "GET" and watch.lower() not in ("false", "0"):
        return Request("watch", resource, target, body)
    return Request(_WITHOUT_NAME.get(method, method.lower()), resource, target, body)

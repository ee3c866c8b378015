"""Which Kubernetes Events are worth sending: repeats become one series, and nobody may flood. Pure, told
the time.

The same thing said again about the same object within the window is counted, not sent again; the count is
brought up to date at most every `refresh` seconds. New things are limited per object and in total. What
is refused is counted by its cause, never silently lost.
"""

import enum
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from cluster.meta import micro_time

NOTE_BYTES: Final = 1024
"""The API refuses longer notes."""
NAME_BYTES: Final = 200
"""Of the object's name; with the suffix the event's name stays under the limit of 253."""
_WORD: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,127}")


class Severity(enum.StrEnum):
    """The two types of events that Kubernetes knows."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Drop(enum.StrEnum):
    """Why an event was not sent."""

    QUEUE_FULL = "queueFull"
    OBJECT_LIMIT = "objectLimit"
    TOTAL_LIMIT = "totalLimit"
    REFUSED = "refused"
    UNDELIVERED = "undelivered"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Subject:
    """The object an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    def reference(self) -> dict[str, str]:
        """As the API wants it."""
        full = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
        }
        return {name: value for name, value in full.items() if value}


@dataclass(frozen=True, slots=True)
class Topic:
    """What can be said; made once as a constant, so a reason that the API would refuse fails at import."""

    reason: str
    """Why, as one word: Evicted, Refused."""
    action: str
    """What was done or tried: Evict, Plan."""
    severity: Severity = Severity.NORMAL

    def __post_init__(self) -> None:
        for word in (self.reason, self.action):
            if not _WORD.fullmatch(word):
                raise ValueError(f"{word!r} is not one CamelCase word of at most 128 letters and digits")


@dataclass(frozen=True, slots=True)
class Said:
    """One event as a caller records it."""

    subject: Subject
    topic: Topic
    note: str
    at: datetime
    related: Subject | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for what belongs to one series."""
        return self.subject, self.topic, self.note, self.related


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is sent."""

    per_object_burst: int = 10
    per_object_seconds: float = 60.0
    """One more new event of the same severity for the same object after so many seconds."""
    total_burst: int = 300
    total_per_second: float = 10.0
    """For all objects but nodes, which are few and tell of what happens to many pods at once."""
    window: float = 600.0
    """Seconds without a repeat after which a series is over."""
    refresh: float = 30.0
    """Seconds between two updates of one series."""
    objects: int = 4096
    """Objects and series remembered; the longest unused are forgotten first."""


@dataclass(frozen=True, slots=True)
class Send:
    """One request: create the event, or count its series up."""

    said: Said
    name: str
    count: int = 1
    last: datetime | None = None


@dataclass(slots=True)
class _Series:
    said: Said
    name: str
    count: int = 1
    sent: int = 1
    last: datetime | None = None
    repeated_at: float = 0.0
    sent_at: float = 0.0


@dataclass(slots=True)
class _Tokens:
    left: float
    at: float

    def take(self, now: float, *, burst: float, per_second: float) -> bool:
        self.left = min(burst, self.left + (now - self.at) * per_second)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass(slots=True)
class EventLog:
    """The memory behind the rule."""

    limits: Limits
    prefix: str
    """Makes names unique between processes and restarts."""
    _series: OrderedDict[tuple[object, ...], _Series] = field(default_factory=OrderedDict)
    _objects: OrderedDict[tuple[Subject, Severity], _Tokens] = field(default_factory=OrderedDict)
    _total: _Tokens | None = None
    _count: int = 0

    def offer(self, said: Said, now: float) -> Send | Drop | None:
        """What to do with one event: send it now, drop it, or nothing because it only counts a series up."""
        series = self._series.get(said.key)
        if series is not None and now - series.repeated_at < self.limits.window:
            series.count += 1
            series.last, series.repeated_at = said.at, now
            self._series.move_to_end(said.key)
            return None
        refusal = self._refusal(said.subject, said.topic.severity, now)
        if refusal is not None:
            return refusal
        self._count += 1
        name = f"{_name(said.subject.name)}.{self.prefix}{self._count:x}"
        self._series[said.key] = _Series(said, name, repeated_at=now, sent_at=now)
        _trim(self._series, self.limits.objects)
        return Send(said, name)

    def due(self, now: float, *, final: bool = False) -> Iterator[Send]:
        """Series whose counts should be brought up to date now; all of them when it is the last chance."""
        for key, series in list(self._series.items()):
            over = now - series.repeated_at >= self.limits.window
            if series.count > series.sent and (final or over or now - series.sent_at >= self.limits.refresh):
                series.sent, series.sent_at = series.count, now
                yield Send(series.said, series.name, series.count, series.last)
            if over:
                self._series.pop(key, None)  # the receiver may have forgotten it meanwhile

    def next_due(self) -> float | None:
        """When `due` will have something to send."""
        waiting = [s.sent_at + self.limits.refresh for s in self._series.values() if s.count > s.sent]
        return min(waiting, default=None)

    def forget(self, said: Said) -> None:
        """The server does not have it (any more): the next time it is said, it is new."""
        self._series.pop(said.key, None)

    def _refusal(self, subject: Subject, severity: Severity, now: float) -> Drop | None:
        """Warnings have a limit of their own: what goes well must not drown what does not."""
        limits = self.limits
        tokens = self._objects.setdefault((subject, severity), _Tokens(limits.per_object_burst, now))
        self._objects.move_to_end((subject, severity))
        _trim(self._objects, limits.objects)
        if not tokens.take(now, burst=limits.per_object_burst, per_second=1 / limits.per_object_seconds):
            return Drop.OBJECT_LIMIT
        if subject.kind == "Node":
            return None
        if self._total is None:
            self._total = _Tokens(limits.total_burst, now)
        if not self._total.take(now, burst=limits.total_burst, per_second=limits.total_per_second):
            return Drop.TOTAL_LIMIT
        return None


def render(send: Send, *, controller: str, instance: str) -> dict[str, Any]:
    """The object to create."""
    said = send.said
    body: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": send.name, "namespace": namespace_of(said.subject)},
        "eventTime": micro_time(said.at),
        "reportingController": controller,
        "reportingInstance": instance[:128],
        "action": said.topic.action,
        "reason": said.topic.reason,
        "type": str(said.topic.severity),
        "regarding": said.subject.reference(),
        "note": cut(said.note),
    }
    if said.related is not None:
        body["related"] = said.related.reference()
    return body | (series(send) if send.count > 1 else {})


def series(send: Send) -> dict[str, Any]:
    """The part of the object that changes when a series grows."""
    return {"series": {"count": send.count, "lastObservedTime": micro_time(send.last or send.said.at)}}


def namespace_of(subject: Subject) -> str:
    """Events about cluster-wide objects live in `default`; the API insists."""
    return subject.namespace or "default"


def cut(note: str) -> str:
    """At most 1024 bytes, never in the middle of a character."""
    raw = note.encode(errors="replace")
    if len(raw) <= NOTE_BYTES:
        return raw.decode()
    return raw[: NOTE_BYTES - 3].decode(errors="ignore") + "\u2026"


def _name(name: str) -> str:
    return name[:NAME_BYTES].rstrip("-.").lower() or "object"


def _trim(memory: OrderedDict[Any, Any], size: int) -> None:
    while len(memory) > size:
        memory.popitem(last=False)

"""A write that one look at the cluster asks for, with what people should hear of it.   Values only.

Each carries its own precondition, so that a process whose picture is old changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cluster.eventlog import Subject, Topic
from cluster.objects import Pod
from cluster.resources import Resource
from telemetry.catalogue import Log
from telemetry.metrics import Metric


class Verb(StrEnum):
    """What is done to the object."""

    CREATE = "create"
    PATCH = "patch"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Said:
    """An Event."""

    subject: Subject
    topic: Topic
    note: str


def pod_subject(pod: Pod) -> Subject:
    """For an Event of a pod."""
    meta = pod.metadata
    return Subject("v1", "Pod", meta.name, meta.namespace, meta.uid)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log."""

    entry: Log
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One write. A patch carries its preconditions in its body."""

    verb: Verb
    resource: Resource
    name: str
    namespace: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    uid: str = ""
    """Of the object, where it must still be this one."""
    version: str = ""
    """For a deletion: the object must not have changed since."""
    grace_period_seconds: int | None = None
    """For the deletion of a pod: seconds it has to stop; None: its own."""
    events: tuple[Said, ...] = ()
    lines: tuple[Line, ...] = ()
    counts: tuple[Metric, ...] = ()
    """Counted once it was sent."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The object it is about: of one object at most one request is under way."""
        return self.resource.plural, self.namespace, self.name

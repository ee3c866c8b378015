"""What the machine can ask for: one small step of a migration, each safe to repeat.   Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cluster.objects import OwnerReference


@dataclass(frozen=True, slots=True)
class Adopt:
    """Put our finalizer on the migration, before anything else is done for it."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write to the status, only if nobody has written to it meanwhile. This is how a step is left and an action
    is announced: whoever takes over reads here what may have happened.
    """

    status: Mapping[str, Any]
    event: str = ""
    """What to tell people, if this is worth an Event; the first word is its reason."""
    late: bool = False
    """The step ran out of time."""
    ready: bool = False
    """Its replacement serves, for the first time; for those who are told."""


@dataclass(frozen=True, slots=True)
class MarkPod:
    """Set our labels and annotations on a pod; None removes a key."""

    name: str
    uid: str
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    version: str = ""
    """The pod must not have changed since; empty: it may have, for marks can be set at any time."""


@dataclass(frozen=True, slots=True)
class MarkWorkload:
    """Say on the workload itself, never on its template, which move is under way; None takes it back."""

    kind: str
    name: str
    uid: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Evict:
    """Ask the API to evict the pod, if it is still this very pod."""

    name: str
    uid: str
    version: str
    """The pod must not have changed since: taking our marks off it is how a move is called off for everybody."""
    grace_period_seconds: int | None = None
    copy: tuple[str, str] | None = None
    """Name and UID of a copy that must still be there and Ready: nothing else takes the place of the pod."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Set the number of replicas, if it is the one expected and nobody else has taken it over."""

    kind: str
    name: str
    uid: str
    before: int
    after: int
    generation: int | None = None
    """Raise it only while the workload has not been changed since this generation."""
    mark: tuple[str, str] | None = None
    """Raise it only while the workload carries this label: taking it off calls the move off for everybody."""
    owned: bool = False
    """Lower it only while the number is the one that we wrote."""
    lowest: tuple[str, str, int] | None = None
    """Name, UID and deletion cost of a pod that must still be Ready and have this cost."""


@dataclass(frozen=True, slots=True)
class CreateCopy:
    """Create a copy of a pod under this name, if it is still this very pod."""

    source: str
    uid: str
    name: str


@dataclass(frozen=True, slots=True)
class RemoveCopy:
    """Evict a copy that we made: it has not taken over, so that its budget has room, and no other right is needed."""

    name: str
    uid: str
    version: str
    """As it was seen: a second request, of a process that had stood still, finds it changed."""
    original: tuple[str, str, str] | None = None
    """For a copy that no move answers for: name and UID of its original, which must be there and not carry this mark,
    or else a move relies on the copy after all."""


@dataclass(frozen=True, slots=True)
class SeekCopy:
    """Ask the API for the copy of a pod, and evict it: it may be there though no watch has told of it."""

    name: str
    uid: str
    """Of the original."""


@dataclass(frozen=True, slots=True)
class Release:
    """Take our finalizer off: nothing of this migration is left in the cluster."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do until something changes, or until then."""

    until: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """Over, and nothing left to clear away."""


Action = (
    Adopt
    | Write
    | MarkPod
    | MarkWorkload
    | Evict
    | Scale
    | CreateCopy
    | RemoveCopy
    | SeekCopy
    | Release
    | Wait
    | Done
)


def begins(action: Action) -> bool:
    """Whether it takes a pod away or asks for one more. What takes that back, or writes it down, does not."""
    raises = isinstance(action, Scale) and action.after > action.before
    return raises or isinstance(action, Evict | CreateCopy)


def takes_marks_off(action: Action) -> bool:
    """Whether it only removes marks of a move. A deletion cost is none: that has a value of its own to go back to."""
    if isinstance(action, MarkPod):
        return bool(action.labels) and not any(action.labels.values())
    return isinstance(action, MarkWorkload) and action.value is None


def owner_json(owner: OwnerReference | None) -> dict[str, Any] | None:
    """A reference as the status holds it."""
    if owner is None:
        return None
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": owner.controller,
    }

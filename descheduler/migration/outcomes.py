"""What became of a request, and what all requests have in common.   Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from cluster.objects import Pod, PodMigration

MANAGER: Final = "spotshift-descheduler"
REQUEST_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Shown:
    """A workload as the answer showed it; None is what it did not show."""

    uid: str
    version: str
    labels: Mapping[str, str] | None = None
    replicas: int | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The request was accepted; what came back, where that is known at once."""

    migration: PodMigration | None = None
    pod: Pod | None = None
    workload: Shown | None = None
    absent: bool = False
    """What was sought is not there."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """The world is no longer as it was when this was decided. Look again."""

    why: str
    gone: bool = False
    """What the request was about does not exist any more."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an action had no effect."""

    why: str
    counts: bool = True
    """Whether it uses up one of the attempts."""
    blocked: bool = False
    """A disruption budget said no."""
    budget: str = ""
    """Its name, where the API gave it."""
    ours: bool = False
    """It is a temporary one of our own, at its work: the others of the workload have to wait, and nobody to hear."""
    final: bool = False
    """Trying again cannot help."""
    several: bool = False
    """More than one disruption budget selected the pod."""
    taken: bool = False
    """Another pod has the name that a copy should get."""
    eviction: bool = False
    """It was an eviction that failed."""
    retry_after: timedelta = timedelta()


Outcome = Done | Overtaken | Failure

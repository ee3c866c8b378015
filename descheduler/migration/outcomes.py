"""What became of a request, and what all requests have in common.   Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cluster.objects import Pod, PodMigration
from descheduler.migration.machine import Failure

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


Outcome = Done | Overtaken | Failure

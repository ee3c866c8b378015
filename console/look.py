"""One look at everything a view is made of: the state of the cluster, the settings in force, who leads.

`take` lists each kind once. Whoever follows the cluster instead keeps a state by watches (`console.following`) and
makes the same `Look` of it, so that the views do not know the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cluster.client import Client
from console import door, installation
from console.door import Door
from console.installation import InForce, Leader
from descheduler import listing
from descheduler.gathered import Gap, Gathered
from descheduler.state import ClusterState
from descheduler.usage import Samples
from policy import keys
from policy.keys import Keys
from policy.settings import Settings


@dataclass(frozen=True, slots=True)
class Look:
    """The cluster at one moment."""

    gathered: Gathered
    in_force: InForce
    leader: Leader | str
    """A text says why it is not known who leads."""
    installed: bool
    """Whether the cluster knows PodMigrations."""
    now: datetime

    @property
    def state(self) -> ClusterState:
        """What the planner reads."""
        return self.gathered.state

    @property
    def settings(self) -> Settings:
        """Those in force."""
        return self.in_force.settings

    @property
    def keys(self) -> Keys:
        """Our keys under the prefix of the settings."""
        return keys.under(self.settings.label_prefix)

    @property
    def assumed(self) -> tuple[str, ...]:
        """What was taken for granted because it could not be seen."""
        gaps = tuple(str(gap) for gap in self.gathered.gaps)
        unknown = self.in_force.unknown
        return gaps if not unknown else (*gaps, f"settings: {unknown}; assumed: the defaults")


def take(door_: Door, now: datetime, *, system: str, file: Path | None = None) -> Look:
    """Raises ApiError if the cluster does not answer, or does not show its nodes and pods."""
    client = door_.client
    in_force = installation.settings(client, system, file)
    return Look(
        listing.gather(client, in_force.settings),
        in_force,
        installation.leader(client, system),
        door.is_installed(client),
        now,
    )


@dataclass(frozen=True, slots=True)
class Around:
    """What no watch tells, as of when it was asked for; replaced as a whole."""

    in_force: InForce
    leader: Leader | str
    usage: Samples | None
    installed: bool

    def look(self, state: ClusterState, gaps: tuple[Gap, ...], now: datetime) -> Look:
        """The cluster of a state that is kept by watches."""
        return Look(Gathered(state, 0, gaps, self.usage), self.in_force, self.leader, self.installed, now)


def around(client: Client, *, system: str, file: Path | None = None) -> Around:
    """Ask for it. Raises ApiError if the cluster does not answer."""
    return Around(
        installation.settings(client, system, file),
        installation.leader(client, system),
        listing.usage(client),
        door.is_installed(client),
    )

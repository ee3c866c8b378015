"""One look at everything a view is made of: the state of the cluster, the settings in force, who leads.

`take` lists each kind once. Whoever follows the cluster instead keeps a state by watches (`console.following`), asks
for what is around it now and then, and makes the same `Look` of both, so that the views do not know the difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cluster.client import Client
from console import door, installation
from console.door import Unusable
from console.installation import InForce, Leader
from descheduler import listing
from descheduler.gathered import Gathered
from descheduler.state import ClusterState
from descheduler.usage import Samples
from policy import keys
from policy.keys import Keys
from policy.mistakes import names_like
from policy.settings import Mode, Settings

if TYPE_CHECKING:
    from console.session import Session  # the page looks too, and has no session

DEFAULTS: Final = "assumed: the defaults"


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
    def mode(self) -> str:
        """That of the settings; where those in force cannot be read, that of the last pass."""
        if not self.in_force.guessed:
            return str(self.settings.mode)
        last = self.leader.last_pass if isinstance(self.leader, Leader) else None
        return last.mode if last is not None and last.mode else "unknown"

    @property
    def held(self) -> str:
        """Why nothing of a plan is carried out at this time; empty if nothing keeps it."""
        if self.in_force.stopped:
            return f"nothing is moved while the emergency stop is set: {self.in_force.stopped}"
        return "the mode is observe: nothing is moved" if self.mode == Mode.OBSERVE else ""

    @property
    def unseen(self) -> tuple[str, ...]:
        """What was taken for granted because it could not be seen."""
        gaps = tuple(str(gap) for gap in self.gathered.gaps)
        unknown = self.in_force.unknown
        return gaps if not unknown else (*gaps, f"settings: {unknown}; {DEFAULTS}")

    @property
    def assumed(self) -> tuple[str, ...]:
        """That, and what was taken for granted because it is wrong."""
        wrong = (f"settings: {self.in_force.source}: {it}; {DEFAULTS}" for it in self.in_force.mistakes)
        return (*self.unseen, *wrong)


@dataclass(frozen=True, slots=True)
class Around:
    """What no watch tells, as of when it was asked for; replaced as a whole."""

    in_force: InForce
    leader: Leader | str
    usage: Samples | None
    installed: bool

    def look(self, gathered: Gathered, now: datetime) -> Look:
        """The cluster of a state, whether it was listed or is kept by watches."""
        seen = dataclasses.replace(gathered, usage=self.usage)
        return Look(seen, self.in_force, self.leader, self.installed, now)


def around(client: Client, now: datetime, *, system: str, file: Path | None = None) -> Around:
    """Ask for it. Raises ApiError if the cluster does not answer."""
    leader = installation.leader(client, system)
    in_force = installation.settings(client, system, file, leader=leader, now=now)
    return Around(in_force, leader, listing.usage(client, in_force.settings), door.is_installed(client))


def take(session: Session) -> Look:
    """For a command that looks once; what is wrong with the settings is said on standard error.

    Raises ApiError if the cluster does not answer, or does not show its nodes and pods.
    """
    options, client = session.options, session.door.client
    found = around(client, session.now, system=options.system_namespace, file=options.settings)
    for line in found.in_force.warnings:
        session.warn(line)
    return found.look(listing.listed(client, found.in_force.settings), session.now)


def check_namespace(name: str, seen: Look) -> None:
    """That `-n` names one that is there, for what would show nothing of another and not say why. Where none are known
    they may not be listed, and nobody can tell.
    """
    check_known(name, seen.state.namespaces)


def check_known(name: str, known: Collection[str]) -> None:
    """The same for who knows only their names."""
    if name and known and name not in known:
        hint = names_like(name, known)
        raise Unusable(f"there is no namespace {name}" + (f" ({hint})" if hint else ""))

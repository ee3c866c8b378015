"""Reads what an installation says of itself: the settings in force, the emergency stop, who leads, the last pass.

Nothing here fails because a person may not see a part of it, or because a part of it is wrong: that is said in words,
and the defaults stand in for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cluster import election, errors
from cluster.client import Client
from cluster.meta import ObjectMeta, Part
from cluster.objects import Lease
from cluster.resources import CONFIGMAPS, LEASES
from console.door import Unusable
from descheduler import last_pass
from descheduler.last_pass import LastPass
from policy import keys, names, settings_load, values
from policy.mistakes import InvalidSettings
from policy.settings import Settings

STANDING_IN: Final = (
    "what follows goes by the default settings instead; a descheduler that runs keeps the last version that was good"
)


class ConfigMap(Part, frozen=True):
    """The settings as they are stored."""

    metadata: ObjectMeta = ObjectMeta()
    data: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class InForce:
    """The settings that a command goes by."""

    settings: Settings
    source: str
    """Where they come from, for people."""
    mistakes: tuple[str, ...] = ()
    """What is wrong with them; then the defaults stand in, under the prefix of who leads, else the one that they ask
    for, and a running process keeps the last good ones."""
    unsure: str = ""
    """Why they do not tell under which prefix our keys are; then nothing may be written under one."""
    stopped: str = ""
    """Where the emergency stop stands, if it is set; that of the installation, wherever the settings come from."""
    stop_key: str = ""
    """The annotation in which it stands."""
    unknown: str = ""
    """Why they could not be read; then the defaults stand in."""
    absent: str = ""
    """The ConfigMap that is not there; then the defaults stand in, and a running process keeps what it has read."""

    @property
    def guessed(self) -> bool:
        """Whether what runs goes by others: the defaults stand in here."""
        return bool(self.mistakes or self.unknown or self.absent)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with them and what is gone by instead, for standard error; nothing if they are good."""
        if not self.mistakes:
            return ()
        return (*(f"{self.source}: {mistake}" for mistake in self.mistakes), STANDING_IN)


@dataclass(frozen=True, slots=True)
class Leader:
    """Who holds the Lease of the descheduler."""

    holder: str
    since: datetime | None
    renewed: datetime | None
    lasts: timedelta
    transitions: int
    last_pass: LastPass | None

    def leads(self, now: datetime) -> bool:
        """Whether it was renewed in time, by our clock and with a lease more for clocks that differ."""
        return bool(self.holder) and self._recent(now)

    def awaited(self, now: datetime) -> bool:
        """Whether it is a new lease, which nobody has held and somebody takes when it is as old as it lasts."""
        handed_back = self.lasts == timedelta(seconds=election.RELEASED_SECONDS)
        return not self.holder and not handed_back and self._recent(now)

    def prefix(self, now: datetime) -> str:
        """Under which the keys are that it goes by; empty if it does not lead, or has not said."""
        return self.last_pass.label_prefix if self.last_pass is not None and self.leads(now) else ""

    def _recent(self, now: datetime) -> bool:
        return self.renewed is not None and now - self.renewed <= 2 * self.lasts


def settings(
    client: Client, namespace: str, file: Path | None = None, *, leader: Leader | str, now: datetime
) -> InForce:
    """Those of the file, or of the installation. A file does not end an emergency stop."""
    given = None if file is None else _from_file(file)
    prefix = leader.prefix(now) if isinstance(leader, Leader) else ""
    where = f"ConfigMap {namespace}/{names.SETTINGS}"
    try:
        found = client.get(CONFIGMAPS, names.SETTINGS, namespace=namespace, type=ConfigMap)
    except errors.NotFound:
        kept = "programs that run keep those that they read last"
        shown = f"shown by the defaults, for there is no {where}; {kept}"
        installed = _led(InForce(Settings(), shown, absent=where), prefix)
    except errors.Forbidden as denied:
        unknown = f"{where} cannot be read: {denied.message}"
        installed = _led(InForce(Settings(), "the defaults", unknown=unknown), prefix)
    else:
        installed = _with_stop(_led(_read(found, where), prefix), found)
    if given is None:
        return installed
    return InForce(given, str(file), stopped=installed.stopped, stop_key=installed.stop_key)


def _read(found: ConfigMap, where: str) -> InForce:
    text = found.data.get(names.SETTINGS_KEY, "")
    try:
        return InForce(settings_load.load(text), where)
    except InvalidSettings as invalid:
        stand_in, unsure = _standing_in(text)
        return InForce(stand_in, where, mistakes=tuple(map(str, invalid.mistakes)), unsure=unsure)


def _led(read: InForce, prefix: str) -> InForce:
    """Our keys are those of who leads, whatever has been asked for since: it takes another prefix at its next start,
    and until then keeps all the settings it has.
    """
    asked = read.settings.label_prefix
    if prefix in ("", asked):
        return replace(read, unsure="") if prefix else read
    wrong = (
        () if read.guessed else (f"labelPrefix: {asked!r} takes a restart of all programs; in force is {prefix!r}",)
    )
    return replace(read, settings=Settings(label_prefix=prefix), mistakes=read.mistakes + wrong, unsure="")


def _standing_in(text: str) -> tuple[Settings, str]:
    """What to go by, and why our keys are not known by it."""
    try:
        return settings_load.standing_in(text), ""
    except InvalidSettings as unsure:
        return Settings(), str(unsure)


def _with_stop(read: InForce, found: ConfigMap) -> InForce:
    key = keys.under(read.settings.label_prefix).emergency_stop
    said = values.emergency_stop(key, found.metadata.annotations.get(key, ""), read.source)
    return replace(read, stopped=said, stop_key=key)


def _from_file(file: Path) -> Settings:
    try:
        return settings_load.load(file.read_bytes().decode())
    except OSError as unreadable:
        raise Unusable(f"{file}: {unreadable.strerror}") from unreadable
    except UnicodeDecodeError as undecodable:
        raise Unusable(f"{file}: not YAML text in UTF-8") from undecodable
    except InvalidSettings as invalid:
        raise Unusable("\n".join(f"{file}: {mistake}" for mistake in invalid.mistakes)) from invalid


def leader(client: Client, namespace: str) -> Leader | str:
    """Who leads, or why that is not known."""
    try:
        lease = client.get(LEASES, names.DESCHEDULER, namespace=namespace, type=Lease)
    except errors.NotFound:
        return f"there is no Lease {namespace}/{names.DESCHEDULER}: no descheduler has run yet"
    except errors.Forbidden as denied:
        return f"Lease {namespace}/{names.DESCHEDULER} cannot be read: {denied.message}"
    spec = lease.spec
    return Leader(
        spec.holder_identity,
        spec.acquire_time,
        spec.renew_time,
        timedelta(seconds=spec.lease_duration_seconds),
        spec.lease_transitions,
        last_pass.read(lease.metadata.annotations),
    )

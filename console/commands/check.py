"""`check`: is the installation well? Certificates, rights, processes, settings, and whether the webhook answers."""

from __future__ import annotations

from collections.abc import Iterator

from console import installation
from console.ending import Ending
from console.health import admission, certificates, fences, finding, parts, rights
from console.health.finding import Finding, Level
from console.session import Session


def run(session: Session) -> Ending:
    """Print what was found; 1 if anything is wrong, 3 if something could not be looked at."""
    found = tuple(_findings(session))
    session.show(finding.of(found), finding.pages(found))
    levels = {it.level for it in found}
    if Level.FAILED in levels:
        return Ending.FAILED
    return Ending.INCOMPLETE if Level.UNKNOWN in levels else Ending.DONE


def _findings(session: Session) -> Iterator[Finding]:
    """The most basic first."""
    client, system = session.door.client, session.options.system_namespace
    definition = parts.definition(client)
    nothing = parts.absent(client, system, definition)
    if nothing is not None:
        yield nothing
        return
    yield definition
    yield fences.check(client, system)
    yield from parts.processes(client, system)
    leader = installation.leader(client, system)
    in_force = installation.settings(client, system, session.options.settings, leader=leader, now=session.now)
    yield from parts.settings(in_force, system)
    yield from parts.leader(leader, system, in_force, session.now)
    yield from certificates.check(client, system, session.now)
    yield admission.check(client, session.namespace, in_force, system=system)
    yield from rights.of_processes(client, system)
    yield rights.of_person(client, session.scope)

"""Whether the parts of an installation are there: definition, processes, settings, and a leader."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from cluster import errors
from cluster.client import Client
from cluster.meta import Condition, ObjectMeta, Part
from cluster.objects import PartialObjectMetadata
from cluster.resources import CRDS, DEPLOYMENTS, PODMIGRATIONS
from console import ages
from console.health.finding import APPLY, Finding, Level
from console.installation import InForce, Leader
from policy import names
from policy.settings import Mode

CRD: Final = f"{PODMIGRATIONS.plural}.{PODMIGRATIONS.group}"
PROCESSES: Final = (names.DESCHEDULER, names.WEBHOOK, names.CERTS)
PATIENCE: Final = 3
"""Intervals without a pass until something must be wrong."""


NO_DEFINITION: Final = Finding("definition", Level.FAILED, f"there is no CustomResourceDefinition {CRD}", APPLY)


class _Status(Part, frozen=True):
    conditions: tuple[Condition, ...] = ()


class _Definition(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: _Status = _Status()


class _Wanted(Part, frozen=True):
    replicas: int = 1


class _Counted(Part, frozen=True):
    ready_replicas: int = 0


class _Deployment(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Wanted = _Wanted()
    status: _Counted = _Counted()


def definition(client: Client) -> Finding:
    """The custom resource."""
    try:
        found = client.get(CRDS, CRD, type=_Definition)
    except errors.NotFound:
        return NO_DEFINITION
    except errors.Forbidden as denied:
        return Finding("definition", Level.UNKNOWN, denied.message)
    if any(it.type == "Established" and it.status == "True" for it in found.status.conditions):
        return Finding("definition", Level.OK, f"{CRD} is established")
    told = "; ".join(it.message for it in found.status.conditions if it.status == "False")
    return Finding("definition", Level.FAILED, f"{CRD} is not established: {told or 'not yet'}", APPLY)


def absent(client: Client, namespace: str, definition: Finding) -> Finding | None:
    """That nothing of it is there, not even the definition, which says more than a failure of every part."""
    if definition != NO_DEFINITION:
        return None
    try:
        if any(is_there(client, name, namespace) for name in PROCESSES):
            return None
    except errors.Forbidden:
        return None
    text = f"not installed: there is no CustomResourceDefinition {CRD}, and no Deployment of ours in {namespace}"
    return Finding("installation", Level.FAILED, text, APPLY)


def is_there(client: Client, name: str, namespace: str) -> bool:
    """Whether there is a Deployment of this name. Raises Forbidden."""
    try:
        client.get(DEPLOYMENTS, name, namespace=namespace, type=PartialObjectMetadata)
    except errors.NotFound:
        return False
    return True


def processes(client: Client, namespace: str) -> Iterator[Finding]:
    """The three Deployments. certs may be replaced by cert-manager, so that its absence is no failure."""
    for name in PROCESSES:
        try:
            found = client.get(DEPLOYMENTS, name, namespace=namespace, type=_Deployment)
        except errors.NotFound:
            level = Level.WARNING if name == names.CERTS else Level.FAILED
            advice = "fine if cert-manager makes the certificates" if name == names.CERTS else APPLY
            yield Finding("processes", level, f"there is no Deployment {namespace}/{name}", advice)
            continue
        except errors.Forbidden as denied:
            yield Finding("processes", Level.UNKNOWN, denied.message)
            continue
        ready, wanted = found.status.ready_replicas, found.spec.replicas
        level = Level.OK if ready >= wanted else Level.WARNING if ready else Level.FAILED
        advice = "" if level is Level.OK else _about(name, namespace)
        yield Finding("processes", level, f"{name}: {ready} of {wanted} ready", advice)


def _about(name: str, namespace: str) -> str:
    return f"kubectl -n {namespace} describe deployment {name}; kubectl -n {namespace} logs deployment/{name}"


def settings(in_force: InForce, namespace: str) -> Iterator[Finding]:
    """The settings, each mistake of theirs, and what keeps moves from being made."""
    if in_force.unknown:
        yield Finding("settings", Level.UNKNOWN, in_force.unknown)
        return
    edit = f"kubectl -n {namespace} edit configmap {names.SETTINGS}"
    advice = f"{edit}; docs/configuration.md has every setting"
    yield from (Finding("settings", Level.FAILED, mistake, advice) for mistake in in_force.mistakes)
    if in_force.absent:
        told = f"there is no {in_force.absent}: what runs keeps the settings it has read, and nothing new can start"
        yield Finding("settings", Level.FAILED, told, APPLY)
    elif not in_force.mistakes:
        yield Finding("settings", Level.OK, f"valid: {in_force.source}")
    if in_force.stopped:
        goes_on = f"kubectl -n {namespace} annotate configmap {names.SETTINGS} {in_force.stop_key}- lets it go on"
        yield Finding("mode", Level.WARNING, f"emergency stop: {in_force.stopped}", goes_on)
    elif in_force.settings.mode is Mode.OBSERVE and not in_force.guessed:
        text = "observe: plans are made and nothing is moved"
        yield Finding("mode", Level.WARNING, text, f"{edit}; mode: enforce moves pods")
    elif in_force.guessed:
        yield Finding(
            "mode", Level.UNKNOWN, "what runs keeps its last good settings; `status` tells the mode of its last pass"
        )
    else:
        yield Finding("mode", Level.OK, str(in_force.settings.mode))


def leader(found: Leader | str, namespace: str, in_force: InForce, now: datetime) -> Iterator[Finding]:
    """Who leads, and whether it makes passes."""
    advice = f"kubectl -n {namespace} logs deployment/{names.DESCHEDULER}"
    if isinstance(found, str):
        level = Level.UNKNOWN if "cannot be read" in found else Level.FAILED
        yield Finding("leader", level, found, advice)
        return
    if found.awaited(now):
        told = f"nobody leads yet: a new lease is taken when it is {ages.length(found.lasts)} old"
        yield Finding("leader", Level.WARNING, told, "ask again in a moment")
        return
    if not found.leads(now):
        told = "nobody leads" if not found.holder else f"{found.holder} last renewed {_ago(found.renewed, now)} ago"
        yield Finding("leader", Level.FAILED, told, advice)
        return
    yield Finding("leader", Level.OK, f"{found.holder} leads, renewed {_ago(found.renewed, now)} ago")
    yield _passes(found, in_force.settings.rescheduling_interval, now, advice)


def _passes(found: Leader, interval: timedelta, now: datetime, advice: str) -> Finding:
    if found.last_pass is None:
        return Finding("last pass", Level.WARNING, "the leader has not told of a pass yet", advice)
    age = now - found.last_pass.at
    told = f"{ages.length(age)} ago: {found.last_pass.moves} moves, {found.last_pass.refusals} refusals"
    late = age > PATIENCE * interval + 2 * found.lasts
    return Finding("last pass", Level.FAILED if late else Level.OK, told, advice if late else "")


def _ago(at: datetime | None, now: datetime) -> str:
    return ages.between(at, now)

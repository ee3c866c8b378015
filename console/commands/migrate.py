"""`migrate`: ask for the move of one pod, and wait for its end if that is wanted.

Writes one PodMigration, with no more in it than a user may write. Guards, fit and modes are the descheduler's.
"""

from __future__ import annotations

import contextlib
import string
from typing import Any, Final

from cluster import errors
from cluster.objects import Node, Pod, PodMigration
from cluster.resources import NODES, PODMIGRATIONS, PODS
from cluster.store import Kind
from console import door, following, foresight, installation, progress
from console.door import Unusable
from console.ending import Ending
from console.installation import InForce, Leader
from console.session import Session
from console.views import move_list
from policy import settings as policy_settings
from policy.mistakes import names_like
from policy.values import MigrationId

SUFFIX: Final = 6
MANAGER: Final = door.AGENT


def run(session: Session) -> Ending:
    """Ask, and wait."""
    pod = _pod(session)
    _check_target(session, pod)
    in_force = _warn(session)
    made = _create(session, pod)
    what = f"podmigration.spotshift.dev/{made.metadata.name}"
    if session.options.dry_run:
        session.say(f"{what} created (server dry run)")
        return foresight.tell(session, made, in_force)
    session.say(f"{what} created")
    if not session.options.wait:
        if session.machine:
            session.show(move_list.plain(made), ())
        return Ending.DONE
    return _wait(session, made)


def _pod(session: Session) -> Pod:
    name, namespace, client = session.options.pod, session.namespace, session.door.client
    try:
        return client.get(PODS, name, namespace=namespace, type=Pod)
    except errors.NotFound as absent:
        known: list[str] = []
        with contextlib.suppress(errors.ApiError):
            known = [it.metadata.name for it in client.list(PODS, namespace=namespace, type=Pod).items]
        hint = names_like(name, known) or (
            "" if known else f"namespace {namespace} has no pods; name another with -n"
        )
        raise Unusable(f"there is no pod {namespace}/{name}" + (f" ({hint})" if hint else "")) from absent


def _check_target(session: Session, pod: Pod) -> None:
    """A node that is not there, or the pod's own, would be found out later, by a move that is cancelled."""
    name, client = session.options.to, session.door.client
    if not name:
        return
    if name == pod.node_name:
        meta = pod.metadata
        raise Unusable(
            f"pod {meta.namespace}/{meta.name} runs on {name} already: name another node, or leave --to out"
        )
    try:
        client.get(NODES, name, type=Node)
    except errors.NotFound as absent:
        known: list[str] = []
        with contextlib.suppress(errors.ApiError):
            known = [it.metadata.name for it in client.list(NODES, type=Node).items]
        hint = names_like(name, known)
        raise Unusable(f"there is no node {name}" + (f" ({hint})" if hint else "")) from absent
    except errors.Forbidden:
        return  # the descheduler may see it


def _warn(session: Session) -> InForce:
    """What will hold the move up, as far as one may see it; and the settings by which that was told."""
    client, system = session.door.client, session.options.system_namespace
    leader = installation.leader(client, system)
    in_force = installation.settings(client, system, leader=leader, now=session.now)
    for line in in_force.warnings:
        session.warn(line)
    if in_force.stopped:
        session.warn(f"nothing is moved while the emergency stop is set: {in_force.stopped}")
    elif in_force.settings.mode is policy_settings.Mode.OBSERVE:
        session.warn("the mode is observe: the move will be cancelled")
    if isinstance(leader, Leader) and not leader.leads(session.now):
        session.warn("no descheduler leads at the moment; the move begins when one does")
    return in_force


def _create(session: Session, pod: Pod) -> PodMigration:
    options, meta = session.options, pod.metadata
    spec: dict[str, Any] = {"podRef": {"name": meta.name, "uid": meta.uid}}
    if options.to:
        spec["targetNode"] = options.to
    if options.mode:
        spec["mode"] = options.mode
    suffix = "".join(session.runtime.rng.choices(string.ascii_lowercase + string.digits, k=SUFFIX))
    name = str(MigrationId(int(session.now.timestamp() * 1000), suffix))
    body = {
        "apiVersion": PODMIGRATIONS.api_version,
        "kind": PODMIGRATIONS.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    try:
        return session.door.client.create(
            PODMIGRATIONS,
            body,
            namespace=meta.namespace,
            type=PodMigration,
            dry_run=options.dry_run,
            field_manager=MANAGER,
        )
    except errors.NotFound as absent:
        raise Unusable(door.NOT_INSTALLED) from absent


def _wait(session: Session, made: PodMigration) -> Ending:
    meta, seconds = made.metadata, _seconds(session)
    name, last, gone = made.spec.pod_ref.name, made, False
    with (
        following.followed(
            session.door.client,
            PODMIGRATIONS,
            PodMigration,
            session.runtime,
            namespace=meta.namespace,
            name=meta.name,
            expected=(made,),
        ) as changes,
        progress.shown(session, (name,)) as tracker,
    ):
        for delta in following.each(changes, session.runtime, seconds):
            if delta is None or delta.object.metadata.uid != meta.uid:
                continue
            last, gone = delta.object, delta.kind is Kind.DELETED
            if gone or not move_list.is_open(last):
                break
            done, total = progress.steps(last.status.step)
            tracker.tell(name, _standing(last), done, total)
        if not move_list.is_open(last):
            tracker.tell(name, last.status.phase, 1, 1)
    return _conclude(session, last, gone=gone)


def _standing(migration: PodMigration) -> str:
    status = migration.status
    where = " ".join(filter(None, (status.phase or "Pending", status.step)))
    return f"{where} ({status.message})" if status.message else where


def _conclude(session: Session, last: PodMigration, *, gone: bool) -> Ending:
    """One that nobody has taken up is gone at once when it is deleted, without ever being marked as such."""
    if session.machine:
        session.show(move_list.plain(last), ())
    if move_list.is_open(last):
        deleted = gone or last.metadata.deletion_timestamp is not None
        told = "it was deleted while it was" if deleted else "it is still"
        session.complain(f"the move has not ended, {told} {_standing(last)}")
        return Ending.FAILED if deleted else Ending.TIMED_OUT
    session.say(move_list.sentence(last))
    return Ending.DONE if last.status.phase == "Completed" else Ending.FAILED


def _seconds(session: Session) -> float | None:
    timeout = session.options.timeout
    return None if timeout is None else float(timeout.total_seconds())

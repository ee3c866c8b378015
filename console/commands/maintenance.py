"""`maintenance`: ask for a node to be emptied, take that back, and see how far it is.

Writes the maintenance label and its deadline, as `kubectl label node` would; everything else on the node is the
descheduler's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from cluster import errors
from cluster.objects import Node
from cluster.resources import NODES
from cluster.store import Delta, Kind
from console import ages, door, following, installation, look, progress
from console.door import Unusable
from console.ending import Ending
from console.installation import InForce, Leader
from console.session import Session
from console.views import drains
from descheduler import signs
from policy import keys, signals, values
from policy.keys import Keys
from policy.mistakes import names_like
from policy.reasons import Malformed, shorten
from policy.settings import Mode

MANAGER: Final = door.AGENT

Judge = Callable[[Kind, Node], Ending | None]
"""Whether a node has come to its end; None: not yet."""


def run(session: Session) -> Ending:
    """Do it."""
    options = session.options
    client, system = session.door.client, options.system_namespace
    leader = installation.leader(client, system)
    in_force = installation.settings(client, system, options.settings, leader=leader, now=session.now)
    if in_force.unsure and options.action != "status":
        raise Unusable(
            f"{in_force.source}: {in_force.unsure}; our keys are not known: mend it, or use --settings FILE"
        )
    for line in in_force.warnings:
        session.warn(line)
    ours = keys.under(in_force.settings.label_prefix)
    found = _nodes(session)
    if in_force.unknown:  # the label may be called otherwise here
        session.warn(f"settings: {in_force.unknown}; {look.DEFAULTS}")
    _warn(session, in_force, leader, found, ours)
    match options.action:
        case "start":
            return _start(session, found, ours)
        case "stop":
            return _stop(session, found, ours)
        case _:
            _status(session, found, ours)
            return Ending.INCOMPLETE if in_force.mistakes or in_force.unknown else Ending.DONE


def _warn(session: Session, in_force: InForce, leader: Leader | str, found: Sequence[Node], ours: Keys) -> None:
    """What keeps a drain from beginning, where one is asked for or waits; as far as one may see it."""
    waits = (drain.stage == drains.Asked.REQUESTED for drain in (drains.read(it, ours) for it in found) if drain)
    if session.options.action != "start" and not (session.options.action == "status" and any(waits)):
        return
    if not door.is_installed(session.door.client):
        session.warn("spotshift is not installed in this cluster: no node is drained before it is")
    elif in_force.stopped:
        session.warn(f"no node is drained while the emergency stop is set: {in_force.stopped}")
    elif in_force.settings.mode is Mode.OBSERVE:
        session.warn("the mode is observe: no node is drained")
    elif isinstance(leader, Leader) and not leader.leads(session.now):
        session.warn("no descheduler leads at the moment; a drain begins when one does")


def _nodes(session: Session) -> list[Node]:
    """Those that were named, all of which must be there; all of them where none was named."""
    client, wanted = session.door.client, list(dict.fromkeys(session.options.node))
    if not wanted:
        return sorted(client.list(NODES, type=Node).items, key=lambda it: it.metadata.name)
    found, missing = [], []
    for name in wanted:
        try:
            found.append(client.get(NODES, name, type=Node))
        except errors.NotFound:
            missing.append(name)
    if missing:
        raise Unusable("\n".join(f"there is no node {name}{_hint(session, name)}" for name in missing))
    return found


def _hint(session: Session, name: str) -> str:
    with contextlib.suppress(errors.ApiError):
        known = [it.metadata.name for it in session.door.client.list(NODES, type=Node).items]
        meant = names_like(name, known)
        return f" ({meant})" if meant else ""
    return ""


# ---- start and stop


def _start(session: Session, found: Sequence[Node], ours: Keys) -> Ending:
    notes = _deadline(session, ours)
    for node in found:
        kept = node.metadata.annotations.get(ours.maintenance_deadline)
        if kept is not None and not notes:
            session.warn(f"node {node.metadata.name} keeps {_kept(kept, ours)}; --deadline sets another")
        again = node.metadata.labels.get(ours.maintenance) == "true"
        _patch(session, node, {ours.maintenance: "true"}, notes)
        session.say(f"node/{node.metadata.name} maintenance {'was requested already' if again else 'requested'}")
    return _wait(session, found, ours, _is_drained(ours)) if session.options.wait else _done(session, ours)


def _kept(deadline: str, ours: Keys) -> str:
    """One that is no time limits nothing."""
    if signals.instant(deadline) is not None:
        return f"the deadline {shorten(deadline)}"
    return f"a deadline that means nothing: {Malformed(ours.maintenance_deadline, deadline, signals.DEADLINE_FORMAT)}"


def _deadline(session: Session, ours: Keys) -> dict[str, str]:
    """The annotation that was asked for. One in the past would be a drain that is overdue before it begins."""
    deadline = session.options.deadline
    if deadline is None:
        return {}
    at = session.now + deadline if isinstance(deadline, timedelta) else deadline
    if at <= session.now:
        raise Unusable(
            f"--deadline: {values.format_time(at)} has passed, use a time to come, or one from now on as 2h"
        )
    return {ours.maintenance_deadline: values.format_time(at)}


def _stop(session: Session, found: Sequence[Node], ours: Keys) -> Ending:
    for node in found:
        lost = drains.interrupted(node, ours)
        if lost:
            session.warn(
                f"node {node.metadata.name} is emptied and stays closed while its interruption holds: {lost}"
            )
        notes = {key: None for key in (ours.maintenance_deadline,) if key in node.metadata.annotations}
        if ours.maintenance not in node.metadata.labels and not notes:
            session.say(f"node/{node.metadata.name} was not in maintenance")
            continue
        _patch(session, node, {ours.maintenance: None}, notes)
        session.say(f"node/{node.metadata.name} maintenance stopped")
    return _wait(session, found, ours, _is_restored(ours)) if session.options.wait else _done(session, ours)


def _patch(session: Session, node: Node, labels: Mapping[str, str | None], notes: Mapping[str, str | None]) -> None:
    """Tied to the node that was looked at: one of the same name may be another by now."""
    body: dict[str, Any] = {
        "metadata": {"uid": node.metadata.uid, "labels": dict(labels), "annotations": dict(notes)}
    }
    session.door.client.merge_patch(NODES, node.metadata.name, body, type=Node, field_manager=MANAGER)


def _done(session: Session, ours: Keys) -> Ending:
    """Programs get the nodes as they are now."""
    if session.machine:
        _show(session, _nodes(session), ours)
    return Ending.DONE


# ---- waiting


def _is_drained(ours: Keys) -> Judge:
    def judge(kind: Kind, node: Node) -> Ending | None:
        if kind is Kind.DELETED:
            return Ending.DONE
        drain = drains.read(node, ours)
        if drain is None or not drain.asked:
            return Ending.FAILED  # somebody has taken it back
        if drain.stage != "drained":
            return None
        return Ending.LEFT if drain.left else Ending.DONE

    return judge


def _is_restored(ours: Keys) -> Judge:
    def judge(kind: Kind, node: Node) -> Ending | None:
        if kind is Kind.DELETED:
            return Ending.DONE
        drain = drains.read(node, ours)
        if drain is None:
            return Ending.DONE
        return Ending.FAILED if drain.asked else None  # somebody has asked for it again

    return judge


def _wait(session: Session, found: Sequence[Node], ours: Keys, judge: Judge) -> Ending:
    """Until every node has come to its end. One that is gone has, whoever bears its name by then."""
    names = [it.metadata.name for it in found]
    latest = {it.metadata.name: it for it in found}
    asked = {it.metadata.uid for it in found}
    ended: dict[str, Ending] = {}
    timeout = session.options.timeout
    seconds = None if timeout is None else float(timeout.total_seconds())
    only = names[0] if len(names) == 1 else ""
    with (
        following.followed(session.door.client, NODES, Node, session.runtime, name=only, expected=found) as changes,
        progress.shown(session, names) as tracker,
    ):
        for delta in following.each(changes, session.runtime, seconds):
            if delta is not None and delta.object.metadata.uid in asked:
                name = delta.key[1]
                latest[name] = delta.object
                tracker.tell(name, *_standing(session, delta, ours))
                verdict = judge(delta.kind, delta.object)
                if verdict is not None:
                    ended[name] = verdict
                else:
                    ended.pop(name, None)
            if len(ended) == len(names):
                break
    return _conclude(session, latest, ended, ours)


def _standing(session: Session, delta: Delta[Node], ours: Keys) -> tuple[str, int, int]:
    """How far a node is, in words and numbers."""
    if delta.kind is Kind.DELETED:
        return "the node is gone", 1, 1
    drain = drains.read(delta.object, ours)
    if drain is None:
        lost = drains.interrupted(delta.object, ours)
        return f"not drained any more, but interrupted: {lost}" if lost else "in use, as it was found", 1, 1
    if session.options.action == "stop" and not drain.asked:
        return "being given back", 0, 0
    if drain.stage == "drained":
        return "drained" if not drain.left else f"drained, {drain.left} stay", 1, 1
    return drain.text, drain.done, drain.total


def _conclude(session: Session, latest: Mapping[str, Node], ended: Mapping[str, Ending], ours: Keys) -> Ending:
    open_ = [name for name in latest if name not in ended]
    told = [name for name in latest if ended.get(name, Ending.LEFT) is Ending.LEFT]
    if session.machine:
        _show(session, list(latest.values()), ours)
    elif told:
        _show(session, [latest[name] for name in told], ours, each=True)
    for name in open_:
        session.complain(f"node {name} has not come to its end within {ages.length(session.options.timeout)}")
    for name in (name for name, ending in ended.items() if ending is Ending.FAILED):
        session.complain(f"somebody has changed the maintenance of node {name} meanwhile")
    if open_:
        return Ending.TIMED_OUT
    return next((it for it in (Ending.FAILED, Ending.LEFT) if it in ended.values()), Ending.DONE)


# ---- looking


def _status(session: Session, found: Sequence[Node], ours: Keys) -> None:
    for node in found:  # a label that asks for nothing would be seen in nothing else
        for wrong in signals.mistakes(signs.of(node), keys=ours):
            session.warn(f"node {node.metadata.name}: {wrong}")
    _show(session, found, ours)
    if session.options.node and not session.machine:
        for node in found:
            if drains.read(node, ours) is None:
                session.say(f"node/{node.metadata.name} is not in maintenance")


def _show(session: Session, found: Sequence[Node], ours: Keys, *, each: bool = False) -> None:
    """`each`: what is left on every node is named, also where there are several."""
    read = [drain for drain in (drains.read(node, ours) for node in found) if drain is not None]
    if not read and session.options.node and not session.machine:
        return
    session.show(drains.of(read), drains.pages(read, session.now, wide=session.wide or each))

"""What would come of a move that was only tried: where to and how, or why it would be cancelled.

The descheduler's own judgement is asked, with the cluster as it is at this moment.
"""

from __future__ import annotations

from typing import Any

from cluster import errors
from cluster.objects import PodMigration
from console.ending import Ending
from console.installation import InForce
from console.look import DEFAULTS
from console.session import Session
from descheduler import listing
from descheduler.gathered import Gathered
from descheduler.migration import machine
from descheduler.migration.judge import Judge

Plain = dict[str, Any]


def tell(session: Session, made: PodMigration, in_force: InForce) -> Ending:
    """In a line, or for programs as an object."""
    try:
        gathered = listing.listed(session.door.client, in_force.settings)
    except errors.Forbidden as denied:
        unseen = f"whether it would be carried out cannot be seen: {denied.message}"
        session.warn(unseen)
        _show(session, {**nothing(made), "assumed": [unseen]})
        return Ending.INCOMPLETE
    told = of(session, made, in_force, gathered)
    _show(session, told)
    if told["cancelled"]:
        session.complain(f"it would be cancelled: {told['cancelled']}")
        return Ending.FAILED
    for assumed in told["assumed"]:
        session.warn(assumed)
    session.say(f"it would go to {told['target']} by {told['mode']}")
    return Ending.INCOMPLETE if told["assumed"] or in_force.mistakes else Ending.DONE


def of(session: Session, made: PodMigration, in_force: InForce, gathered: Gathered) -> Plain:
    """For programs. One that would be cancelled goes nowhere."""
    judge = Judge(lambda: in_force.settings, lambda: in_force.stopped, holder="")
    found = judge(made, gathered.state, session.now)
    against = machine.against(made, found)
    unknown = (f"settings: {in_force.unknown}; {DEFAULTS}",) if in_force.unknown else ()
    told = {**nothing(made), "cancelled": against or None, "assumed": [*map(str, gathered.gaps), *unknown]}
    if found.source is not None:
        told["from"] = found.source.node_name or None
    if not against:
        told |= {"target": found.target or made.spec.target_node, "mode": str(found.mode)}
    return told


def nothing(made: PodMigration) -> Plain:
    """As long as nothing is known."""
    return {
        "namespace": made.metadata.namespace,
        "pod": made.spec.pod_ref.name,
        "from": None,
        "target": None,
        "mode": None,
        "cancelled": None,
        "assumed": [],
    }


def _show(session: Session, told: Plain) -> None:
    if session.machine:
        session.show(told, ())

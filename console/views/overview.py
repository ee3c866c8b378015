"""The installation in a few lines: who leads, what the mode is, the last pass, budgets, moves and rests.   Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from cluster.objects import PodDisruptionBudget, PodMigration
from console import ages
from console.installation import Leader
from console.look import Look
from console.states import State
from console.views import node_list
from console.views.node_list import Seen
from descheduler import memory
from descheduler.last_pass import LastPass
from descheduler.migration import temporary_budget
from descheduler.tables import Table
from policy.capacity import CapacityType

Plain = dict[str, Any]
SHOWN: Final = 10
"""Budgets and rests that are listed unless more is wanted."""


def of(look: Look, seen: Sequence[Seen] | None = None) -> Plain:
    """For programs. Who has looked at the nodes already hands them in."""
    return {
        "installed": look.installed,
        "leader": _leader(look),
        "mode": look.mode,
        "emergencyStop": look.in_force.stopped or None,
        "settings": {"source": look.in_force.source, "mistakes": list(look.in_force.mistakes)},
        "lastPass": _last_pass(look),
        "nodes": _nodes(node_list.see(look) if seen is None else seen),
        "pods": {"total": len(look.state.pods), "pending": len(look.state.pending)},
        "migrations": _migrations(look),
        "limits": _limits(look),
        "budgets": _budgets(look),
        "coolDowns": list(_rests(look)),
        "assumed": list(look.unseen),
    }


def _last(look: Look) -> LastPass | None:
    return look.leader.last_pass if isinstance(look.leader, Leader) else None


def _leader(look: Look) -> Plain:
    if isinstance(look.leader, str):
        return {"holder": None, "leads": False, "unknown": look.leader}
    found = look.leader
    return {
        "holder": found.holder or None,
        "leads": found.leads(look.now),
        "awaited": found.awaited(look.now),
        "since": ages.stamp(found.since),
        "renewedAt": ages.stamp(found.renewed),
        "transitions": found.transitions,
    }


def _last_pass(look: Look) -> Plain | None:
    last = _last(look)
    if last is None:
        return None
    return {
        "at": ages.stamp(last.at),
        "seconds": last.seconds,
        "moves": last.moves,
        "refusals": last.refusals,
        "mode": last.mode,
        "stopped": last.stopped or None,
    }


def _nodes(seen: Sequence[Seen]) -> Plain:
    capacity = Counter(it.node.capacity for it in seen)
    states = Counter(state for it in seen for state in it.states)
    return {
        "total": len(seen),
        **{str(kind): capacity[kind] for kind in CapacityType},
        "states": {str(state): states[state] for state in State},
    }


def _migrations(look: Look) -> Plain:
    phases = Counter(it.status.phase or "Pending" for it in look.state.migrations.values())
    finished = [it for it in look.state.migrations.values() if it.status.phase in memory.FINISHED]
    last = max(finished, key=memory.ended, default=None)
    return {
        "open": sum(1 for _ in look.state.open_migrations()),
        "byPhase": dict(sorted(phases.items())),
        "lastFinishedAt": None if last is None else ages.stamp(memory.ended(last)),
    }


def _limits(look: Look) -> Plain:
    limits = look.settings.limits
    return {
        "maxReschedulePods": look.settings.max_reschedule_pods,
        "perNode": limits.per_node,
        "perNamespace": limits.per_namespace,
        "perWorkload": limits.per_workload,
    }


def _budgets(look: Look) -> Plain:
    found = [budget for group in look.state.budgets.values() for budget in group.values()]
    ours = [it for it in found if it.metadata.labels.get(temporary_budget.MANAGED_BY) == temporary_budget.OURS]
    used_up = [it for it in found if it.status.disruptions_allowed <= 0 and it.status.expected_pods > 0]
    return {
        "total": len(found),
        "temporary": len(ours),
        "withoutRoom": [_budget(it) for it in sorted(used_up, key=lambda it: it.metadata.key)],
    }


def _budget(budget: PodDisruptionBudget) -> Plain:
    status = budget.status
    return {
        "namespace": budget.metadata.namespace,
        "name": budget.metadata.name,
        "healthy": status.current_healthy,
        "needed": status.desired_healthy,
        "pods": status.expected_pods,
    }


def _rests(look: Look) -> Iterator[Plain]:
    """Workloads that rest, each with why it does: the last move of it that did not help."""
    rests = memory.cooldowns(look.state.migrations.values(), look.settings, look.now)
    for subject, until in sorted(rests.items(), key=lambda it: (it[1], it[0])):
        last = _last_of(subject, look)
        yield {
            "workload": _named(subject, last, look),
            "until": ages.stamp(until),
            "migration": None if last is None else last.metadata.name,
            "why": None if last is None else last.status.message or str(memory.outcome(last)),
        }


def _last_of(subject: str, look: Look) -> PodMigration | None:
    found = [it for it in look.state.migrations.values() if memory.subject(it) == subject]
    finished = [it for it in found if memory.outcome(it) in {memory.Outcome.FAILED, memory.Outcome.BOUNCED}]
    return max(finished, key=memory.ended, default=None)


def _named(subject: str, last: PodMigration | None, look: Look) -> str:
    namespace, _, uid = subject.partition("/")
    known = look.state.controller(namespace, uid)
    if known is not None:
        return known.text
    workload = last.status.resolved.workload if last is not None and last.status.resolved is not None else None
    return f"{workload.kind} {workload.name}" if workload is not None else f"Pod {subject}"


def pages(told: Plain, now: datetime, *, wide: bool) -> Iterator[Table]:
    """For people."""
    yield Table("", ("WHAT", "HOW IT STANDS"), tuple(_lines(told, now)))
    assumed = told["assumed"]
    if assumed:
        yield Table("Not everything could be seen", ("ASSUMED",), tuple((it,) for it in assumed))
    budgets = told["budgets"]["withoutRoom"]
    shown = budgets if wide else budgets[:SHOWN]
    if shown:
        rows = tuple((it["namespace"], it["name"], f"{it['healthy']} of {it['needed']} needed") for it in shown)
        note = f"{len(budgets) - len(shown)} more, -o wide lists them" if len(budgets) > len(shown) else ""
        yield Table("Budgets that allow no disruption now", ("NAMESPACE", "BUDGET", "HEALTHY PODS"), rows, note)
    rests = told["coolDowns"]
    shown = rests if wide else rests[:SHOWN]
    if shown:
        rows = tuple((it["workload"], _ahead(it["until"], now), it["why"] or "-") for it in shown)
        note = f"{len(rests) - len(shown)} more, -o wide lists them" if len(rests) > len(shown) else ""
        yield Table("Workloads that rest", ("WORKLOAD", "FOR", "WHY"), rows, note)


def _lines(told: Plain, now: datetime) -> Iterator[tuple[str, str]]:
    if not told["installed"]:
        yield "installation", "not installed: this cluster knows no PodMigrations"
    yield "leader", leader_text(told["leader"], now)
    yield "mode", mode_text(told)
    for mistake in told["settings"]["mistakes"]:
        yield "settings", f"wrong, the last good ones or the defaults hold: {mistake}"
    yield "settings", told["settings"]["source"]
    yield "last pass", pass_text(told["lastPass"], now)
    yield "nodes", nodes_text(told["nodes"])
    yield "pods", f"{told['pods']['total']}, {told['pods']['pending']} without a node"
    yield "moves", moves_text(told["migrations"], now)
    limits = told["limits"]
    yield (
        "limits",
        (
            f"{limits['maxReschedulePods']} moves in a pass, {limits['perNode']} off a node, "
            f"{limits['perNamespace']} in a namespace, of a workload {limits['perWorkload'] or 'by its replicas'}"
        ),
    )
    budgets = told["budgets"]
    ours = f", {budgets['temporary']} of them temporary ones of ours" if budgets["temporary"] else ""
    yield "budgets", f"{budgets['total']}{ours}, {len(budgets['withoutRoom'])} allow no disruption now"
    yield "cool-downs", f"{len(told['coolDowns'])} workloads rest" if told["coolDowns"] else "no workload rests"


def leader_text(leader: Plain, now: datetime) -> str:
    """Who leads, and since when."""
    if "unknown" in leader:
        return f"unknown: {leader['unknown']}"
    if leader["awaited"]:
        return f"nobody yet: the lease is new, for {_ago(leader['renewedAt'], now)}, and is taken after a moment"
    if not leader["holder"]:
        return "nobody: the last one handed the lease back"
    if not leader["leads"]:
        return f"nobody: {leader['holder']} has not renewed the lease for {_ago(leader['renewedAt'], now)}"
    return f"{leader['holder']}, for {_ago(leader['since'], now)}"


def mode_text(told: Plain) -> str:
    """What may be done at this time."""
    if told["emergencyStop"]:
        return f"{told['mode']}, but stopped by {told['emergencyStop']}"
    return "observe: plans are made and nothing is moved" if told["mode"] == "observe" else str(told["mode"])


def pass_text(last: Plain | None, now: datetime) -> str:
    """When, and what came of it."""
    if last is None:
        return "unknown"
    figures = f"{last['moves']} moves, {last['refusals']} refusals, planned in {1000 * last['seconds']:.0f} ms"
    return f"{_ago(last['at'], now)} ago: {figures}"


def nodes_text(nodes: Plain) -> str:
    """How many, and how many of them are not well."""
    kinds = ", ".join(f"{nodes[kind]} {kind}" for kind in map(str, CapacityType) if nodes[kind])
    trouble = ", ".join(f"{count} {state}" for state, count in nodes["states"].items() if count and state != "ready")
    return f"{nodes['total']} ({kinds}){': ' + trouble if trouble else ''}"


def moves_text(moves: Plain, now: datetime) -> str:
    """Under way, and before."""
    phases = ", ".join(f"{count} {phase}" for phase, count in moves["byPhase"].items())
    last = f"; the last one ended {_ago(moves['lastFinishedAt'], now)} ago" if moves["lastFinishedAt"] else ""
    return f"{moves['open']} under way ({phases}){last}" if phases else "none, and none before"


def _ago(stamp: str | None, now: datetime) -> str:
    return "-" if stamp is None else ages.between(datetime.fromisoformat(stamp), now)


def _ahead(stamp: str, now: datetime) -> str:
    return ages.length(datetime.fromisoformat(stamp) - now)

"""A plan as plain values, with the keys that scripts rely on.   Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cluster.objects import Pod
from descheduler.gathered import Gathered
from descheduler.node_state import NodeLoad
from descheduler.plan import Plan
from descheduler.proposal import Move, Refusal
from descheduler.reasons import Reason

Plain = dict[str, Any]


def of_plan(plan: Plan, gathered: Gathered) -> Plain:
    """The whole plan."""
    return {
        "moves": [_move(it) for it in plan.moves],
        "refusals": [_refusal(it) for it in plan.refusals],
        "nodes": [_node(it) for it in plan.nodes],
        "summary": _summary(plan, gathered),
    }


def _move(move: Move) -> Plain:
    return {
        **_named(move.pod),
        "from": move.source,
        "to": move.target,
        "mode": str(move.mode),
        "strategy": move.strategy,
        "reason": move.why,
        "urgency": str(move.urgency),
        "deadline": _time(move.deadline),
        "preempts": [f"{it.metadata.namespace}/{it.metadata.name}" for it in move.victims],
    }


def _refusal(refusal: Refusal) -> Plain:
    return {
        **_named(refusal.pod),
        "strategy": refusal.strategy,
        "reasons": [reason(it) for it in refusal.reasons],
    }


def reason(found: Reason) -> Plain:
    """One "no"."""
    return {"code": str(found.code), "text": found.text}


def left_out(plan: Plan) -> list[Plain]:
    """Strategies that should have had a part in the plan."""
    return [{"strategy": it.strategy, "why": it.why} for it in plan.left_out]


def _named(pod: Pod) -> Plain:
    return {"namespace": pod.metadata.namespace, "pod": pod.metadata.name}


def _node(load: NodeLoad) -> Plain:
    return {
        "name": load.name,
        "capacity": str(load.capacity),
        "loadBefore": percent(load.before),
        "loadAfter": percent(load.after),
    }


def _summary(plan: Plan, gathered: Gathered) -> Plain:
    summary = plan.summary
    return {
        "complete": not gathered.gaps and not plan.left_out,
        "assumed": [str(gap) for gap in gathered.gaps],
        "leftOut": left_out(plan),
        "objects": gathered.objects,
        "pods": len(gathered.state.pods),
        "proposals": summary.proposals,
        "moves": summary.moves,
        "movesByStrategy": dict(summary.by_strategy),
        "refusals": summary.refusals,
        "refusalsByReason": {str(code): count for code, count in summary.by_code.items()},
        "limitedBy": None if summary.limited is None else reason(summary.limited),
        "highestLoadBefore": percent(summary.highest_before),
        "highestLoadAfter": percent(summary.highest_after),
    }


def percent(load: float) -> float | None:
    """With one digit; None for a node that offers nothing and holds something."""
    return None if load == float("inf") else round(load, 1)


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()

"""`plan`: what would be moved now, and why the rest is not. The planner itself is asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

from console import look
from console.ending import Ending
from console.session import Session
from descheduler import plan, report, tables


def run(session: Session) -> Ending:
    """Print it."""
    only = "" if session.options.all_namespaces else session.options.namespace
    seen = look.take(session)
    look.check_namespace(only, seen)
    if seen.held:
        session.warn(seen.held)
    made = plan.make(seen.state, seen.settings, seen.now, seen.gathered.usage)
    told = report.of_plan(made, seen.gathered)
    told["summary"]["held"] = seen.held or None
    told["summary"]["assumed"] = list(seen.assumed)
    told["summary"]["complete"] = not seen.assumed and not made.left_out
    if only:
        told = _only(told, only)
    session.show(told, tables.of_plan(told, verbose=session.wide, more="-o wide"))
    return Ending.DONE if told["summary"]["complete"] else Ending.INCOMPLETE


def _only(told: dict[str, Any], namespace: str) -> dict[str, Any]:
    """What concerns a namespace, counted. Proposals, loads and limits stay those of all: it is one plan."""
    moves = [it for it in told["moves"] if it["namespace"] == namespace]
    refusals = [it for it in told["refusals"] if it["namespace"] == namespace]
    strategies = Counter(it["strategy"] for it in moves)
    codes = Counter(code for it in refusals for code in {why["code"] for why in it["reasons"]})
    summary = {
        **told["summary"],
        "namespace": namespace,
        "moves": len(moves),
        "movesByStrategy": dict(sorted(strategies.items())),
        "refusals": len(refusals),
        "refusalsByReason": dict(sorted(codes.items())),
    }
    return {**told, "moves": moves, "refusals": refusals, "summary": summary}

"""`plan`: what would be moved now, and why the rest is not. The planner itself is asked."""

from __future__ import annotations

from typing import Any

from console import look
from console.ending import Ending
from console.session import Session
from descheduler import plan, report, tables


def run(session: Session) -> Ending:
    """Print it."""
    options = session.options
    seen = look.take(session)
    made = plan.make(seen.state, seen.settings, seen.now, seen.gathered.usage)
    told = report.of_plan(made, seen.gathered)
    told["summary"]["assumed"] = list(seen.assumed)
    told["summary"]["complete"] = not seen.assumed and not made.left_out
    if options.namespace:
        told = _only(told, options.namespace)
    session.show(told, tables.of_plan(told, verbose=session.wide, more="-o wide"))
    return Ending.DONE if told["summary"]["complete"] else Ending.INCOMPLETE


def _only(told: dict[str, Any], namespace: str) -> dict[str, Any]:
    """What concerns a namespace. Loads and the summary stay those of the whole plan: it is one plan for all."""
    moves = [it for it in told["moves"] if it["namespace"] == namespace]
    refusals = [it for it in told["refusals"] if it["namespace"] == namespace]
    codes = [code for it in refusals for code in {why["code"] for why in it["reasons"]}]
    summary = {**told["summary"], "refusalsByReason": {code: codes.count(code) for code in sorted(set(codes))}}
    return {**told, "moves": moves, "refusals": refusals, "summary": summary}

"""Why a node is in the state it is in, what the plan does with it, and what holds its pods.   Pure.

Everything is asked of those who decide: the signals table, the strategies, the guards of a drain and the planner.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from console import ages
from console.look import Look
from console.views import node_list
from console.views.node_list import Seen
from descheduler import drain, interruption, memory, misread, plan, report, signs
from descheduler.drain import Left
from descheduler.guards import Context
from descheduler.reasons import Code
from descheduler.tables import Table
from policy import signals
from policy.reasons import Malformed
from policy.signals import Signal

Plain = dict[str, Any]


def of(seen: Seen, look: Look) -> Plain:
    """Everything there is to say about it."""
    planned = plan.make(look.state, look.settings, look.now, look.gathered.usage, tell_all=True)
    made = report.of_plan(planned, look.gathered)
    name, context = seen.node.name, _context(look)
    told = _interruption(seen, context)
    return {
        **node_list.plain(seen, look),
        "ready": seen.node.ready,
        "cordoned": seen.object.spec.unschedulable,
        "takesPods": seen.node.open,
        "signals": [
            {
                "kind": str(it.kind),
                "source": it.source,
                "started": ages.stamp(it.started),
                "deadline": ages.stamp(it.deadline) or _written(it, told),
            }
            for it in seen.signals
        ],
        "interruption": told,
        "mistakes": [str(it) for it in _mistakes(seen, context)],
        "tooFull": [{"strategy": strategy, "why": why} for strategy, why in seen.hot.items()],
        "plan": {
            "leaving": [it for it in made["moves"] if it["from"] == name],
            "coming": [it for it in made["moves"] if it["to"] == name],
            "refused": [it for it in made["refusals"] if (it["namespace"], it["pod"]) in seen.node.pods],
        },
        "ifDrained": [_left(it) for it in drain.left(name, context)],
        "held": look.held or None,
        "assumed": list(look.assumed),
    }


def _interruption(seen: Seen, context: Context) -> Plain | None:
    """The notice that the descheduler has taken up. It holds until its deadline, also if its sign disappears."""
    notes = seen.object.metadata.annotations
    if context.keys.interruption_cause not in notes:
        return None
    deadline = signals.instant(notes.get(context.keys.interruption_deadline, ""))
    return {
        "cause": notes[context.keys.interruption_cause],
        "deadline": ages.stamp(deadline),
        "holds": interruption.notice(seen.object, context) is not None,
    }


def _written(signal: Signal, told: Plain | None) -> str | None:
    """Of a sign without a time of its own: what is written down counts from when it was first seen."""
    return told["deadline"] if told and told["holds"] and told["cause"] == signal.source else None


def _context(look: Look) -> Context:
    rests = memory.cooldowns(look.state.migrations.values(), look.settings, look.now)
    return Context(look.state, look.settings, look.keys, look.now, rests)


def _mistakes(seen: Seen, context: Context) -> Iterator[Malformed]:
    yield from signals.mistakes(signs.of(seen.object), keys=context.keys)
    yield from (it.what for it in misread.of_node(seen.object, context))


def _left(left: Left) -> Plain:
    return {
        "namespace": left.pod.metadata.namespace,
        "pod": left.pod.metadata.name,
        "standing": str(left.standing),
        "reasons": [report.reason(it) for it in left.reasons],
    }


def pages(told: Plain, seen: Seen, now: datetime) -> Iterator[Table]:
    """For people."""
    if told["assumed"]:
        yield Table("Not everything could be seen", ("ASSUMED",), tuple((it,) for it in told["assumed"]))
    yield Table(f"Node {told['name']}, {told['capacity']}: {node_list.text(seen)}")
    yield Table("How full it is", ("LOAD", "CPU", "MEMORY", "PODS"), (_shares(told),))
    yield Table(_room(told))
    yield from _signals(told, now)
    if told["tooFull"]:
        rows = tuple((it["strategy"], it["why"]) for it in told["tooFull"])
        yield Table("Too full", ("STRATEGY", "WHY"), rows)
    yield from _plan(told["plan"])
    if told["ifDrained"]:
        columns = ("NAMESPACE", "POD", "DRAIN", "WHY")
        yield Table(
            "Pods, and what a drain would do with each", columns, tuple(_pods(told)), "as far as there is room"
        )


def _shares(told: Plain) -> tuple[str, ...]:
    shares = told["shares"]
    return (
        node_list.percent(told["load"]),
        node_list.percent(shares["cpu"]),
        node_list.percent(shares["memory"]),
        f"{told['pods']} ({node_list.percent(shares['pods'])})",
    )


def _room(told: Plain) -> str:
    if told["takesPods"]:
        return "Pods may be sent to it"
    why = [
        *([] if told["ready"] else ["it is not Ready"]),
        *(["it is cordoned"] if told["cordoned"] else []),
        *(f"{it['source']} says {it['kind']}" for it in told["signals"] if it["source"] != "spec.unschedulable"),
        *_notice(told),
    ]
    return f"No pod is sent to it: {'; '.join(why) or 'it is being deleted'}"


def _notice(told: Plain) -> Iterator[str]:
    """Of a notice whose sign is gone: nothing else on the page would say why the node is closed."""
    notice = told["interruption"]
    if notice and notice["holds"] and all(it["source"] != notice["cause"] for it in told["signals"]):
        yield f"{notice['cause']} said interruption, which holds until {notice['deadline']} though the sign is gone"


def _signals(told: Plain, now: datetime) -> Iterator[Table]:
    if told["signals"]:
        rows = tuple((it["kind"], it["source"], _until(it["deadline"], now)) for it in told["signals"])
        yield Table("Signs on it", ("KIND", "SIGN", "DEADLINE"), rows)
    if told["mistakes"]:
        yield Table("Values that mean nothing", ("MISTAKE",), tuple((it,) for it in told["mistakes"]))


def _until(stamp: str | None, now: datetime) -> str:
    if stamp is None:
        return "-"
    left = datetime.fromisoformat(stamp) - now
    return f"in {ages.length(left)}" if left.total_seconds() > 0 else "passed"


def _plan(found: Plain) -> Iterator[Table]:
    for key, title, column, other in (
        ("leaving", "Leaving by the plan of this moment", "TO", "to"),
        ("coming", "Coming by the plan of this moment", "FROM", "from"),
    ):
        rows = tuple(
            (it["namespace"], it["pod"], it[other] or "<anywhere>", it["strategy"], it["reason"]) for it in found[key]
        )
        if rows:
            yield Table(f"{title} ({len(rows)})", ("NAMESPACE", "POD", column, "STRATEGY", "WHY"), rows)
    rows = tuple(
        (it["namespace"], it["pod"], it["strategy"], why["code"], why["text"])
        for it in found["refused"]
        for why in it["reasons"]
    )
    if rows:
        title = f"Staying, though a strategy would move them ({len(found['refused'])})"
        yield Table(title, ("NAMESPACE", "POD", "STRATEGY", "REASON", "WHY"), rows)
    if not any(found.values()):
        yield Table("The plan of this moment does nothing with it")


def _pods(told: Plain) -> Iterator[tuple[str, ...]]:
    for it in told["ifDrained"]:
        why = "; ".join(f"{reason['code']}: {reason['text']}" for reason in it["reasons"])
        yield it["namespace"], it["pod"], _does(it), why or "-"


def _does(left: Plain) -> str:
    """What a drain does with it. One that is deleted counts as under way; nobody moves it."""
    moved = any(reason["code"] == Code.ALREADY_MIGRATING for reason in left["reasons"])
    return "waits for its end" if left["standing"] == "moving" and not moved else _WORDS[left["standing"]]


_WORDS = {
    "exempt": "leaves it",
    "listed": "leaves it",
    "waiting": "waits for it",
    "moving": "is moving it",
    "free": "moves it",
}

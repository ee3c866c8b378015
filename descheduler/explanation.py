"""Why one pod is moved or is not: every guard's answer, every node's, and what the strategies say.   Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from cluster.objects import Pod
from descheduler import guards, memory, misread, plan, report, strategies
from descheduler.fit import Fitter
from descheduler.gathered import Gathered
from descheduler.guards import wishes
from descheduler.guards.case import Case
from descheduler.picture import Picture
from descheduler.proposal import Urgency
from policy import keys
from policy.settings import Settings

Plain = dict[str, Any]
PLACEMENT: Final = {
    "spot": "spot",
    "tier": "tier",
    "spot_percentage": "spotPercentage",
    "min_on_demand": "minOnDemand",
}
"""What is told of an intent: name of the field, and the key in the report."""


def of_pod(pod: Pod, gathered: Gathered, settings: Settings, now: datetime) -> Plain:
    """Everything there is to say about it."""
    cooldowns = memory.cooldowns(gathered.state.migrations.values(), settings, now)
    context = guards.Context(gathered.state, settings, keys.under(settings.label_prefix), now, cooldowns)
    case = Case(pod, context)
    workload = case.workload
    made = plan.make(gathered.state, settings, now, gathered.usage, tell_all=True)
    return {
        "namespace": pod.metadata.namespace,
        "pod": pod.metadata.name,
        "node": pod.node_name or None,
        "workload": None if workload is None else workload.text,
        "placement": _placement(case),
        "plan": _outcome(pod, report.of_plan(made, gathered)),
        "strategies": _strategies(pod, gathered, settings, now),
        "guards": _guards(case),
        "mistakes": [{"on": it.place, "text": str(it.what)} for it in misread.around(pod, context)],
        "nodes": _nodes(pod, gathered),
        "leftOut": report.left_out(made),
        "assumed": [str(gap) for gap in gathered.gaps],
    }


def _placement(case: Case) -> Plain:
    """Where it should run, and who said so. A mix that nobody asks for is left out."""
    decision = case.decision
    found = {key: getattr(decision.intent, name) for name, key in PLACEMENT.items()}
    origins = {key: decision.origins[name] for name, key in PLACEMENT.items()}
    return {
        key: {
            "value": value,
            "level": str(origins[key].level),
            "on": wishes.speaker(case, origins[key].level),
            "key": origins[key].key,
        }
        for key, value in found.items()
        if value is not None
    }


def _outcome(pod: Pod, made: Plain) -> Plain:
    """What the plan of this moment does with it."""
    for decision in ("moves", "refusals"):
        for found in made[decision]:
            if (found["namespace"], found["pod"]) == pod.metadata.key:
                told = {key: value for key, value in found.items() if key not in {"namespace", "pod"}}
                return {"decision": "move" if decision == "moves" else "refuse", **told}
    return {"decision": "leave"}


def _strategies(pod: Pod, gathered: Gathered, settings: Settings, now: datetime) -> list[Plain]:
    """What each would propose for it, whether or not a plan would get that far."""
    everything = strategies.line_up(settings, gathered.usage).telling_all().active
    return [
        {
            "strategy": active.name,
            "weight": active.weight,
            "proposes": next(
                (it.why for it in active.propose(gathered.state, now) if it.pod.metadata.key == pod.metadata.key),
                None,
            ),
        }
        for active in everything
    ]


def _guards(case: Case) -> list[Plain]:
    return [
        {
            "guard": guard.name,
            "code": str(guard.code),
            "against": [str(urgency) for urgency in Urgency if guard.holds(urgency)],
            "objection": guard.check(case),
        }
        for guard in guards.GUARDS
    ]


def _nodes(pod: Pod, gathered: Gathered) -> list[Plain]:
    """Every node, its own included, as if the pod had left its place."""
    picture = Picture(gathered.state)
    if pod.node_name:
        picture.take(pod)
    fitter = Fitter(picture)
    return [
        {
            "node": name,
            "own": name == pod.node_name,
            "load": report.percent(picture.load(name)),
            "misfits": [{"code": str(it.code), "text": it.text} for it in fitter.misfits(pod, name)],
        }
        for name in sorted(gathered.state.nodes)
    ]

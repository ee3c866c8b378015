"""How a pod is moved: evicted, doubled first, or copied.   Pure.

| owner | others Ready, budget free | others Ready, no budget | the only Ready one |
|---|---|---|---|
| Deployment, ReplicaSet | Evict | Surge | Surge |
| the same, scaled by somebody else | Evict | no | fallback |
| StatefulSet, other controllers | Evict | no | fallback |
| Job | Evict | no | Evict |
| none, opted in | Recreate | Recreate | Recreate |

A pod that is not Ready serves nobody and is evicted. An interruption takes the pod anyway: it is doubled where that
is possible and evicted where not. The fallback is `migrations.singleReplicaFallback`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.objects import Pod
from descheduler import scaling
from descheduler.guards.case import Case
from descheduler.migration import temporary_budget
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Code, Reason
from descheduler.workload import Workload
from policy.settings_moves import SingleReplicaFallback


@dataclass(frozen=True, slots=True)
class Question:
    """What is known beside the pod itself."""

    urgency: Urgency
    budget: tuple[Reason, ...] = ()
    """Why the API would not evict it now."""
    surging: Mapping[str, str] = field(default_factory=dict)
    """Surges under way, by UID of the workload."""
    asked: str = ""
    """The mode that somebody asked for."""


def choose(case: Case, question: Question) -> Mode | tuple[Reason, ...]:
    """The mode, or every reason why there is none that is safe."""
    found = case.workload
    if case.pod.metadata.controller is None or found is None:
        return _alone(question)
    if question.asked == Mode.RECREATE:
        return (
            Reason(Code.MODE_UNSUITED, f"{found.text} would replace it; only pods without a controller are copied"),
        )
    if question.asked == Mode.SURGE:
        against = _against(case, found, question)
        return (Reason(Code.MODE_UNSUITED, f"it cannot be doubled: {against}"),) if against else Mode.SURGE
    if question.asked == Mode.EVICT:
        return Mode.EVICT
    if found.kind == "Job" or not case.pod.ready:
        return question.budget or Mode.EVICT
    return _only(case, found, question) if _is_only(case.pod, case, found) else _several(case, found, question)


def _alone(question: Question) -> Mode | tuple[Reason, ...]:
    if question.asked in {Mode.EVICT, Mode.SURGE}:
        return (
            Reason(Code.MODE_UNSUITED, "nothing would replace it; a pod without a controller can only be copied"),
        )
    return question.budget or Mode.RECREATE


def _only(case: Case, found: Workload, question: Question) -> Mode | tuple[Reason, ...]:
    """Evicting it takes the service down until another one is Ready."""
    against = _against(case, found, question)
    if not against:
        return Mode.SURGE
    evict = case.context.settings.migrations.single_replica_fallback is SingleReplicaFallback.EVICT
    if evict or question.urgency is Urgency.INTERRUPTION:
        return question.budget or Mode.EVICT
    text = f"it is the only Ready replica and cannot be doubled first: {against}"
    advice = "a second replica, or migrations.singleReplicaFallback: evict, lets it move"
    return (Reason(Code.SINGLE_REPLICA, f"{text}; {advice}"), *question.budget)


def _several(case: Case, found: Workload, question: Question) -> Mode | tuple[Reason, ...]:
    if not question.budget:
        return Mode.EVICT
    if any(map(temporary_budget.is_ours, case.context.state.budgets_of(case.pod))):
        return question.budget  # it is there because of a move, and goes with it: nothing worth another replica
    against = _against(case, found, question)
    if not against:
        return Mode.SURGE
    return tuple(Reason(it.code, f"{it.text}, and it cannot be doubled: {against}") for it in question.budget)


def _against(case: Case, found: Workload, question: Question) -> str:
    subject = scaling.Subject(case.pod, found, case.context.state, case.context.autoscalers)
    return " and ".join(scaling.hindrances(subject, question.surging))


def _is_only(pod: Pod, case: Case, found: Workload) -> bool:
    """Whether no other pod of the workload serves while this one is away."""
    return not any(
        other.ready and other.metadata.deletion_timestamp is None and other.metadata.uid != pod.metadata.uid
        for _, other in case.context.state.siblings(found)
    )

"""How a pod is moved: evicted, doubled first, or copied.   Pure.

| owner | others Ready, budget free | others Ready, no budget | the only Ready one |
|---|---|---|---|
| Deployment, ReplicaSet | Evict | Surge | Surge |
| the same, scaled by somebody else | Evict | no | fallback |
| StatefulSet, other controllers | Evict | no | fallback |
| Job | Evict | no | Evict |
| none, opted in | Recreate | Recreate | Recreate |

A pod that is not Ready serves nobody and is evicted. The fallback is `migrations.singleReplicaFallback`.
An interruption takes the pod anyway: only the last Ready one, or what no budget would ever let go, is doubled, and
only if there is time for it. Everything else is evicted as soon as its budget allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cluster.objects import Deployment, Pod, PodDisruptionBudget, ReplicaSet
from descheduler import grace, scaling
from descheduler.guards.case import Case
from descheduler.migration import temporary_budget
from descheduler.node_state import Key
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Code, Reason
from descheduler.workload import Workload
from policy import durations
from policy.settings_moves import SingleReplicaFallback

USUAL_START: Final = timedelta(seconds=30)
"""From being placed to Ready, where the pod does not tell."""
LONGEST_START: Final = timedelta(minutes=5)
"""More than that was no start: the pod became Ready a second time."""
REACTION: Final = timedelta(seconds=5)
"""What controllers, scheduler and we ourselves take."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is known beside the pod itself."""

    urgency: Urgency
    budget: tuple[Reason, ...] = ()
    """Why the API would not evict it now."""
    surging: Mapping[Key, str] = field(default_factory=dict)
    """Surges under way, by UID of the workload."""
    asked: str = ""
    """The mode that somebody asked for."""
    deadline: datetime | None = None
    """When the node is gone."""


def choose(case: Case, question: Question) -> Mode | tuple[Reason, ...]:
    """The mode, or every reason why there is none that is safe."""
    found = case.workload
    if case.pod.metadata.controller is None or found is None:
        return _alone(case, question)
    if question.asked:
        return _asked(case, found, question)
    if question.urgency is Urgency.INTERRUPTION:
        return _forced(case, found, question)
    if found.kind == "Job" or not case.pod.ready:
        return question.budget or Mode.EVICT
    return _only(case, found, question) if _is_only(case.pod, case, found) else _several(case, found, question)


def _asked(case: Case, found: Workload, question: Question) -> Mode | tuple[Reason, ...]:
    if question.asked == Mode.RECREATE:
        return (
            Reason(Code.MODE_UNSUITED, f"{found.text} would replace it; only pods without a controller are copied"),
        )
    if question.asked == Mode.SURGE:
        against = _against(case, found, question)
        return (Reason(Code.MODE_UNSUITED, f"it cannot be doubled: {against}"),) if against else Mode.SURGE
    return Mode.EVICT


def _alone(case: Case, question: Question) -> Mode | tuple[Reason, ...]:
    if question.asked in {Mode.EVICT, Mode.SURGE}:
        return (
            Reason(Code.MODE_UNSUITED, "nothing would replace it; a pod without a controller can only be copied"),
        )
    if question.urgency is Urgency.INTERRUPTION or _frees_its_budget(case):
        return Mode.RECREATE  # whatever refuses the eviction, the node takes the pod, and the copy is left
    return question.budget or Mode.RECREATE


def _frees_its_budget(case: Case) -> bool:
    """Whether a copy that serves makes up for the loss of the pod: it counts in the same budget."""
    budgets = case.context.state.budgets_of(case.pod)
    return len(budgets) == 1 and all(
        it.status.observed_generation >= it.metadata.generation
        and 0 < it.status.desired_healthy <= it.status.current_healthy
        for it in budgets
    )


def _forced(case: Case, found: Workload, question: Question) -> Mode | tuple[Reason, ...]:
    """A budget that allows nothing now is waited for with the eviction at hand, so that no permission is missed. Our
    own temporary ones go when an interruption comes.
    """
    budgets, several = _foreign(case), is_crowded(case)
    never = several or any(it.status.expected_pods <= it.status.desired_healthy for it in budgets)
    missed = case.pod.ready and (never or _is_only(case.pod, case, found))
    if missed and _in_time(case, found, question.deadline) and not _against(case, found, question):
        return Mode.SURGE
    waits = several or (never and found.key in question.surging)  # its turn to be doubled comes
    return (question.budget or Mode.EVICT) if waits else Mode.EVICT


def is_crowded(case: Case) -> bool:
    """Whether several budgets select the pod, and so nobody can evict it. Ours go when theirs come."""
    return len(_foreign(case)) > 1


def _foreign(case: Case) -> list[PodDisruptionBudget]:
    return [it for it in case.context.state.budgets_of(case.pod) if not temporary_budget.is_ours(it)]


def _in_time(case: Case, found: Workload, deadline: datetime | None) -> bool:
    """Whether another pod would be Available, and this one have stopped, before the node is gone. How long a start
    takes, the pod itself has shown; a time that is out of proportion tells of trouble later on.
    """
    if deadline is None:
        return True
    pod, took = case.pod, USUAL_START
    if pod.ready_since is not None and pod.start_time is not None:
        shown = pod.ready_since - pod.start_time
        took = shown if timedelta() <= shown < LONGEST_START else took
    return case.context.now + took + _proving(found) + grace.own(pod) + REACTION < deadline


def _proving(found: Workload) -> timedelta:
    """How long a Ready pod has to stay so before it counts as Available."""
    scaled = found.object if isinstance(found.object, Deployment | ReplicaSet) else None
    return durations.of_seconds(scaled.spec.min_ready_seconds if scaled is not None else 0)


def _only(case: Case, found: Workload, question: Question) -> Mode | tuple[Reason, ...]:
    """Evicting it takes the service down until another one is Ready."""
    against = _against(case, found, question)
    if not against:
        return Mode.SURGE
    if case.context.settings.migrations.single_replica_fallback is SingleReplicaFallback.EVICT:
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

"""Disruption budgets over a whole plan: what the eviction API would answer, move after move.   Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cluster.objects import Pod, PodDisruptionBudget
from descheduler.migration import temporary_budget
from descheduler.node_state import Key
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState

ALWAYS_ALLOW: Final = "AlwaysAllow"


class Budgets:
    """Counts the disruptions that are on their way, which the controller has not seen yet."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._booked: dict[Key, int] = {}

    def reasons(self, pod: Pod) -> tuple[Reason, ...]:
        """Why the API would refuse to evict the pod now."""
        if _free(pod):
            return ()
        budgets = self._state.budgets_of(pod)
        if len(budgets) > 1:
            names = ", ".join(sorted(it.metadata.name for it in budgets))
            return (Reason(Code.PDB_MULTIPLE, f"PodDisruptionBudgets {names} all select it"),)
        return tuple(found for found in (self._refusal(pod, it) for it in budgets) if found is not None)

    def book(self, pod: Pod) -> None:
        """The pod will be evicted, or pushed out. A pod that costs its budget nothing books nothing."""
        for key in self._charged(pod):
            self._booked[key] = self._booked.get(key, 0) + 1

    def broken(self, pods: Sequence[Pod]) -> int:
        """How many of them would go against their budget if they went one after the other. Books nothing."""
        booked: list[Key] = []
        count = 0
        for pod in pods:
            count += bool(self.reasons(pod))
            booked += self._charged(pod)
            self.book(pod)
        for key in booked:
            self._booked[key] -= 1
        return count

    def _charged(self, pod: Pod) -> list[Key]:
        """The budgets that losing the pod costs something."""
        if _free(pod):
            return []
        budgets = self._state.budgets_of(pod)
        return [it.metadata.key for it in budgets if not self._costs_nothing(pod, it)]

    def _refusal(self, pod: Pod, budget: PodDisruptionBudget) -> Reason | None:
        if self._costs_nothing(pod, budget):
            return None
        name, status = budget.metadata.name, budget.status
        if status.observed_generation < budget.metadata.generation:
            text = f"PodDisruptionBudget {name} has changed and its controller has not counted it again yet"
            return Reason(Code.PDB_NO_BUDGET, text, temporary_budget.is_ours(budget))
        booked = self._booked.get(budget.metadata.key, 0)
        if status.disruptions_allowed - booked > 0:
            return None
        taken = f", {booked} of them taken by moves before it" if booked else ""
        text = f"PodDisruptionBudget {name} allows {status.disruptions_allowed} disruptions{taken}"
        return Reason(Code.PDB_NO_BUDGET, text, temporary_budget.is_ours(budget))

    def _costs_nothing(self, pod: Pod, budget: PodDisruptionBudget) -> bool:
        """Whether the pod counts as broken already, so that losing it disrupts nothing."""
        if pod.ready:
            return False
        if budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW:
            return True
        healthy = budget.status.current_healthy - self._booked.get(budget.metadata.key, 0)
        return healthy >= budget.status.desired_healthy > 0


def _free(pod: Pod) -> bool:
    """Whether the API evicts the pod without asking any budget."""
    return pod.status.phase == "Pending" or pod.terminal or pod.metadata.deletion_timestamp is not None

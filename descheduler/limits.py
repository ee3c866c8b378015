"""How many moves one pass may make: in all, off a node, in a namespace, of a workload.   Pure."""

from __future__ import annotations

from collections import Counter
from typing import Final

from cluster.objects import Pod
from descheduler.node_state import Key
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState
from descheduler.workload import Workload
from policy.settings import Settings

MANY_REPLICAS: Final = 10
SOME_REPLICAS: Final = 4
TENTH: Final = 10


class Limits:
    """Moves under way count as moves of this pass: what is limited is what happens at the same time."""

    def __init__(self, state: ClusterState, settings: Settings) -> None:
        self._state = state
        self._total_limit = settings.max_reschedule_pods
        self._limits = settings.limits
        self._total = 0
        self._by_node: Counter[str] = Counter()
        self._by_namespace: Counter[str] = Counter()
        self._by_workload: Counter[Key] = Counter()

    @property
    def exhausted(self) -> bool:
        """Whether the pass as a whole can make no further voluntary move."""
        return self._total >= self._total_limit

    def reasons(self, pod: Pod) -> tuple[Reason, ...]:
        """Every limit that the move of this pod would exceed."""
        node, namespace = pod.node_name, pod.metadata.namespace
        found: list[Reason] = []
        if self.exhausted:
            found.append(self.total_reason())
        if self._by_node[node] >= self._limits.per_node:
            text = f"{self._by_node[node]} moves off node {node} are planned or under way, limits.perNode allows"
            found.append(Reason(Code.LIMIT_NODE, f"{text} {self._limits.per_node}"))
        if self._by_namespace[namespace] >= self._limits.per_namespace:
            text = f"{self._by_namespace[namespace]} moves in namespace {namespace} are planned or under way"
            allowed = f"limits.perNamespace allows {self._limits.per_namespace}"
            found.append(Reason(Code.LIMIT_NAMESPACE, f"{text}, {allowed}"))
        found.extend(self._of_workload(pod))
        return tuple(found)

    def total_reason(self) -> Reason:
        """The limit that ends a pass."""
        text = f"{self._total} moves are planned or under way, maxReschedulePods allows {self._total_limit}"
        return Reason(Code.LIMIT_TOTAL, text)

    def book(self, pod: Pod, source: str) -> None:
        """The pod will be moved, or is on its way."""
        self.book_names(source, self._identity(pod, self._state.workload(pod)))

    def book_names(self, source: str, workload: Key) -> None:
        """The same for a pod that is gone, of which only these are known."""
        self._total += 1
        self._by_node[source] += 1
        self._by_namespace[workload[0]] += 1
        self._by_workload[workload] += 1

    def _of_workload(self, pod: Pod) -> tuple[Reason, ...]:
        workload = self._state.workload(pod)
        moving = self._by_workload[self._identity(pod, workload)]
        if workload is None or not moving:
            return ()  # the first is always allowed, and most pods are the first
        allowed, said_by = self._allowed(workload)
        if moving < allowed:
            return ()
        text = f"{moving} pods of {workload.text} are moving or will be, {said_by} {allowed}"
        return (Reason(Code.LIMIT_WORKLOAD, text),)

    def _allowed(self, workload: Workload) -> tuple[int, str]:
        if self._limits.per_workload is not None:
            return self._limits.per_workload, "limits.perWorkload allows"
        replicas = workload.replicas
        if replicas is None:
            replicas = sum(1 for _ in self._state.siblings(workload))
        return by_replicas(replicas), f"for {replicas} replicas the limit is"

    def moving(self, pod: Pod) -> int:
        """Moves of its workload that are under way or booked."""
        return self._by_workload[self._identity(pod, self._state.workload(pod))]

    def _identity(self, pod: Pod, workload: Workload | None) -> Key:
        return (pod.metadata.namespace, pod.metadata.uid) if workload is None else workload.key


def by_replicas(replicas: int) -> int:
    """Pods of a workload that may move at once where nobody said: one below 4, two up to 10, a tenth above."""
    if replicas > MANY_REPLICAS:
        return replicas // TENTH
    return 2 if replicas >= SOME_REPLICAS else 1

"""Why a pod is not moved: the closed set of codes, each with what it means.   Every "no" is one of them.

A code is for metrics, tests and scripts; the sentence that goes with it names the selector, the budget or the number
that decided, for the person who asks.
"""

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """The closed set. The docstring under each is its line in the documentation."""

    # ---- guards: may this pod be moved at all?
    DAEMONSET = "DAEMONSET"
    """It belongs to a DaemonSet, which would put it back on the same node."""
    MIRROR = "MIRROR"
    """It is a static pod of the kubelet, or the API's mirror of one."""
    TERMINATING = "TERMINATING"
    """It is being deleted already."""
    OPTED_OUT = "OPTED_OUT"
    """Pod, workload, namespace, node or settings say that it must not be moved."""
    INVALID_VALUE = "INVALID_VALUE"
    """Pod, workload, namespace or node say something in `rescheduling` that cannot be read, which counts as a no."""
    NO_CONTROLLER = "NO_CONTROLLER"
    """Nothing would replace it, and its owner has not opted in to have it copied."""
    LOCAL_STORAGE = "LOCAL_STORAGE"
    """It keeps data on its node (emptyDir or hostPath) that a move would lose."""
    SAFE_TO_EVICT_FALSE = "SAFE_TO_EVICT_FALSE"
    """The autoscaler's annotation, or a like one, says that it must not be evicted."""
    DO_NOT_DISRUPT = "DO_NOT_DISRUPT"
    """Karpenter's annotation asks to leave it alone, for ever or for a while."""
    EXCLUDED_NAMESPACE = "EXCLUDED_NAMESPACE"
    """Its namespace is excluded by the settings."""
    PRIORITY_TOO_HIGH = "PRIORITY_TOO_HIGH"
    """Its priority is at or above the threshold of the settings."""
    TOO_YOUNG = "TOO_YOUNG"
    """It started too short a time ago."""
    NOT_READY = "NOT_READY"
    """It is not Ready, so moving it would hide its trouble."""
    ALREADY_MIGRATING = "ALREADY_MIGRATING"
    """A move of this pod is under way."""
    COOLING_DOWN = "COOLING_DOWN"
    """The last move of its workload did not help; it rests for a while."""
    OUTSIDE_WINDOW = "OUTSIDE_WINDOW"
    """No window of the settings is open."""
    PINNED = "PINNED"
    """Its own selector ties it to its node."""
    JOB = "JOB"
    """It belongs to a Job, and a Job is never moved without need."""
    JOB_WOULD_FAIL = "JOB_WOULD_FAIL"
    """Evicting it would fail its Job."""
    PENDING_REVISION = "PENDING_REVISION"
    """Its replacement would be of another revision than the pod itself."""
    STATEFULSET_BUSY = "STATEFULSET_BUSY"
    """Another pod of its StatefulSet is moving or not Ready."""
    NODE_SILENT = "NODE_SILENT"
    """Its node says nothing, and nothing would come in its place before the node does."""
    FOREIGN_SCHEDULER = "FOREIGN_SCHEDULER"
    """Another scheduler places it, by rules we do not know."""
    RESOURCE_CLAIMS = "RESOURCE_CLAIMS"
    """It holds claimed devices, whose place we cannot foresee."""

    # ---- planner: would the move be right?
    NO_NODE_FITS = "NO_NODE_FITS"
    """No other node could take it."""
    PDB_NO_BUDGET = "PDB_NO_BUDGET"
    """A PodDisruptionBudget allows no further disruption."""
    PDB_MULTIPLE = "PDB_MULTIPLE"
    """More than one PodDisruptionBudget selects it, and the API refuses every eviction of such a pod."""
    SINGLE_REPLICA = "SINGLE_REPLICA"
    """It is the only Ready replica, and a second one cannot be started first."""
    ALREADY_THERE = "ALREADY_THERE"
    """It runs on the node that it was asked to move to."""
    MODE_UNSUITED = "MODE_UNSUITED"
    """The mode that was asked for does not suit the pod."""
    REPLICAS_CONTESTED = "REPLICAS_CONTESTED"
    """Somebody else changed the replicas, or the deletion cost, while a move was counting on them."""
    NO_QUOTA = "NO_QUOTA"
    """Its controller could not make one pod more, mostly for want of quota."""
    LIMIT_TOTAL = "LIMIT_TOTAL"
    """The pass has used up its moves."""
    LIMIT_NODE = "LIMIT_NODE"
    """The pass has used up the moves of this node."""
    LIMIT_NAMESPACE = "LIMIT_NAMESPACE"
    """The pass has used up the moves of this namespace."""
    LIMIT_WORKLOAD = "LIMIT_WORKLOAD"
    """The pass has used up the moves of this workload."""
    NO_IMPROVEMENT = "NO_IMPROVEMENT"
    """Every node that could take it would be no better off than its own."""
    METRICS_STALE = "METRICS_STALE"
    """The measurements are too old to act on, or some are from before the last move."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One "no", with its sentence."""

    code: Code
    text: str
    routine: bool = False
    """It only waits for a move of ours to end: true for who asks, and no news for anybody else."""

    def __str__(self) -> str:
        """As people see it."""
        return f"{self.code}: {self.text}"

"""What makes pods and what protects them: controllers, scale, autoscalers, disruption budgets.

Templates are not kept: a pod's own spec says what its siblings look like.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from cluster.meta import Condition, LabelSelector, ObjectMeta, Part

IntOrString = int | str
"""A number, or a percentage such as `50%`."""


class RollingUpdate(Part, frozen=True):
    """How far a rollout may go beyond or below the wanted number."""

    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    partition: int = 0


class UpdateStrategy(Part, frozen=True):
    """How a controller replaces pods: RollingUpdate, Recreate, OnDelete."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Part, frozen=True):
    """What is wanted."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    progress_deadline_seconds: int | None = None
    paused: bool = False


class WorkloadStatus(Part, frozen=True):
    """What is there, for every controller that counts replicas; each fills in the fields it knows."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[Condition, ...] = ()


class Deployment(Part, frozen=True):
    """A Deployment."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicaSetSpec(Part, frozen=True):
    """What is wanted."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    min_ready_seconds: int = 0


class ReplicaSet(Part, frozen=True):
    """A ReplicaSet; also the shape of a ReplicationController but for its selector."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: WorkloadStatus = WorkloadStatus()


class StatefulSetSpec(Part, frozen=True):
    """What is wanted."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    update_strategy: UpdateStrategy = UpdateStrategy()
    pod_management_policy: str = "OrderedReady"
    min_ready_seconds: int = 0


class StatefulSet(Part, frozen=True):
    """A StatefulSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: WorkloadStatus = WorkloadStatus()


class DaemonSetSpec(Part, frozen=True):
    """What is wanted."""

    selector: LabelSelector = LabelSelector()
    update_strategy: UpdateStrategy = UpdateStrategy()


class DaemonSet(Part, frozen=True):
    """A DaemonSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()


class OnPodCondition(Part, frozen=True):
    """A pod condition that a failure rule looks for."""

    type: str = ""
    status: str = "True"


class OnExitCodes(Part, frozen=True):
    """Exit codes that a failure rule looks for: In or NotIn these."""

    operator: str = ""
    values: tuple[int, ...] = ()


class FailureRule(Part, frozen=True):
    """What a failed pod means for its Job: Ignore, Count, FailJob, FailIndex. It looks at one of the two."""

    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ()


class PodFailurePolicy(Part, frozen=True):
    """Rules, the first that matches holds."""

    rules: tuple[FailureRule, ...] = ()


class JobSpec(Part, frozen=True):
    """What is wanted."""

    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    active_deadline_seconds: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    suspend: bool = False


class UncountedTerminatedPods(Part, frozen=True):
    """UIDs of pods that have ended and are not in the counts yet."""

    failed: tuple[str, ...] = ()


class JobStatus(Part, frozen=True):
    """How far it got."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    uncounted_terminated_pods: UncountedTerminatedPods = UncountedTerminatedPods()
    conditions: tuple[Condition, ...] = ()
    completion_time: datetime | None = None


class Job(Part, frozen=True):
    """A Job."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class ScaleSpec(Part, frozen=True):
    """The wanted number; the API leaves a zero out."""

    replicas: int = 0


class ScaleStatus(Part, frozen=True):
    """The number that is there, and the selector as text."""

    replicas: int = 0
    selector: str = ""


class Scale(Part, frozen=True):
    """The scale subresource of a controller."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class CrossVersionObjectReference(Part, frozen=True):
    """A controller by kind and name, in the same namespace."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class AutoscalerSpec(Part, frozen=True):
    """Whom it scales and how far."""

    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: int = 1
    max_replicas: int = 0


class HorizontalPodAutoscaler(Part, frozen=True):
    """An autoscaler: somebody else who writes `replicas`."""

    metadata: ObjectMeta = ObjectMeta()
    spec: AutoscalerSpec = AutoscalerSpec()


class BudgetSpec(Part, frozen=True):
    """How many pods must stay. A None selector selects nothing, an empty one the whole namespace."""

    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"


class BudgetStatus(Part, frozen=True):
    """What the disruption controller last counted, valid if `observed_generation` is that of the metadata."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: Mapping[str, datetime] = {}
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Part, frozen=True):
    """A budget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

"""Every label, annotation and taint key of the product, and the foreign ones it honours.

The only place that spells them. `values` says what may stand in them.
"""

import re
from dataclasses import dataclass, fields
from typing import Final

DEFAULT_PREFIX: Final = "scheduler.alpha.kubernetes.io/"

# Ours, but not under the configurable prefix: they name API objects and must survive a change of prefix.
API_GROUP: Final = "spotshift.dev"
FINALIZER: Final = "spotshift.dev/migration"

# Of Kubernetes itself.
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
CAPACITY: Final = "node.kubernetes.io/capacity"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
MIRROR_POD: Final = "kubernetes.io/config.mirror"
DEPLOYMENT_REVISION: Final = "deployment.kubernetes.io/revision"
CONTROLLER_REVISION_HASH: Final = "controller-revision-hash"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_TRACKING: Final = "batch.kubernetes.io/job-tracking"
JOB_INDEX_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"

# Opt-outs of other projects on pods, all honoured.
DESCHEDULER_EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
DESCHEDULER_PREFER_NO_EVICTION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
DESCHEDULER_REQUEST_EVICT_ONLY: Final = "descheduler.alpha.kubernetes.io/request-evict-only"
DESCHEDULER_EVICTION_IN_PROGRESS: Final = "descheduler.alpha.kubernetes.io/eviction-in-progress"
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_TO_EVICT_LOCAL_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
ENABLE_DS_EVICTION: Final = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
KOORDINATOR_EVICTION_COST: Final = "scheduling.koordinator.sh/eviction-cost"
CAST_REMOVAL_DISABLED: Final = "autoscaling.cast.ai/removal-disabled"
OCEAN_RESTRICT_SCALE_DOWN: Final = "spotinst.io/restrict-scale-down"

RESERVED: Final = ("kubernetes.io/", "k8s.io/")
"""Domains that Kubernetes keeps for itself. The policies that fence our ServiceAccount let it write under none
of them but the default, so that it cannot pass for a part of Kubernetes."""
PREFIX_FORMAT: Final = (
    "a DNS name of at most 253 characters and '/', such as scheduler.alpha.kubernetes.io/ or example.com/, "
    "but no other that ends in kubernetes.io/ or k8s.io/"
)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Our keys under one prefix; the field name is the key with `_` for `-`."""

    prefix: str
    maintenance: str
    """Node label: drain this node."""
    rescheduling: str
    """Pod, workload, namespace and node label or annotation: opt in or out; a node can only opt out."""
    spot: str
    """Pod, workload and namespace annotation: placement intent."""
    spot_percentage: str
    """Pod and workload annotation: share of the replicas that should be on spot."""
    min_on_demand: str
    """Pod and workload annotation: replicas that must stay on on-demand."""
    mixed: str
    """Pod label that the webhook sets on pods of workloads with a mix: by it the webhook watches and counts them."""
    capacity: str
    """Pod annotation: the side of the mix that the webhook chose for this pod, `spot` or `on-demand`."""
    decided_by: str
    """Pod annotation: which replica of the webhook chose it, so that a replica knows its own choices when it sees
    them."""
    tier: str
    """Pod, workload and namespace annotation: priority class and default spot intent."""
    migration_id: str
    """Pod label: the move this pod takes part in."""
    migration_status: str
    """Pod label: how far that move is."""
    migrated_from: str
    """Pod label: source node, shortened by `values.label_for_node` where it is too long."""
    migration_reason: str
    """Pod label: name of the strategy that asked for the move."""
    migration_time: str
    """Pod annotation: when the move started."""
    original_pod: str
    """Pod annotation on the replacement: UID of the pod it stands in for."""
    original_pod_name: str
    """Pod annotation on the replacement: name of that pod."""
    migration_target: str
    """Pod annotation on the replacement: node the hint asked for."""
    managed: str
    """Pod label that the webhook sets on every pod it looks after."""
    cordoned_by: str
    """Node annotation: this cordon is ours, so we may lift it."""
    moving: str
    """Workload label: the move under way, for `kubectl describe`; gone with the last one. Not an annotation: those a
    Deployment hands down to its ReplicaSets and never takes back."""
    maintenance_status: str
    """Node annotation: how far its drain is."""
    maintenance_remaining: str
    """Node annotation: which pods are still on it, and why."""
    maintenance_since: str
    """Node annotation: when it took its place among the nodes that are to be drained."""
    maintenance_deadline: str
    """Node annotation: by when it has to be empty."""
    interruption_cause: str
    """Node annotation: why we leave it."""
    interruption_since: str
    """Node annotation: when that was first seen, for signals that carry no time of their own."""
    interruption_deadline: str
    """Node annotation: when the node is gone, whatever becomes of the signal until then."""
    draining: str
    """Node taint while we empty the node."""
    emergency_stop: str
    """Annotation on the settings ConfigMap: `true` stops every new side effect."""

    @property
    def migration_labels(self) -> tuple[str, ...]:
        """What the webhook strips from pods when a user copied it from a moved one."""
        return (self.migration_id, self.migration_status, self.migrated_from, self.migration_reason)

    @property
    def migration_annotations(self) -> tuple[str, ...]:
        """The annotations that go with `migration_labels`."""
        return (self.migration_time, self.original_pod, self.original_pod_name, self.migration_target)

    @property
    def all(self) -> tuple[str, ...]:
        """Every key, for the policy that fences our ServiceAccount to its own metadata."""
        return tuple(getattr(self, name) for name in _NAMES)


_NAMES: Final = tuple(field.name for field in fields(Keys) if field.name != "prefix")


def under(prefix: str = DEFAULT_PREFIX) -> Keys:
    """The keys under a prefix; the settings have checked the prefix with `is_prefix`."""
    return Keys(prefix=prefix, **{name: prefix + name.replace("_", "-") for name in _NAMES})


def is_prefix(text: str) -> bool:
    """Whether every key built from this prefix is one that the API server accepts, and accepts from us."""
    ours = text == DEFAULT_PREFIX or not text.endswith(RESERVED)
    return ours and len(text) <= 254 and _PREFIX.fullmatch(text) is not None

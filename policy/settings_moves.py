"""Settings of a move: how it is carried out, how many at once, what is remembered of it."""

from datetime import timedelta
from enum import StrEnum

import msgspec

from policy.settings_types import (
    AffinityWeight,
    Count,
    Factor,
    Grace,
    Group,
    Interval,
    Limit,
    Memory,
    OverMean,
    Priority,
    Retries,
    Wait,
    Workers,
)


class Coordination(StrEnum):
    """Whether replacements are told where to go."""

    GUIDED = "guided"
    UNGUIDED = "unguided"


class SingleReplicaFallback(StrEnum):
    """What to do with the only replica of a workload that cannot be doubled first."""

    WAIT = "wait"
    EVICT = "evict"


class TemporaryPdb(Group, frozen=True, kw_only=True):
    """A disruption budget of ours while a workload without one is moved."""

    enabled: bool = True
    """Create it. On, because a workload without a budget is exactly the one nobody else protects."""
    max_unavailable: Limit = 1
    """Pods of the workload that may be down at once. 1 is the most careful value that lets a move happen."""


class Hint(Group, frozen=True, kw_only=True):
    """Weights of the node affinity that guides a replacement, of at most 100 each.

    Measured on a real scheduler: with these, 196 of 200 replacements went to their target and none back.
    """

    target_weight: AffinityWeight = 100
    """Weight of the target node. The largest there is, since every other preference competes with it."""
    avoid_source_weight: AffinityWeight = 10
    """Weight of staying away from the source. From 50 up it starts to push replacements off their target."""
    max_spot_weight: AffinityWeight = 10
    """Most that our own spot preference may weigh beside a hint. More drowns a target on on-demand."""


class Migrations(Group, frozen=True, kw_only=True):
    """How one move is carried out."""

    coordination: Coordination = Coordination.GUIDED
    """`guided` tells the replacement its target; `unguided` only evicts. Guided moves do not bounce back."""
    workers: Workers = 4
    """Moves carried out at the same time. Each mostly waits, so four keep the API server's load small."""
    max_retries: Retries = 3
    """Further attempts of a step that failed, before the move is rolled back."""
    retry_backoff: Interval = timedelta(seconds=1)
    """Pause before the first retry; doubled for each further one."""
    ready_timeout: Interval = timedelta(minutes=5)
    """Longest wait for a replacement to become Ready. Covers pulling a large image on a new node. A StatefulSet makes
    one only when the old pod is gone: there it counts from then."""
    grace_period_seconds: Grace | None = None
    """Seconds that a pod has to stop, evicted or deleted at a deadline. Unset: its own, which its author chose."""
    hint_propagation: Wait = timedelta(seconds=1)
    """Pause between publishing a hint and the eviction, so that every webhook replica has seen it."""
    single_replica_fallback: SingleReplicaFallback = SingleReplicaFallback.WAIT
    """`wait` or `evict` where a single replica cannot be doubled first. Waiting takes no service down."""
    temporary_pdb: TemporaryPdb = TemporaryPdb()
    """Disruption budget for workloads that have none."""
    hint: Hint = Hint()
    """Weights of the guiding affinity."""


class Limits(Group, frozen=True, kw_only=True):
    """How much may move in one pass, beside `maxReschedulePods` for all. Holds back voluntary moves only."""

    per_node: Limit = 5
    """Moves off one node. Half of the default total, so that one node cannot use up a pass."""
    per_namespace: Limit = 10
    """Moves within one namespace. As many as the default total: namespaces differ too much for less."""
    per_workload: Limit | None = None
    """Moves of one workload. Unset: by its replicas, one below 4, two up to 10, a tenth of them above."""
    min_pod_age: Wait = timedelta(minutes=5)
    """Younger pods are left alone. As long as `readyTimeout`, so that a replacement settles first."""
    priority_threshold: Priority = 2_000_000_000
    """Pods of this priority or higher are left alone. The value at which Kubernetes' system classes begin."""
    minimum_improvement: OverMean = 1.0
    """Points of load by which a target must be better than the source. Less is not worth a restart."""


class Backoff(Group, frozen=True, kw_only=True):
    """How long a workload rests after a move that did not help."""

    initial: Interval = timedelta(minutes=5)
    """Rest after the first one. As long as a replacement may take to become Ready."""
    factor: Factor = 2.0
    """By how much each further one lengthens it."""
    max: Memory = timedelta(hours=6)
    """Longest rest. A workload that could not be moved in the morning is tried again in the afternoon."""


class History(Group, frozen=True, kw_only=True):
    """Which finished moves are kept. Back-off is computed from them, so they must outlive it."""

    history_ttl: Memory = msgspec.field(name="historyTTL", default=timedelta(hours=24))
    """How long a finished move is kept. At least the longest rest; a day tells what happened last night."""
    per_workload: Count = 10
    """Finished moves kept for one workload. At least as many as it takes to reach the longest rest."""
    total: Count = 1000
    """Finished moves kept in all. Bounds what the API server has to store for us in a large cluster."""

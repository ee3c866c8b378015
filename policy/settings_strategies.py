"""Settings of the strategies: weight and arguments of each.

The thresholds that people set first stand at the top of the document, where they have always been.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from policy.settings_types import Count, Group, Interval, Limit, Url, Wait, Weight, WholePercent


class OnDeadline(StrEnum):
    """What happens to pods that a budget still holds when their node has to be empty."""

    RESPECT = "respect"
    DELETE = "delete"


class WhenNothingFits(StrEnum):
    """What a drain does with pods that fit on no other node."""

    WAIT = "wait"
    EVICT = "evict"


class UsageSource(StrEnum):
    """Where measured usage comes from."""

    AUTO = "auto"
    METRICS = "metrics"
    PROMETHEUS = "prometheus"
    REQUESTS = "requests"


class SpotInterruption(Group, frozen=True, kw_only=True):
    """Leave nodes that are about to be taken away."""

    weight: Weight = 200
    """Order among strategies. The highest: it is the only one with a deadline of minutes."""
    not_ready_after: Interval = timedelta(seconds=60)
    """A spot node that is NotReady this long counts as interrupted. A kubelet restart takes less."""
    unhealthy_zone_percent: WholePercent = 55
    """Not if that share of its zone or of all spot nodes, in percent, is NotReady: then the network failed, not the
    node. The same share from which Kubernetes' own node controller slows down."""
    on_deadline: OnDeadline = OnDeadline.RESPECT
    """`respect` budgets that still refuse an eviction at the deadline, or `delete` the pod past them, early enough
    for its grace period. Respect, because a budget is its owner's word; the node's end will take the pod either way.
    Deleting takes the right that the component manifests/components/delete gives."""
    preempt: bool = True
    """Let a `critical` pod that fits nowhere count on kube-scheduler to push out pods of lower priority. On: that is
    what its priority is for, and only interruptions do it."""


class NodeMaintenance(Group, frozen=True, kw_only=True):
    """Empty nodes that carry a maintenance signal."""

    weight: Weight = 120
    """Order among strategies. Above balancing: somebody is waiting for this node."""
    when_nothing_fits: WhenNothingFits = WhenNothingFits.WAIT
    """`wait` or `evict` pods that fit nowhere. Evicting lets an autoscaler see them, and needs one."""
    job_timeout: Wait = timedelta(hours=1)
    """How long a drain waits for Jobs to finish by themselves."""
    max_nodes: Limit = 1
    """Nodes that are emptied at the same time; all that ask for it are cordoned at once. One disturbs least."""
    on_deadline: OnDeadline = OnDeadline.RESPECT
    """`respect` budgets that still refuse an eviction when the node's deadline annotation has passed, or `delete` the
    pod past them, for which the component manifests/components/delete gives the right."""


class LoadBalancing(Group, frozen=True, kw_only=True):
    """Level the load of nodes."""

    weight: Weight = 100
    """Order among strategies. The reference the others are set against."""


class ResourceOptimization(Group, frozen=True, kw_only=True):
    """Relieve nodes whose measured usage is too high."""

    weight: Weight = 80
    """Order among strategies. Below balancing, which often solves the same problem with fewer moves."""
    source: UsageSource = UsageSource.AUTO
    """`metrics` (metrics.k8s.io), `prometheus`, `requests`, or `auto`: the first of them that answers, Prometheus if
    its address is given. Nothing stands in for one that is named."""
    prometheus_url: Url = msgspec.field(name="prometheusURL", default="")
    """Address of Prometheus, up to where `/api/v1` follows; needed if it is the source, and for `auto` to ask it."""
    max_age: Interval = timedelta(minutes=2)
    """Older measurements are not used. Long enough to get over a missed sample or two."""


class SpotMix(Group, frozen=True, kw_only=True):
    """Bring workloads to the mix of spot and on-demand that they ask for."""

    weight: Weight = 70
    """Order among strategies. A wish of the workload, after the health of nodes."""
    tolerance: Count = 0
    """Pods by which a workload may be off its percentage before one is moved. More than 0 saves moves where an
    autoscaler changes the number of replicas all day; `min-on-demand` is kept exactly in any case."""
    cool_down: Wait = timedelta(minutes=15)
    """How long a workload is not moved to spot after an interruption took pods of it, nor moved at all after such a
    move ended on the wrong side. As for SpotReclaim."""


class SpotReclaim(Group, frozen=True, kw_only=True):
    """Bring pods back to spot when there is room again."""

    weight: Weight = 60
    """Order among strategies. It only saves money, so it comes last."""
    max_pods: Limit = 10
    """Moves back to spot under way at the same time. As many as `maxReschedulePods`; less leaves other strategies
    their part of a pass."""
    min_stay: Wait = timedelta(minutes=10)
    """A pod runs on on-demand for so long before it goes back. Spot that came back a minute ago may go again."""
    cool_down: Wait = timedelta(minutes=15)
    """How long a workload stays where it is after an interruption took pods of it, or after a way back that did not
    end on spot. Longer than most waves of interruptions last."""


class ThirdParty(Group, frozen=True, kw_only=True):
    """A strategy from an installed package."""

    weight: Weight = 50
    """Order among strategies. Below all of our own until somebody decides otherwise."""
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    """Arguments, handed to the strategy as they are; it checks them itself."""


class Strategies(msgspec.Struct, frozen=True, kw_only=True):
    """Weight and arguments of each strategy, under the strategy's own name."""

    spot_interruption: SpotInterruption = msgspec.field(name="SpotInterruption", default=SpotInterruption())
    """Leave nodes that are about to be taken away."""
    node_maintenance: NodeMaintenance = msgspec.field(name="NodeMaintenance", default=NodeMaintenance())
    """Empty nodes that carry a maintenance signal."""
    load_balancing: LoadBalancing = msgspec.field(name="LoadBalancing", default=LoadBalancing())
    """Level the load of nodes."""
    resource_optimization: ResourceOptimization = msgspec.field(
        name="ResourceOptimization", default=ResourceOptimization()
    )
    """Relieve nodes whose measured usage is too high."""
    spot_mix: SpotMix = msgspec.field(name="SpotMix", default=SpotMix())
    """Bring workloads to the mix they ask for."""
    spot_reclaim: SpotReclaim = msgspec.field(name="SpotReclaim", default=SpotReclaim())
    """Bring pods back to spot when there is room again."""
    third_party: dict[str, ThirdParty] = msgspec.field(name="thirdParty", default_factory=dict)
    """Strategies of installed packages by name. Listed here, because installing one must not switch it on."""


BUILT_IN: Final = (
    "SpotInterruption",
    "NodeMaintenance",
    "LoadBalancing",
    "ResourceOptimization",
    "SpotMix",
    "SpotReclaim",
)

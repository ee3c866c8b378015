"""All settings with their defaults: one document, `apiVersion: spotshift.dev/v1alpha1`, `kind: Policy`.

Types and defaults only. `settings_load` reads them, `settings_rules` checks what one field alone cannot say.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from policy import keys, settings_strategies
from policy.capacity import CapacitySettings
from policy.settings_extender import Extender
from policy.settings_moves import Backoff, History, Limits, Migrations
from policy.settings_strategies import Strategies
from policy.settings_types import (
    AffinityWeight,
    ClassName,
    Count,
    Group,
    Interval,
    Limit,
    Name,
    Namespace,
    NamespacePattern,
    OverMean,
    Percent,
    Prefix,
    WholePercent,
)
from policy.signal_table import SignalSettings
from policy.values import Rescheduling, Spot, Tier
from policy.windows import Window

API_VERSION: Final = f"{keys.API_GROUP}/v1alpha1"
KIND: Final = "Policy"


class Mode(StrEnum):
    """Whether plans are carried out."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class PriorityClasses(Group, frozen=True, kw_only=True):
    """Which PriorityClass each tier gets; '' injects none."""

    critical: ClassName = "high-priority"
    """For `tier: critical`. The class that our manifests bring, value 1000."""
    standard: ClassName = ""
    """For `tier: standard`. None, so that the cluster's own default stays in force."""
    batch: ClassName = "batch-priority"
    """For `tier: batch`. The class that our manifests bring, value -100."""


class Placement(Group, frozen=True, kw_only=True):
    """What a pod gets that says nothing itself, nor its workload, nor its namespace."""

    spot: Spot = Spot.PREFER
    """Placement intent. `prefer` costs nothing where there is no spot capacity: it only prefers."""
    spot_weight: AffinityWeight = 10
    """Weight of the spot preference, at most 100. 10 leaves room for a move's hint and for users' own."""
    spot_tolerations: bool = True
    """Tolerate the taints of spot nodes where spot is preferred or required; some platforms always taint."""
    tier: Tier = Tier.STANDARD
    """Importance: `critical`, `standard` or `batch`. `standard` injects no class, so nothing changes."""
    rescheduling: Rescheduling = Rescheduling.ENABLED
    """Whether pods may be moved when nothing forces it. `disabled` turns the product into opt-in."""
    spot_percentage: WholePercent | None = None
    """Share of each workload that should be on spot, in percent. Unset: no mix is enforced."""
    min_on_demand: Count | None = None
    """Replicas of each workload that stay on on-demand. Unset: none."""
    critical_namespaces: tuple[NamespacePattern, ...] = ()
    """Namespaces that may use `tier: critical`, `*` for all. None: its PriorityClass lets pods push others out,
    and who may do that is the cluster owner's decision."""
    priority_classes: PriorityClasses = PriorityClasses()
    """PriorityClass of each tier."""


class Settings(Group, frozen=True, kw_only=True):
    """The whole policy."""

    mode: Mode = Mode.ENFORCE
    """`enforce`, or `observe`: plan and report, change nothing. Open moves still finish or roll back.
    Enforcing is what one installs it for."""
    label_prefix: Prefix = keys.DEFAULT_PREFIX
    """Prefix of our labels, annotations and taints. Change it before the first move, not after it. It takes a
    restart: what is marked under the old one would not be found any more."""
    rescheduling_interval: Interval = timedelta(seconds=30)
    """Longest pause between two passes; events wake it earlier. Imbalance lasts longer than 30 seconds."""
    enabled_strategies: tuple[Name, ...] = settings_strategies.BUILT_IN
    """Strategies that may propose moves. All of ours: those that find nothing to do propose nothing."""
    cpu_threshold: Percent = 80.0
    """Measured cpu usage of a node, in percent, above which ResourceOptimization relieves it."""
    memory_threshold: Percent = 80.0
    """The same for memory, where running out kills pods instead of slowing them."""
    imbalance_threshold: OverMean = 20.0
    """Percent of the mean load by which a node must exceed it before LoadBalancing acts."""
    imbalance_floor: Percent = 5.0
    """Points by which it must exceed it as well, so that an almost empty cluster is left in peace."""
    max_reschedule_pods: Limit = 10
    """Voluntary moves in one pass. At a pass every 30 seconds a large cluster still levels in minutes."""
    excluded_namespaces: tuple[Namespace, ...] = ("kube-system", "kube-public")
    """Namespaces whose pods are neither changed nor moved voluntarily. A drain still empties their nodes."""
    windows: tuple[Window, ...] = ()
    """When voluntary moves may start. Empty: always."""
    limits: Limits = Limits()
    """How much may move in one pass."""
    placement: Placement = Placement()
    """Defaults for pods."""
    migrations: Migrations = Migrations()
    """How one move is carried out."""
    backoff: Backoff = Backoff()
    """How long a workload rests after a move that did not help."""
    history: History = History()
    """Which finished moves are kept."""
    strategies: Strategies = Strategies()
    """Weight and arguments of each strategy."""
    capacity: CapacitySettings = CapacitySettings()
    """Labels and taints of spot nodes."""
    signals: SignalSettings = SignalSettings()
    """Signs of maintenance and interruption on nodes."""
    extender: Extender = Extender()
    """What the optional scheduler extender prefers."""

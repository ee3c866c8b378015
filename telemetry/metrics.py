# ruff: noqa: E501 - the declarations are a table, one row per line
"""Every metric of the product: its kind, its name with the unit, its meaning and the closed set of each label.

Declarations only; `telemetry.meter` keeps the numbers. Label values come from the sets below and from nowhere else,
so the number of series is known before the first pod is seen: names of pods and nodes are never labels. Names of
namespaces are in one place, bounded in number and set as a whole.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Final

PREFIX: Final = "spotshift_"
OTHER: Final = "other"
"""Where a value outside its set is counted in production. It belongs to every set."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LABELS: Final[Mapping[str, frozenset[str]]] = {
    "strategy": _words(
        "SpotInterruption NodeMaintenance LoadBalancing ResourceOptimization SpotMix SpotReclaim Manual"
    ),
    "mode": _words("Evict Surge Recreate"),
    "outcome": _words("onTarget elsewhere source failed cancelled"),
    "step": _words(
        """Guard Mark Evict SurgeUp AwaitAvailable SurgeDown SurgeBack CreateCopy AwaitReady RemoveCopy
        AwaitReplacement Settle"""
    ),
    "reason": _words("""DAEMONSET MIRROR TERMINATING OPTED_OUT INVALID_VALUE NO_CONTROLLER LOCAL_STORAGE SAFE_TO_EVICT_FALSE DO_NOT_DISRUPT
        EXCLUDED_NAMESPACE PRIORITY_TOO_HIGH TOO_YOUNG NOT_READY ALREADY_MIGRATING COOLING_DOWN OUTSIDE_WINDOW PINNED
        NO_NODE_FITS PDB_NO_BUDGET PDB_MULTIPLE LIMIT_TOTAL LIMIT_NODE LIMIT_NAMESPACE LIMIT_WORKLOAD NO_IMPROVEMENT
        METRICS_STALE JOB JOB_WOULD_FAIL PENDING_REVISION STATEFULSET_BUSY FOREIGN_SCHEDULER RESOURCE_CLAIMS
        REPLICAS_CONTESTED SINGLE_REPLICA MODE_UNSUITED NO_QUOTA NODE_SILENT ALREADY_THERE"""),
    "resource": _words("""pods nodes namespaces configmaps persistentvolumeclaims persistentvolumes resourcequotas
        replicationcontrollers replicasets deployments statefulsets daemonsets jobs cronjobs poddisruptionbudgets
        horizontalpodautoscalers storageclasses csinodes priorityclasses leases events podmigrations secrets services
        serviceaccounts mutatingwebhookconfigurations"""),
    "verb": _words("get list watch create replace patch delete evict scale apply stream"),
    "answer": _words("""ok notFound conflict blocked throttled gone forbidden unauthorized invalid unreachable serverError
        stopped"""),
    "relist_cause": _words("first gone stuck"),
    "delta": _words("added modified deleted"),
    "queue": _words("migrations nodes workloads events"),
    "event_drop": _words("queueFull objectLimit totalLimit refused undelivered stopped"),
    "admission": _words("patched unchanged skipped failed"),
    "hint": _words("given none"),
    "extender_verb": _words("filter prioritize"),
    "extender_result": _words("answered passed refused"),
    "extender_target": _words("reachable unreachable"),
    "settings": _words("loaded rejected"),
    "certificate": _words("ca leaf"),
    "capacity": _words("spot on-demand unknown"),
    "phase": _words("Pending InProgress"),
    "stage": _words("waiting draining drained"),
    "interruption": _words("notice rebalance notReady"),
    "scope": _words("zone spot"),
    "namespace": frozenset(),
}
BOUNDED: Final[Mapping[str, int]] = {"namespace": 50}
"""Sets whose values are names in the cluster, and how many of them there may be at once; the rest is `other`."""


class Kind(enum.StrEnum):
    """What prometheus calls them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


FAST: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Seconds of work on one core: admission takes well under a millisecond, a pass tens of them."""
SLOW: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Seconds that a cluster takes: evictions, starts of pods, whole migrations."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One metric; `labels` maps the label's name to the set in LABELS it takes its values from."""

    kind: Kind
    name: str
    meaning: str
    labels: Mapping[str, str] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()

    @property
    def series(self) -> int:
        """How many series it can have at most."""
        return prod((BOUNDED.get(chosen) or len(LABELS[chosen])) + 1 for chosen in self.labels.values())


def _counter(name: str, meaning: str, **labels: str) -> Spec:
    return Spec(Kind.COUNTER, name, meaning, labels)


def _gauge(name: str, meaning: str, **labels: str) -> Spec:
    return Spec(Kind.GAUGE, name, meaning, labels)


def _timing(name: str, buckets: tuple[float, ...], meaning: str, **labels: str) -> Spec:
    return Spec(Kind.HISTOGRAM, name, meaning, labels, buckets)


# fmt: off
class Metric(enum.Enum):
    """The closed set."""

    __hash__ = object.__hash__  # members are single; by name it is done in Python, for every count

    PASS_SECONDS = _timing("pass_seconds", FAST, "Duration of a reconcile pass.")
    PASSES_FAILED = _counter("passes_failed_total", "Reconcile passes that ended with an error.")
    LAST_GOOD_PASS_TIMESTAMP = _gauge("last_good_pass_timestamp_seconds", "Unix time of the last pass that ended well.")
    RESCHEDULING_INTERVAL = _gauge("rescheduling_interval_seconds", "Longest pause between two passes by the settings in force; 0 where no plans are made.")
    PROPOSALS = _counter("proposals_total", "Moves that strategies asked for.", strategy="strategy")
    REFUSALS = _counter("refusals_total", "Proposals that guards or the planner refused.", strategy="strategy", reason="reason")
    MIGRATIONS = _counter("migrations_total", "Migrations that ended.", strategy="strategy", mode="mode", outcome="outcome")
    MIGRATIONS_OPEN = _gauge("migrations_open", "Migrations under way.", phase="phase")
    MIGRATION_SECONDS = _timing("migration_seconds", SLOW, "From the start of a migration to its end.", mode="mode", outcome="outcome")
    STEP_RETRIES = _counter("step_retries_total", "Steps of migrations that were tried again.", step="step")
    STEP_TIMEOUTS = _counter("step_timeouts_total", "Steps of migrations that ran out of time.", step="step")
    ROLLBACKS = _counter("rollbacks_total", "Migrations rolled back.", step="step")
    EVICTIONS_BLOCKED = _counter("evictions_blocked_total", "Evictions refused for now because of a disruption budget that is not ours.")
    REPLACEMENTS_AWAITED = _gauge("replacements_awaited", "Pods that were evicted and whose replacement is not Ready yet.")
    WORKLOADS_RESTING = _gauge("workloads_resting", "Workloads that are left alone for a while after a move that did not help.")
    NODES = _gauge("nodes", "Nodes known, by capacity type.", capacity="capacity")
    NODES_SIGNALLED = _gauge("nodes_signalled", "Nodes under maintenance or interruption.", capacity="capacity")
    NODES_DRAINING = _gauge("nodes_draining", "Nodes that ask to be emptied, by how far that is.", stage="stage")
    DRAIN_PODS = _gauge("drain_pods", "Pods that still have to leave such nodes.")
    INTERRUPTIONS = _counter("interruptions_total", "Nodes that were about to be lost and that we began to leave, by what said so.", cause="interruption")
    INTERRUPTION_LEFT_SECONDS = _timing("interruption_left_seconds", SLOW, "From the signal to the last pod gone from the node.")
    INTERRUPTION_REPLACED_SECONDS = _timing("interruption_replaced_seconds", SLOW, "From the signal until every replacement was Ready.")
    PODS_LOST = _counter("pods_lost_total", "Pods that were still on their node, and not stopping, when its deadline passed or it vanished.")
    DELETED_PAST_BUDGET = _counter("deleted_past_budget_total", "Pods deleted although their budget allowed no disruption, because their node's deadline was near or over and the settings say so.")
    NODES_LEAVING = _gauge("nodes_leaving", "Nodes that are about to be lost, by what says so.", cause="interruption")
    STUCK_PODS = _gauge("stuck_pods", "Pods that were told to stop on a node that says nothing and so cannot be seen to have stopped.")
    PARTITIONS = _gauge("partitions", "Zones of which most nodes are NotReady, and 1 for `spot` if most spot nodes are: taken for a failure of the network, nothing is evicted.", scope="scope")
    SPOT_SHARE = _gauge("spot_share_ratio", "Pods on spot nodes over all pods on nodes, without those of DaemonSets.")
    NAMESPACE_SPOT_SHARE = _gauge("namespace_spot_share_ratio", "The same for the namespaces with the most pods, and for all others together.", namespace="namespace")
    IMBALANCE = _gauge("imbalance_ratio", "Load of the fullest node over the mean load.")
    MIX_WORKLOADS = _gauge("mix_workloads", "Workloads that ask for a mix of spot and on-demand.")
    MIX_DRIFT = _gauge("mix_drift_pods", "Pods that are on the wrong side of the mix of their workload.")

    ADMISSIONS = _counter("admissions_total", "Pods seen by the webhook.", result="admission")
    ADMISSION_SECONDS = _timing("admission_seconds", FAST, "Time to answer one review.")
    HINTS = _counter("hints_total", "Replacements that were told a target, or for which none was known.", result="hint")
    MIX_CHOICES = _counter("mix_choices_total", "Pods of workloads with a mix, by the side that was chosen for them.", capacity="capacity")
    VALUES_IGNORED = _counter("values_ignored_total", "Labels or annotations of ours with a value that is not accepted.")

    EXTENDER_REQUESTS = _counter("extender_requests_total", "Questions of a scheduler; `passed` let every node pass because something of ours failed.", verb="extender_verb", result="extender_result")
    EXTENDER_SECONDS = _timing("extender_seconds", FAST, "Time to answer one question of a scheduler.", verb="extender_verb")
    EXTENDER_NODES_OUT = _counter("extender_nodes_out_total", "Nodes kept from a pod because they are about to go away, once per question.")
    EXTENDER_TARGETS = _counter("extender_targets_total", "Questions about replacements, by whether their target could take them.", result="extender_target")

    SETTINGS_LOADS = _counter("settings_loads_total", "Attempts to load the settings file.", result="settings")
    SETTINGS_REJECTED = _gauge("settings_rejected", "1 while the settings file has mistakes and older settings are in force.")
    CERTIFICATE_EXPIRY = _gauge("certificate_expiry_timestamp_seconds", "Unix time at which the certificate in use ends.", certificate="certificate")
    CERTIFICATE_ROTATIONS = _counter("certificate_rotations_total", "Certificates replaced.", certificate="certificate")
    CERTIFICATE_ERRORS = _counter("certificate_errors_total", "Certificates found on disk that could not be used; the one before stayed.")
    INTERNAL_ERRORS = _counter("internal_errors_total", "Defects of ours, caught at the edge of a request or a pass.")

    REQUESTS = _counter("api_requests_total", "Requests to the apiserver.", resource="resource", verb="verb", answer="answer")
    REQUEST_SECONDS = _timing("api_request_seconds", FAST, "Time until the answer; for a watch until it opened.", verb="verb")
    THROTTLE_SECONDS = _counter("api_client_throttle_seconds_total", "Time spent waiting for the limit this process sets itself.")

    REFLECTOR_RELISTS = _counter("reflector_relists_total", "Complete lists taken, and why.", resource="resource", cause="relist_cause")
    REFLECTOR_DELTAS = _counter("reflector_deltas_total", "Changes handed on.", resource="resource", delta="delta")
    REFLECTOR_STALE = _counter("reflector_stale_events_total", "Events not applied because they were not newer than what is known.", resource="resource")
    REFLECTOR_OBJECTS = _gauge("reflector_objects", "Objects in the store.", resource="resource")
    REFLECTOR_SYNCED = _gauge("reflector_synced", "1 once the first complete list is in the store.", resource="resource")
    OBJECTS_UNREADABLE = _counter("objects_unreadable_total", "Objects left out because they could not be decoded.", resource="resource")
    HANDLER_ERRORS = _counter("handler_errors_total", "Receivers of changes that raised.", resource="resource")

    LEADER = _gauge("leader", "1 while this process holds the lease by its own clock.")
    LEADER_TERMS = _counter("leader_terms_total", "Terms begun by this process.")
    LEASE_ERRORS = _counter("lease_errors_total", "Requests for the lease that failed.", answer="answer")

    QUEUE_DEPTH = _gauge("queue_depth", "Keys waiting.", queue="queue")
    QUEUE_ADDED = _counter("queue_added_total", "Keys added.", queue="queue")
    QUEUE_RETRIES = _counter("queue_retries_total", "Keys added again after a failure.", queue="queue")
    QUEUE_WAIT_SECONDS = _timing("queue_wait_seconds", SLOW, "From being due to being worked on.", queue="queue")
    QUEUE_WORK_SECONDS = _timing("queue_work_seconds", SLOW, "Work on one key.", queue="queue")

    EVENTS_SENT = _counter("events_sent_total", "Kubernetes Events created or counted up.")
    EVENTS_DROPPED = _counter("events_dropped_total", "Kubernetes Events not sent, and why.", cause="event_drop")
# fmt: on


def markdown() -> str:
    """The page for people, made from the tables above and nothing else."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield "# Metrics"
    yield ""
    yield "Every metric the programs expose on `/metrics`, beside the standard `process_*` and `python_*` ones."
    yield "This page is generated from `telemetry/metrics.py` by `python -m telemetry docs`."
    yield ""
    yield "| metric | kind | labels | series at most | meaning |"
    yield "|---|---|---|---|---|"
    for metric in Metric:
        spec = metric.value
        labels = " ".join(f"`{name}`" for name in spec.labels)
        yield f"| `{PREFIX}{spec.name}` | {spec.kind} | {labels} | {spec.series} | {spec.meaning} |"
    yield ""
    yield f"## Labels and their values (each may also be `{OTHER}`)"
    yield ""
    yield "| set | used as | values |"
    yield "|---|---|---|"
    for chosen, values in LABELS.items():
        used = sorted({name for metric in Metric for name, source in metric.value.labels.items() if source == chosen})
        told = (
            " ".join(f"`{value}`" for value in sorted(values)) or f"names in the cluster, at most {BOUNDED[chosen]}"
        )
        yield f"| {chosen} | {' '.join(used)} | {told} |"
    yield ""

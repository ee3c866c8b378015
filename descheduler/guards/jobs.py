"""Guards of pods that run to their end: what eviction would cost their Job.   Each returns the sentence, or None."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cluster.objects import Job, OwnerReference, Pod
from cluster.workload import FailureRule, OnExitCodes
from descheduler.guards.case import Case, Context
from policy import durations, keys, values
from policy.signal_table import Kind

KILLED: Final = (143, 137)
"""Exit codes of a container that was told to stop, and of one that did not."""
BACKOFF_LIMIT: Final = 6
"""That of a Job which does not say, by the API server."""
LONGEST_COUNT: Final = 10
"""Digits of a count that Kubernetes writes; anybody may write more, and Python refuses to read thousands."""


def job(case: Case) -> str | None:
    """It runs to its end, and losing its work is not worth a better place. Also a step of a workflow: any pod with a
    controller that is not restarted.
    """
    owner = _runner(case)
    return (
        f"{owner.kind} {owner.name} runs to its end, and losing its work is not worth a better place"
        if owner
        else None
    )


def job_may_finish(case: Case) -> str | None:
    """It may end by itself before the drain has waited `strategies.NodeMaintenance.jobTimeout`."""
    owner = _runner(case)
    timeout = case.context.settings.strategies.node_maintenance.job_timeout
    if owner is None or not timeout:
        return None
    since = drain_start(case)
    told = f"strategies.NodeMaintenance.jobTimeout is {durations.text_of(timeout)}"
    if since is None:
        return f"the drain waits for {owner.kind} {owner.name} to end by itself; {told}"
    until = since + timeout
    if case.context.now >= until:
        return None
    return (
        f"the drain waits for {owner.kind} {owner.name} to end by itself, until {values.format_time(until)}; {told}"
    )


def job_would_fail(case: Case) -> str | None:
    """Its Job would count the eviction as the failure that ends it; only the Job's end lets the drain go on."""
    owner = _runner(case)
    if owner is None:
        return None
    found = case.workload.object if case.workload is not None else None
    if not isinstance(found, Job):
        return f"how {owner.kind} {owner.name} takes the loss of a pod is not known"
    return _failure(found, case)


def drain_start(case: Case) -> datetime | None:
    """When the drain of the pod's node began: what its signal says, else our taint, else the cordon.

    A label has no time of its own. The cordon's taint has, because the node controller writes it.
    """
    if case.node is None or case.node.node is None:
        return None
    node, found = case.node.node, case.node.signals_at(case.context.now)
    said = [it.started for it in found if it.kind is Kind.MAINTENANCE and it.started is not None]
    added = {it.key: values.plausible(it.time_added) for it in node.spec.taints}
    return min(said, default=None) or added.get(case.context.keys.draining) or added.get(keys.UNSCHEDULABLE_TAINT)


def _runner(case: Case) -> OwnerReference | None:
    """The controller of a pod that runs to its end."""
    owner = case.pod.metadata.controller
    if owner is None or owner.kind == "Node":
        return None
    return owner if owner.kind == "Job" or case.pod.spec.restart_policy != "Always" else None


def book(pod: Pod, context: Context) -> None:
    """The plan of this context takes the pod: one failure more for its Job, which does not know of it yet."""
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "Job":
        _leaving(owner.uid, pod.metadata.namespace, context)[pod.metadata.uid] = pod


def _failure(found: Job, case: Case) -> str | None:
    rule = _first(found)
    name = found.metadata.name
    if case.pod.metadata.deletion_timestamp is not None or (rule is not None and rule.action == "Ignore"):
        return None  # told to stop already: what that costs its Job is decided
    if rule is not None and rule.action in {"FailJob", "FailIndex"}:
        return f"podFailurePolicy of Job {name} answers the loss of a pod with {rule.action}"
    known = _leaving(found.metadata.uid, found.metadata.namespace, case.context)
    others = {uid: it for uid, it in known.items() if uid != case.pod.metadata.uid}
    per_index = found.spec.backoff_limit_per_index
    if per_index is not None:
        coming = sum(_index(it) == _index(case.pod) for it in others.values())
        limit_text = f"backoffLimitPerIndex {per_index} of Job {name}"
        used_up = _used_up(_failures_of_index(case), coming, limit_text, per_index)
        if used_up is not None:
            return used_up
    # Beside a limit for each index this one is as good as infinite, unless somebody has set it as well.
    limit, status = found.spec.backoff_limit, found.status
    if limit is None:  # in a dump that no server has filled in
        limit = BACKOFF_LIMIT if per_index is None else values.INT32_MAX
    coming = len(others.keys() | set(status.uncounted_terminated_pods.failed))
    return _used_up(status.failed, coming, f"backoffLimit {limit} of Job {name}", limit)


def _used_up(failed: int, coming: int, limit_text: str, limit: int) -> str | None:
    if failed + coming < limit:
        return None
    told = f"{limit_text} is used up by {failed} failed pods"
    return f"{told} and {coming} that are about to be lost" if coming else told


def _leaving(job_uid: str, namespace: str, context: Context) -> dict[str, Pod]:
    """Pods that the Job is about to lose, by UID: those that are moved, and those that were told to stop. The Job
    controller takes its finalizer off a pod when it has counted it; such a pod is none of these any more.
    """
    known = context.leaving.get((namespace, job_uid))
    if known is None:
        running = context.state.by_owner.get((namespace, job_uid), {}).values()
        ended = (it for it in context.state.ended.values() if _is_of(job_uid, it))
        own = (it for it in (*running, *ended) if it.metadata.namespace == namespace)
        known = {it.metadata.uid: it for it in own if _is_leaving(it, context)}
        context.leaving[namespace, job_uid] = known
    return known


def _is_of(job_uid: str, pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.uid == job_uid


def _is_leaving(pod: Pod, context: Context) -> bool:
    if pod.terminal or pod.metadata.deletion_timestamp is not None:
        return keys.JOB_TRACKING in pod.metadata.finalizers
    moves = context.state.moving.by_pod.get(pod.metadata.key, ())
    return any(it.spec.pod_ref.uid in {"", pod.metadata.uid} for it in moves)


def _index(pod: Pod) -> str | None:
    return pod.metadata.annotations.get(keys.JOB_COMPLETION_INDEX)


def _failures_of_index(case: Case) -> int:
    text = case.pod.metadata.annotations.get(keys.JOB_INDEX_FAILURE_COUNT, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_COUNT else 0


def _first(found: Job) -> FailureRule | None:
    """The rule that decides about an evicted pod. One that ignores exit codes is no promise: the pod may end with
    another, so the search goes on.
    """
    policy = found.spec.pod_failure_policy
    for rule in policy.rules if policy is not None else ():
        if rule.on_exit_codes is not None and rule.action != "Ignore" and _may_match(rule.on_exit_codes):
            return rule
        if any(it.type == "DisruptionTarget" and it.status == "True" for it in rule.on_pod_conditions):
            return rule
    return None


def _may_match(codes: OnExitCodes) -> bool:
    return any((code in codes.values) == (codes.operator == "In") for code in KILLED)

"""Guards of pods that run to their end: what eviction would cost their Job.   Each returns the sentence, or None."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cluster.objects import Job, OwnerReference
from cluster.workload import FailureRule, OnExitCodes
from descheduler import signs
from descheduler.guards.case import Case
from policy import durations, keys, signals, values
from policy.signal_table import Kind

KILLED: Final = (143, 137)
"""Exit codes of a container that was told to stop, and of one that did not."""
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
    node = case.node.node if case.node is not None else None
    if node is None:
        return None
    table = case.context.settings.signals.all_rows()
    found = signals.read(signs.of(node), keys=case.context.keys, now=case.context.now, table=table)
    said = [it.started for it in found if it.kind is Kind.MAINTENANCE and it.started is not None]
    added = {it.key: it.time_added for it in node.spec.taints if it.time_added is not None}
    return min(said, default=None) or added.get(case.context.keys.draining) or added.get(keys.UNSCHEDULABLE_TAINT)


def _runner(case: Case) -> OwnerReference | None:
    """The controller of a pod that runs to its end."""
    owner = case.pod.metadata.controller
    if owner is None or owner.kind == "Node":
        return None
    return owner if owner.kind == "Job" or case.pod.spec.restart_policy != "Always" else None


def _failure(found: Job, case: Case) -> str | None:
    rule = _first(found)
    name = found.metadata.name
    if rule is not None and rule.action == "Ignore":
        return None
    if rule is not None and rule.action in {"FailJob", "FailIndex"}:
        return f"podFailurePolicy of Job {name} answers the loss of a pod with {rule.action}"
    per_index = found.spec.backoff_limit_per_index
    if per_index is not None:
        failed = _failures_of_index(case)
        return _used_up(failed, f"backoffLimitPerIndex {per_index} of Job {name}", per_index)
    limit = found.spec.backoff_limit
    return _used_up(found.status.failed, f"backoffLimit {limit} of Job {name}", limit)


def _used_up(failed: int, limit_text: str, limit: int) -> str | None:
    return f"{limit_text} is used up by {failed} failed pods" if failed >= limit else None


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

"""Guards of where and how a pod runs at the moment.   Each returns the sentence, or None."""

from __future__ import annotations

import itertools
from typing import Final

from cluster.objects import PodSpec
from descheduler import memory
from descheduler.fit import node_rules
from descheduler.guards import wishes
from descheduler.guards.case import Case, Context
from descheduler.node_state import NodeState
from policy import durations, keys, values

DEFAULT_SCHEDULER: Final = "default-scheduler"


def terminating(case: Case) -> str | None:
    """It is on its way out already."""
    at = case.pod.metadata.deletion_timestamp
    return f"it ends by {values.format_time(at)}" if at is not None else None


def excluded_namespace(case: Case) -> str | None:
    """Listed in the settings. `enabled` on the pod, its workload or the namespace itself is nearer and goes before
    the list; a drain empties its node all the same.
    """
    origin = case.decision.origins["rescheduling"]
    name = case.pod.metadata.namespace
    return f"{name} is among excludedNamespaces" if origin.key == "excludedNamespaces" else None


def priority_too_high(case: Case) -> str | None:
    """Whoever gave it that priority wants it disturbed last."""
    priority, threshold = case.pod.spec.priority, case.context.settings.limits.priority_threshold
    if priority < threshold:
        return None
    named = f" ({case.pod.spec.priority_class_name})" if case.pod.spec.priority_class_name else ""
    return f"its priority is {priority}{named}, limits.priorityThreshold is {threshold}"


def too_young(case: Case) -> str | None:
    """It has just come; a pod that moves from pass to pass never does its work."""
    least = case.context.settings.limits.min_pod_age
    if not least:
        return None
    if case.since is None:
        return "it has not started yet"
    age = case.context.now - case.since
    if age >= least:
        return None
    return f"it started {_seconds(age.total_seconds())} ago, limits.minPodAge is {durations.text_of(least)}"


def not_ready(case: Case) -> str | None:
    """Moving it would hide its trouble, and there is nothing to compare its new place with."""
    if case.pod.ready:
        return None
    found = case.pod.status.condition("Ready")
    why = f" ({found.reason})" if found is not None and found.reason else ""
    return f"it is {case.pod.status.phase or 'not started'} and not Ready{why}"


def already_migrating(case: Case) -> str | None:
    """A PodMigration that is not over moves it."""
    meta = case.pod.metadata
    for migration in case.context.state.moving.by_pod.get(meta.key, ()):
        stands_in = migration.status.replacement is not None and migration.status.replacement.uid == meta.uid
        if migration.spec.pod_ref.uid in {"", meta.uid} and not stands_in:
            return f"PodMigration {migration.metadata.name} is moving it"
    return None


def just_moved(case: Case) -> str | None:
    """A PodMigration that is not over made it. If the node it came to goes as well, it must not wait for that."""
    migration = case.context.moving.get(case.pod.metadata.key)
    replacement = migration.status.replacement if migration is not None else None
    if migration is None or replacement is None or replacement.name != case.pod.metadata.name:
        return None
    if replacement.uid not in {"", case.pod.metadata.uid}:
        return None
    return f"it is the replacement in PodMigration {migration.metadata.name}, which is not over"


def cooling_down(case: Case) -> str | None:
    """The last move of its workload failed or came back to its source, so the next would most likely too."""
    if case.workload is None:
        return None
    until = case.context.cooldowns.get(memory.subject_of(case.pod, case.workload))
    if until is None or until <= case.context.now:
        return None
    return f"the last move of {case.workload.text} did not help; it rests until {values.format_time(until)}"


def copy_failed(case: Case) -> str | None:
    """The same of a pod on its own, which is copied: a drain waits too, because copies that come to nothing one after
    the other would run what is in them again and again. So does an interruption, once a copy came to nothing since
    the node began to be lost; but not while a deadline is ahead.
    """
    if case.workload is not None:
        return None
    subject = memory.subject_of(case.pod, case.workload)
    until = case.context.cooldowns.get(subject)
    if until is None or until <= case.context.now or _hurries(case, subject):
        return None
    return f"the last move of it did not help; it is copied again after {values.format_time(until)}"


def copy_serves(case: Case) -> str | None:
    """A copy of an earlier move that nobody lets go, or that must not go: another would only be one more. If the node
    takes the pod, that copy is left.
    """
    if case.workload is not None:
        return None
    name = case.context.copies.get(case.pod.metadata.uid)
    return f"its copy {name}, of an earlier move, still serves" if name is not None else None


def _hurries(case: Case, subject: str) -> bool:
    """Whether its node will be gone soon, or nothing has been tried since it began to be lost."""
    loss, rest = case.context.losses.get(case.pod.node_name), case.context.rests.get(subject)
    if loss is None:
        return False
    ahead = loss.deadline is not None and loss.deadline > case.context.now
    return ahead or rest is None or memory.ended(rest.after) < loss.since


def outside_window(case: Case) -> str | None:
    """Settings say when moves may start; a drain and an interruption have their own time."""
    if case.context.window_is_open:
        return None
    opens = case.context.next_window
    return f"none of the {len(case.context.settings.windows)} windows lets moves start" + (
        f" before {values.format_time(opens)}" if opens is not None else ", nor will any"
    )


def local_storage(case: Case) -> str | None:
    """hostPath, or emptyDir on disk: what it keeps there would be lost or left behind. emptyDir in memory holds
    nothing back, as the autoscaler sees it. A drain takes such pods, as `kubectl drain --delete-emptydir-data` does.
    """
    local = [
        it
        for it in case.pod.spec.volumes
        if it.host_path is not None or (it.empty_dir is not None and it.empty_dir.medium != "Memory")
    ]
    if not local:
        return None
    may_go = wishes.may_lose_volumes(case.pod)
    held = next((it for it in local if may_go is not None and it.name not in may_go), None)
    if held is None:
        return None
    kind = "hostPath" if held.host_path is not None else "emptyDir"
    return f"{kind} volume {held.name}; {keys.SAFE_TO_EVICT_LOCAL_VOLUMES}: {held.name} would let it go"


def foreign_scheduler(case: Case) -> str | None:
    """Another scheduler places it, by rules we cannot foresee. A drain needs no more than a node that has room."""
    name = case.pod.spec.scheduler_name
    return f"schedulerName is {name}" if name not in {"", DEFAULT_SCHEDULER} else None


def resource_claims(case: Case) -> str | None:
    """Where its devices are free is not known here, so no better place can be proven."""
    names = ", ".join(it.name for it in case.pod.spec.resource_claims)
    return f"resourceClaims {names}" if names else None


def pinned(case: Case) -> str | None:
    """Its own selector ties it to its node: there is no other place to compare. A drain asks what fits, as always."""
    spec, here = case.pod.spec, case.node
    if here is None or here.node is None or not (spec.node_selector or node_rules.required_affinity(spec)):
        return None
    if _suited(spec, case.context) != (here.name,):
        return None
    return f"only {here.name} has what it asks for: {node_rules.asked(spec)}"


def _suited(spec: PodSpec, context: Context) -> tuple[str, ...]:
    """The first two nodes that the spec selects. Few specs select fewer, so the search is short for most."""
    known = context.suited.get(id(spec))
    if known is None:
        found = (it.name for it in context.state.nodes.values() if it.node is not None and _selects(spec, it))
        known = context.suited[id(spec)] = tuple(itertools.islice(found, 2))
    return known


def _selects(spec: PodSpec, found: NodeState) -> bool:
    return found.node is not None and node_rules.wanted(spec, found.node)


def _seconds(length: float) -> str:
    return f"{int(length)}s"

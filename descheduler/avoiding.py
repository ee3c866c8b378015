"""Workloads that avoid spot and have pods there all the same.   Pure.

They came to spot because there was no room elsewhere, or before anybody said `avoid` or `critical`. Such pods are
rare, and in most passes there are none: only who may avoid spot is looked at, and of those only pods on spot nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from cluster.objects import Pod
from descheduler import mixes
from descheduler.guards.case import Case, Context
from descheduler.mixes import Mixed
from descheduler.workload import Workload
from policy.mix import Mix
from policy.placement import SPOT_OF_TIER
from policy.values import INT32_MAX, Spot

NO_SPOT: Final = Mix(percentage=0, min_on_demand=INT32_MAX)
"""What it comes to; as a minimum too, for those are kept exactly."""


def find(context: Context) -> Iterator[Mixed]:
    """All of them, in the order of their names, as workloads that are off a mix without any spot. One that is being
    rolled out is looked at when that is over.
    """
    spot = context.state.roster.spot()
    # One pod of each kind: those of one owner share their annotations, unless somebody wrote on one of them by hand.
    # An owner reference is what the creator of a pod wrote, so it counts in the pod's own namespace only.
    asked = {
        (pod.metadata.namespace, mixes.owner(pod), id(pod.metadata.annotations)): pod
        for pod in _may_avoid(context, spot)
    }
    found = {workload.key: workload for pod in asked.values() if (workload := _workload(pod, context)) is not None}
    for workload in sorted(found.values(), key=mixes.by_name):
        there = mixes.settled(workload, context)
        if there:
            yield _mixed(workload, there, context, spot)


def _may_avoid(context: Context, spot: Collection[str]) -> Iterator[Pod]:
    """Pods on spot that may avoid it. Looked for from where there is least to go through: pods of spot nodes that are
    in the index, and of the few that speak for many pods, those pods.
    """
    state, asked, defaults = context.state, context.state.mixing.avoiding, context.settings.placement
    if SPOT_OF_TIER.get(defaults.tier, defaults.spot) is Spot.AVOID:
        for name in spot:
            yield from state.nodes[name].pods.values()
        return
    if asked.pods:
        sift = state.roster.sift(find)
        for name in spot:
            node = state.nodes[name]
            found = sift.of(node, lambda pod: pod.metadata.key in asked.pods)
            if found:
                yield from (node.pods[key] for key in found)
    spoken_for = [state.by_namespace.get(name, {}) for name in asked.namespaces]
    for above in asked.controllers:
        namespace, uids = state.controllers[above].namespace, (above, *state.replica_sets.get(above, ()))
        spoken_for += [state.by_owner.get((namespace, uid), {}) for uid in uids]
    for pods in spoken_for:
        yield from (pod for pod in pods.values() if pod.node_name in spot)


def _workload(pod: Pod, context: Context) -> Workload | None:
    """Its workload, if that avoids spot and its pods do not belong to their nodes."""
    found = context.state.workload(pod)
    if found is None or found.kind in mixes.OF_NODES or not _avoids(pod, context):
        return None
    return found


def _avoids(pod: Pod, context: Context) -> bool:
    return Case(pod, context).decision.intent.spot is Spot.AVOID


def _mixed(workload: Workload, pods: Collection[Pod], context: Context, spot: Collection[str]) -> Mixed:
    wrong: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        if pod.node_name:
            (wrong if pod.node_name in spot and _avoids(pod, context) else others).append(pod)
    return Mixed(workload, NO_SPOT, tuple(wrong), tuple(others), len(pods) - len(wrong) - len(others))

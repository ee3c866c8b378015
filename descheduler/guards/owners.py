"""Guards about who a pod belongs to: would it come back, and as what?   Each returns the sentence, or None."""

from __future__ import annotations

from typing import Final

from cluster.objects import Deployment, ReplicaSet, StatefulSet
from descheduler import demand
from descheduler.guards.case import Case
from descheduler.node_state import Key
from policy import keys, mix
from policy.placement import Level
from policy.values import Rescheduling

SHARED: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
"""Access modes that let a copy run beside the original."""
OWN_NO_PODS: Final = {("apps", "Deployment"): "ReplicaSets", ("batch", "CronJob"): "Jobs"}
"""Controllers that make something else, which makes pods: only a person writes such a reference into a pod."""


def mirror(case: Case) -> str | None:
    """A static pod: the kubelet runs it from a file, and evicting its mirror changes nothing."""
    if keys.MIRROR_POD in case.pod.metadata.annotations:
        return f"annotation {keys.MIRROR_POD}: the kubelet runs it from a file, evicting changes nothing"
    owner = next((it for it in case.pod.metadata.owner_references if it.kind == "Node"), None)
    return f"owned by Node {owner.name}: the kubelet runs it, evicting changes nothing" if owner is not None else None


def daemonset(case: Case) -> str | None:
    """Its controller puts it back on the same node, drained or not, so an eviction only restarts it. That goes for
    `enable-ds-eviction` too: the autoscaler's wish to stop such pods before it deletes a node is not a move.
    """
    owner = case.pod.metadata.controller
    if owner is None or owner.kind != "DaemonSet":
        return None
    return f"DaemonSet {owner.name} would put it back on {case.pod.node_name or 'its node'}"


def no_controller(case: Case) -> str | None:
    """Nothing would replace it. `enabled` on the pod itself has it copied first, unless the two cannot run side by
    side; on a namespace it is rarely meant for such pods, so there it does not count.
    """
    owner = case.pod.metadata.controller
    if owner is not None:
        made = OWN_NO_PODS.get((owner.api_version.partition("/")[0], owner.kind))
        return None if made is None else f"{owner.kind} {owner.name} makes {made} and would not replace it"
    moving, origin = case.decision.intent.rescheduling, case.decision.origins["rescheduling"]
    if moving is Rescheduling.ENABLED and origin.level is Level.POD:
        return _uncopyable(case)
    return f"nothing would replace it; {case.context.keys.rescheduling}: enabled on the pod has it copied"


def _uncopyable(case: Case) -> str | None:
    """Why a copy cannot run beside the original."""
    pod = case.pod
    ports = demand.of(pod.spec).ports
    if ports:
        return f"it has to be copied, and both would need host port {ports[0].port}"
    if pod.hostname or pod.spec.subdomain:
        return f"it has to be copied, and both would be {pod.hostname or pod.spec.subdomain} in DNS"
    for name in pod.claims:
        claim = case.context.state.claims.get((pod.metadata.namespace, name))
        if claim is None or not SHARED.intersection(claim.spec.access_modes):
            return f"it has to be copied, and claim {name} cannot be used by both"
    return None


def tied_to_silence(case: Case) -> str | None:
    """A member of a StatefulSet on a node that says nothing. Nothing comes in its place before the node has said that
    it has stopped, or is gone; evicting it would only keep it from going on when the node is back.
    """
    owner, node = case.pod.metadata.controller, case.node
    if owner is None or owner.kind != "StatefulSet" or node is None or node.node is None or node.ready:
        return None
    return f"StatefulSet {owner.name} makes no other before NotReady node {node.name} has said that it stopped"


def pending_revision(case: Case) -> str | None:
    """Its replacement would be of another revision: the move would carry out a part of a rollout. A drain does not
    wait for rollouts, which may be paused for weeks.
    """
    match case.workload.object if case.workload is not None else None:
        case Deployment() as found:
            return _rollout(case, found)
        case StatefulSet() as found:
            return _update(case, found)
        case _:
            return None


def _rollout(case: Case, deployment: Deployment) -> str | None:
    wanted, status = deployment.spec.replicas, deployment.status
    generation = deployment.metadata.generation
    if status.observed_generation < generation:
        return f"Deployment {deployment.metadata.name} has not been taken up since its change {generation}"
    if status.replicas <= status.updated_replicas:
        return None  # no pod of another revision is left; fewer than wanted means that one is being replaced
    told = f"{status.updated_replicas} of {wanted} pods are of the newest revision"
    if not deployment.spec.paused:
        return f"Deployment {deployment.metadata.name} is rolling out: {told}"
    if status.updated_replicas and _is_newest(case, deployment):
        return None
    return f"Deployment {deployment.metadata.name} is paused in a rollout, and the pod is of an old revision: {told}"


def _is_newest(case: Case, deployment: Deployment) -> bool:
    owner = case.pod.metadata.controller
    space = case.pod.metadata.namespace
    direct = case.context.state.controller(space, owner.uid) if owner is not None else None
    if direct is None or not isinstance(direct.object, ReplicaSet):
        return False
    newest = deployment.metadata.annotations.get(keys.DEPLOYMENT_REVISION)
    return newest is not None and direct.object.metadata.annotations.get(keys.DEPLOYMENT_REVISION) == newest


def _update(case: Case, found: StatefulSet) -> str | None:
    """Below the partition pods stay at the old revision, so there a replacement is what the pod was."""
    old, new = found.status.current_revision, found.status.update_revision
    if found.status.observed_generation < found.metadata.generation:
        return f"StatefulSet {found.metadata.name} has not been taken up since its change {found.metadata.generation}"
    if old == new:
        return None
    rolling = found.spec.update_strategy.rolling_update
    partition = rolling.partition if rolling is not None and found.spec.update_strategy.type != "OnDelete" else 0
    labels = case.pod.metadata.labels
    ordinal = mix.ordinal(case.pod.metadata.name, labels) or 0
    if partition and labels.get(keys.CONTROLLER_REVISION_HASH) == (old if ordinal < partition else new):
        return None
    return f"StatefulSet {found.metadata.name} is between revision {old} and {new}"


def statefulset_moving(case: Case) -> str | None:
    """One member at a time, also in a drain: they often need each other, and a move ends soon."""
    found = _statefulset(case)
    if found is None:
        return None
    key = found.metadata.namespace, found.metadata.uid
    others = [name for _, name in case.context.moves_of.get(key, ()) if name != case.pod.metadata.name]
    return f"{others[0]} of StatefulSet {found.metadata.name} is moving" if others else None


def statefulset_unready(case: Case) -> str | None:
    """A member is not Ready or missing, and the rest may just hold a quorum. In a drain a budget has to say so."""
    found = _statefulset(case)
    if found is None:
        return None
    unready = [name for _, name in _unready(case, found.metadata.uid) if name != case.pod.metadata.name]
    if unready:
        return f"{unready[0]} of StatefulSet {found.metadata.name} is not Ready"
    there = len(case.context.state.by_owner.get((found.metadata.namespace, found.metadata.uid), ()))
    wanted = found.spec.replicas
    return f"StatefulSet {found.metadata.name} has {there} of {wanted} pods" if there < wanted else None


def _statefulset(case: Case) -> StatefulSet | None:
    found = case.workload.object if case.workload is not None else None
    return found if isinstance(found, StatefulSet) else None


def _unready(case: Case, uid: str) -> tuple[Key, ...]:
    known = case.context.unready.get(uid)
    if known is None:
        pods = case.context.state.by_owner.get((case.pod.metadata.namespace, uid), {})
        known = tuple(sorted(key for key, pod in pods.items() if not pod.ready))
        case.context.unready[uid] = known
    return known

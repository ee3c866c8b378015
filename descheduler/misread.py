"""Values on pods, workloads, namespaces and nodes that mean nothing, and the object that carries each.   Pure.

What a template says stands on every pod made from it: where two pods of a workload or more carry the same, that is
told once, on the workload, which is where it can be mended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cluster.eventlog import Severity, Subject, Topic
from cluster.meta import ObjectMeta
from cluster.objects import Node, Pod
from descheduler import marks
from descheduler.guards import Context, wishes
from descheduler.guards.case import Case
from descheduler.node_state import Key
from descheduler.requests import Said, pod_subject
from descheduler.workload import Workload
from policy import keys, placement, values
from policy.placement import Level, Metadata
from policy.reasons import Malformed

INVALID: Final = Topic("InvalidValue", "Read", Severity.WARNING)
OCEAN: Final = keys.OCEAN_RESTRICT_SCALE_DOWN
"""The one key of another project that is a label."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One value, and whose it is."""

    subject: Subject
    what: Malformed

    @property
    def place(self) -> str:
        """For people: `Deployment shop/web`."""
        space = self.subject.namespace if self.subject.kind != "Namespace" else ""
        return f"{self.subject.kind} {space}{'/' if space else ''}{self.subject.name}"


def find(context: Context) -> Iterator[Said]:
    """Every one there is, as Events. Goes over all objects, so not for every plan."""
    state = context.state
    for found in state.nodes.values():
        if found.node is not None:
            yield from map(_said, of_node(found.node, context))
    for namespace in state.namespaces.values():
        yield from map(_said, _of_namespace(namespace.metadata, context))
    for workload in state.controllers.values():
        if _is_top(workload, context):
            yield from map(_said, _of_workload(workload, context))
    yield from _of_pods(context)


def around(pod: Pod, context: Context) -> Iterator[Mistake]:
    """What stands on the pod, on what it belongs to and on its node."""
    state = context.state
    workload, namespace = Case(pod, context).annotated, state.namespaces.get(pod.metadata.namespace)
    node = state.nodes.get(pod.node_name)
    yield from (Mistake(pod_subject(pod), it) for it in _on_pod(pod, context))
    if workload is not None:
        yield from _of_workload(workload, context)
    if namespace is not None:
        yield from _of_namespace(namespace.metadata, context)
    if node is not None and node.node is not None:
        yield from of_node(node.node, context)


def of_node(node: Node, context: Context) -> Iterator[Mistake]:
    """Its opt-outs; what its signs say wrongly is told by who reads them."""
    meta = node.metadata
    for it in wishes.misread(meta, context.keys.rescheduling):
        yield Mistake(marks.subject(node), it)
    cast = meta.annotations.get(keys.CAST_REMOVAL_DISABLED)
    parsed = None if cast is None else values.flag(keys.CAST_REMOVAL_DISABLED, cast)
    if isinstance(parsed, Malformed):
        yield Mistake(marks.subject(node), parsed)


def _of_namespace(meta: ObjectMeta, context: Context) -> Iterator[Mistake]:
    """The Event lies in the namespace itself, where those who work in it look."""
    subject = Subject("v1", "Namespace", meta.name, meta.name, meta.uid)
    return (Mistake(subject, it) for it in _on(meta, meta.name, context))


def _of_workload(found: Workload, context: Context) -> Iterator[Mistake]:
    return (Mistake(_workload(found), it) for it in _on(found, found.namespace, context))


def _of_pods(context: Context) -> Iterator[Said]:
    first: dict[tuple[Key, Malformed], Pod] = {}
    several: set[tuple[Key, Malformed]] = set()
    for pod, wrong in _wrong_on_pods(context):
        owner = context.state.workload(pod)
        key = (pod.metadata.key if owner is None else owner.key), wrong
        if first.setdefault(key, pod) is not pod:
            several.add(key)
    for key, pod in first.items():
        owner = context.state.workload(pod)
        if owner is not None and key in several:
            yield Said(_workload(owner), INVALID, f"on its pods, {key[1]}")
        else:
            yield Said(pod_subject(pod), INVALID, str(key[1]))


def _wrong_on_pods(context: Context) -> Iterator[tuple[Pod, Malformed]]:
    """Pods of one template share what is read here, so it is read once for all of them."""
    annotated, ours = wishes.FOREIGN | context.words, context.keys.rescheduling
    for pods in context.state.by_namespace.values():
        known: dict[tuple[int, int, int], tuple[Malformed, ...]] = {}
        for pod in pods.values():
            meta = pod.metadata
            labels, annotations, owners = meta.labels, meta.annotations, meta.owner_references
            if annotated.isdisjoint(annotations) and ours not in labels and OCEAN not in labels:
                continue
            if meta.deletion_timestamp is not None:
                continue
            key = id(labels), id(annotations), id(owners[0]) if owners else 0
            found = known.get(key)
            if found is None:
                found = known[key] = tuple(dict.fromkeys(_on_pod(pod, context)))
            if found:
                yield from ((pod, it) for it in found)


def _on_pod(pod: Pod, context: Context) -> Iterator[Malformed]:
    yield from (it.what for it in Case(pod, context).decision.warnings if it.level is Level.POD)
    yield from wishes.mistakes(pod)


def _on(found: Metadata, namespace: str, context: Context) -> Iterator[Malformed]:
    """As if it were the nearest, so that nothing stands before it."""
    if not context.says(found):
        return
    above = context.state.namespaces.get(namespace)
    subject = placement.Subject(
        namespace_name=namespace, pod=found, namespace=above.metadata if above is not None else None
    )
    decision = placement.decide(subject, keys=context.keys, settings=context.settings)
    yield from dict.fromkeys(it.what for it in decision.warnings if it.level is Level.POD)


def _is_top(found: Workload, context: Context) -> bool:
    """A Deployment hands its annotations down to its ReplicaSets; they are its own."""
    above = found.object.metadata.controller if found.object is not None else None
    return above is None or context.state.controller(found.namespace, above.uid) is None


def _said(mistake: Mistake) -> Said:
    return Said(mistake.subject, INVALID, str(mistake.what))


def _workload(found: Workload) -> Subject:
    return Subject(found.api_version, found.kind, found.name, found.namespace, found.uid)

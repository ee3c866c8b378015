"""RFC 6902 operations, built by hand from a `Change`.

The API server refuses a pod whose patch does not apply, whatever the failure policy. So a parent that is
missing is created together with its content, a list is only ever appended to, and what nobody asked for has
no operation.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, Literal

import msgspec

from webhook.pod import Pod
from webhook.reasons import Note

Json = Mapping[str, Any]

LABELS: Final = "/metadata/labels"
ANNOTATIONS: Final = "/metadata/annotations"
CLASS: Final = "/spec/priorityClassName"
PRIORITY: Final = "/spec/priority"
PREEMPTION: Final = "/spec/preemptionPolicy"
TOLERATIONS: Final = "/spec/tolerations"
AFFINITY: Final = "/spec/affinity"
NODE_AFFINITY: Final = f"{AFFINITY}/nodeAffinity"
REQUIRED: Final = f"{NODE_AFFINITY}/requiredDuringSchedulingIgnoredDuringExecution"
TERMS: Final = f"{REQUIRED}/nodeSelectorTerms"
PREFERRED: Final = f"{NODE_AFFINITY}/preferredDuringSchedulingIgnoredDuringExecution"


class Op(msgspec.Struct, frozen=True, rename={"source": "from"}):
    """One operation; a removal has no `value`, and only a copy has a `from`."""

    op: Literal["add", "remove", "copy"]
    path: str
    value: Any = msgspec.UNSET
    source: str | msgspec.UnsetType = msgspec.UNSET

    def plain(self) -> dict[str, Any]:
        """The operation as a mapping."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule wants of a pod. Rules look at the pod first, so everything in here is news to it."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    drop_labels: tuple[str, ...] = ()
    drop_annotations: tuple[str, ...] = ()
    priority_class: str = ""
    tolerations: tuple[Json, ...] = ()
    preferred: tuple[Json, ...] = ()
    alternatives: tuple[tuple[Json, ...], ...] = ()
    """Rules to require: a node must satisfy all of one of these."""
    narrow: tuple[int, ...] = ()
    """Which of the pod's own required terms they join; none where the pod has no required affinity."""
    notes: tuple[Note, ...] = ()
    warnings: tuple[str, ...] = ()


NO_CHANGE: Final = Change()


def merged(changes: Iterable[Change]) -> Change:
    """Several changes as one, in their order."""
    return reduce(_joined, changes, NO_CHANGE)


def ops(pod: Pod, change: Change) -> tuple[Op, ...]:
    """The smallest list of operations that makes the change to this pod."""
    return (
        *_metadata(LABELS, pod.metadata.labels, change.labels, change.drop_labels),
        *_metadata(ANNOTATIONS, pod.metadata.annotations, change.annotations, change.drop_annotations),
        *_priority(pod, change.priority_class),
        *_affinity(pod, change),
        *_list(TOLERATIONS, pod.spec.tolerations, change.tolerations),
    )


def encode(operations: tuple[Op, ...]) -> bytes:
    """The patch as it is sent, before base64."""
    return msgspec.json.encode(operations)


def escape(key: str) -> str:
    """A member name as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _joined(one: Change, other: Change) -> Change:
    if one is NO_CHANGE:
        return other
    return Change(
        labels={**one.labels, **other.labels},
        annotations={**one.annotations, **other.annotations},
        drop_labels=one.drop_labels + other.drop_labels,
        drop_annotations=one.drop_annotations + other.drop_annotations,
        priority_class=one.priority_class or other.priority_class,
        tolerations=one.tolerations + other.tolerations,
        preferred=one.preferred + other.preferred,
        alternatives=one.alternatives + other.alternatives,
        narrow=one.narrow + other.narrow,
        notes=one.notes + other.notes,
        warnings=one.warnings + other.warnings,
    )


def _metadata(path: str, own: dict[str, str] | None, new: Mapping[str, str], gone: Iterable[str]) -> Iterator[Op]:
    if own is None:
        if new:
            yield Op("add", path, dict(new))
        return
    for key in gone:
        yield Op("remove", f"{path}/{escape(key)}")
    for key, value in new.items():
        yield Op("add", f"{path}/{escape(key)}", value)


def _priority(pod: Pod, name: str) -> Iterator[Op]:
    """Set the class and clear what goes with it.

    The Priority plugin has filled these fields already and refuses a class that does not agree with them; once
    they are gone it computes them again, from the new class.
    """
    if not name:
        return
    if pod.spec.priority is not None:
        yield Op("remove", PRIORITY)
    if pod.spec.preemption_policy is not None:
        yield Op("remove", PREEMPTION)
    yield Op("add", CLASS, name)


def _affinity(pod: Pod, change: Change) -> Iterator[Op]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        whole = _whole(change)
        if whole and affinity is None:
            yield Op("add", AFFINITY, {"nodeAffinity": whole})
        elif whole:
            yield Op("add", NODE_AFFINITY, whole)
        return
    own = affinity.node_affinity
    if change.narrow:
        yield from _narrowed(pod, change)
    elif change.alternatives:
        yield Op("add", REQUIRED, _terms(change.alternatives))
    yield from _list(PREFERRED, own.get("preferredDuringSchedulingIgnoredDuringExecution"), change.preferred)


def _whole(change: Change) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if change.alternatives:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = _terms(change.alternatives)
    if change.preferred:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = list(change.preferred)
    return found


def _terms(alternatives: Iterable[tuple[Json, ...]]) -> Json:
    return {"nodeSelectorTerms": [{"matchExpressions": list(rules)} for rules in alternatives]}


def _narrowed(pod: Pod, change: Change) -> Iterator[Op]:
    """Join the rules to every term they must narrow. Terms are alternatives: a term of its own would widen.

    Where there are several alternatives, each term is copied for all but the first, so that what comes out is
    (term and first) or (term and second) and so on; `copy` takes along even what we do not know of a term.
    """
    terms = pod.required_terms
    places = [list(change.narrow)]
    for _ in change.alternatives[1:]:
        first = len(terms) + (len(places) - 1) * len(change.narrow)
        places.append(list(range(first, first + len(change.narrow))))
        for index in change.narrow:
            yield Op("copy", f"{TERMS}/-", source=f"{TERMS}/{index}")
    for rules, indexes in zip(change.alternatives, places, strict=True):
        for original, index in zip(change.narrow, indexes, strict=True):
            yield from _list(f"{TERMS}/{index}/matchExpressions", terms[original].get("matchExpressions"), rules)


def _list(path: str, own: object, new: tuple[Json, ...]) -> Iterator[Op]:
    if own is None:
        if new:
            yield Op("add", path, list(new))
        return
    for item in new:
        yield Op("add", f"{path}/-", item)

"""Guards of what people have said about a pod: our own key, and those of other projects.

Each returns the sentence, or None. A value of another project's key that means nothing is passed over, one of ours
counts as a no; both are told to whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from cluster.objects import Pod
from descheduler.guards.case import Case
from policy import durations, keys, values
from policy.placement import Level, Metadata
from policy.reasons import Malformed, shorten
from policy.values import Rescheduling, SafeToEvict

NEVER_AT_COST: Final = values.INT32_MAX
"""The eviction cost at which koordinator never evicts."""


def opted_out_by_owner(case: Case) -> str | None:
    """Said on the pod, its workload or its namespace: the word of whoever runs the application. A drain leaves it and
    tells so on the node.
    """
    origin = case.decision.origins["rescheduling"]
    if case.decision.intent.rescheduling is Rescheduling.ENABLED or origin.level is Level.SETTINGS:
        return None
    return None if origin.misread is not None else f"{origin.key}: disabled on {speaker(case, origin.level)}"


def misread_of_owner(case: Case) -> str | None:
    """Somebody wrote something about evictions there, and a typo in an opt-out must not become an eviction. So it
    counts as `disabled`, and whoever wrote it is told by an Event.
    """
    origin = case.decision.origins["rescheduling"]
    if origin.misread is None:
        return None
    return _unread(origin.misread, speaker(case, origin.level))


def opted_out_by_settings(case: Case) -> str | None:
    """Moves are opt-in, and nobody has opted in. A drain is a decision of the same people and goes before it."""
    if case.decision.intent.rescheduling is Rescheduling.ENABLED:
        return None
    origin = case.decision.origins["rescheduling"]
    if origin.level is not Level.SETTINGS or origin.key == "excludedNamespaces":
        return None  # an excluded namespace has a reason of its own
    return f"the settings have {origin.key}: disabled, and nobody says {case.context.keys.rescheduling}: enabled"


def opted_out_by_node(case: Case) -> str | None:
    """Pods on it stay while nothing forces them. Maintenance of the same node says more and goes before it."""
    node = case.node.node if case.node is not None else None
    if node is None:
        return None
    key, meta = case.context.keys.rescheduling, node.metadata
    if Rescheduling.DISABLED in (meta.labels.get(key), meta.annotations.get(key)):
        return f"{key}: disabled on node {meta.name}"
    if meta.annotations.get(keys.CAST_REMOVAL_DISABLED) == "true":
        return f"{keys.CAST_REMOVAL_DISABLED}: true on node {meta.name}"
    return None


def misread_of_node(case: Case) -> str | None:
    """The same on the node, as far as a node can say it: maintenance goes before it."""
    node = case.node.node if case.node is not None else None
    wrong = next(misread(node.metadata, case.context.keys.rescheduling), None) if node is not None else None
    return _unread(wrong, f"node {case.pod.node_name}") if wrong is not None else None


def safe_to_evict(case: Case) -> str | None:
    """The autoscaler's annotation says no, or asks to wait for the pod's end."""
    said = said_of(case.pod.metadata.annotations, keys.SAFE_TO_EVICT)
    if said is SafeToEvict.FALSE:
        return f"{keys.SAFE_TO_EVICT}: false"
    if said is SafeToEvict.ON_COMPLETION:
        return f"{keys.SAFE_TO_EVICT}: on-completion asks to wait for its end"
    return None


def never_evict(case: Case) -> str | None:
    """Marks of other projects that mean no. `descheduler.alpha.kubernetes.io/evict: false` means yes to its own
    reader, which only looks whether the key is there; people who write it mean no.
    """
    annotations = case.pod.metadata.annotations
    if annotations.get(keys.DESCHEDULER_EVICT) == "false":
        return f"{keys.DESCHEDULER_EVICT}: false"
    if said_of(annotations, keys.KOORDINATOR_EVICTION_COST) == NEVER_AT_COST:
        return f"{keys.KOORDINATOR_EVICTION_COST}: {NEVER_AT_COST} means never"
    if said_of(annotations, keys.CAST_REMOVAL_DISABLED) is True:
        return f"{keys.CAST_REMOVAL_DISABLED}: true"
    if said_of(case.pod.metadata.labels, keys.OCEAN_RESTRICT_SCALE_DOWN) is True:
        return f"{keys.OCEAN_RESTRICT_SCALE_DOWN}: true"
    return None


def prefers_to_stay(case: Case) -> str | None:
    """A preference, so a drain goes before it. The key counts, whatever it holds, unless that is a plain `false`."""
    value = case.pod.metadata.annotations.get(keys.DESCHEDULER_PREFER_NO_EVICTION, "false")
    return f"{keys.DESCHEDULER_PREFER_NO_EVICTION}: {value}" if value != "false" else None


def moved_by_another(case: Case) -> str | None:
    """An eviction would only ask its own controller to move it, as virtual machines do. A drain may ask that."""
    if keys.DESCHEDULER_REQUEST_EVICT_ONLY in case.pod.metadata.annotations:
        return f"{keys.DESCHEDULER_REQUEST_EVICT_ONLY}: its own controller would choose where it goes"
    return None


def being_evicted(case: Case) -> str | None:
    """Another descheduler has asked for its eviction."""
    if keys.DESCHEDULER_EVICTION_IN_PROGRESS in case.pod.metadata.annotations:
        return f"{keys.DESCHEDULER_EVICTION_IN_PROGRESS}: another descheduler has asked for its eviction"
    return None


def do_not_disrupt(case: Case) -> str | None:
    """Karpenter's annotation: `true`, or for a time from its start."""
    said = said_of(case.pod.metadata.annotations, keys.DO_NOT_DISRUPT)
    if said is True:
        return f"{keys.DO_NOT_DISRUPT}: true"
    if not isinstance(said, timedelta):
        return None
    # A pod whose start nobody knows has not had its time yet.
    until = case.since + said if case.since is not None else None
    if until is not None and case.context.now >= until:
        return None
    end = f", until {values.format_time(until)}" if until is not None else ""
    return f"{keys.DO_NOT_DISRUPT}: {durations.text_of(said)} from its start{end}"


def may_lose_volumes(pod: Pod) -> frozenset[str] | None:
    """Names of local volumes that may be lost with the pod; None for all of them."""
    annotations = pod.metadata.annotations
    if said_of(annotations, keys.SAFE_TO_EVICT) is SafeToEvict.TRUE:
        return None
    if annotations.get(keys.DESCHEDULER_EVICT, "false") != "false":
        return None
    listed = annotations.get(keys.SAFE_TO_EVICT_LOCAL_VOLUMES, "")
    return frozenset(name.strip() for name in listed.split(","))


def deletion_cost(pod: Pod) -> int:
    """For the order in which equal pods are taken, lowest first; 0 if it says nothing that can be understood."""
    said = said_of(pod.metadata.annotations, keys.POD_DELETION_COST)
    return said if isinstance(said, int) else 0


def mistakes(pod: Pod) -> Iterator[Malformed]:
    """Values of foreign keys that mean nothing."""
    for metadata in (pod.metadata.annotations, pod.metadata.labels):
        for key in metadata.keys() & _PARSERS.keys():
            if (key == keys.OCEAN_RESTRICT_SCALE_DOWN) == (metadata is pod.metadata.labels):
                parsed = _PARSERS[key](key, metadata[key])
                if isinstance(parsed, Malformed):
                    yield parsed


def misread(found: Metadata, key: str) -> Iterator[Malformed]:
    """What stands in our key, as label or annotation, and is neither `enabled` nor `disabled`."""
    for text in (found.labels.get(key), found.annotations.get(key)):
        parsed = None if text is None else values.rescheduling(key, text)
        if isinstance(parsed, Malformed):
            yield parsed


def said_of(metadata: Mapping[str, str], key: str) -> Any:
    """The parsed value of a foreign key, None if there is none or it means nothing."""
    text = metadata.get(key)
    if text is None:
        return None
    parsed = _PARSERS[key](key, text)
    return None if isinstance(parsed, Malformed) else parsed


def speaker(case: Case, level: Level) -> str:
    """Who said something of a pod, by name."""
    match level:
        case Level.POD:
            return "the pod"
        case Level.WORKLOAD:
            return case.workload.text if case.workload is not None else "its workload"
        case Level.NAMESPACE:
            return f"namespace {case.pod.metadata.namespace}"
        case Level.SETTINGS:
            return "the settings"


def _unread(wrong: Malformed, where: str) -> str:
    return f"{wrong.key}: {shorten(wrong.value)!r} on {where} is neither 'enabled' nor 'disabled', and counts as a no"


_PARSERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    keys.SAFE_TO_EVICT: values.safe_to_evict,
    keys.DO_NOT_DISRUPT: values.do_not_disrupt,
    keys.KOORDINATOR_EVICTION_COST: values.cost,
    keys.POD_DELETION_COST: values.cost,
    keys.CAST_REMOVAL_DISABLED: values.flag,
    keys.OCEAN_RESTRICT_SCALE_DOWN: values.flag,
}
FOREIGN: Final = frozenset(_PARSERS)
"""Keys of other projects with values that can be wrong."""

"""What a pod and a node say about each other: selector, required affinity, taints, cordon.   Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cluster.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Toleration
from cluster.objects import Node, PodSpec, Taint
from descheduler.fit.misfit import FitCode, Misfit

KEEPING_OUT: Final = frozenset({"NoSchedule", "NoExecute"})
"""Effects of taints that filter; PreferNoSchedule only costs score."""
CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What a pod has to tolerate to go to a cordoned node, whether or not the node carries the taint already."""
_INTEGER = re.compile(r"([+-]?)(?=[0-9])0*([0-9]*)", re.ASCII)
_INT64: Final = 2**63
_LONGEST: Final = len(str(_INT64))
"""Its author may write as many digits as fit into an object, and Python refuses to read thousands."""


def allowed(spec: PodSpec, node: Node) -> bool:
    """Whether nothing in `misfits` stands against it, found as fast as possible."""
    return (
        not (node.spec.taints and untolerated(spec.tolerations, node.spec.taints))
        and not (node.spec.unschedulable and not tolerates(spec.tolerations, CORDON))
        and wanted(spec, node)
    )


def wanted(spec: PodSpec, node: Node) -> bool:
    """Whether the pod's nodeSelector and required node affinity admit the node."""
    labels = node.metadata.labels
    if spec.node_selector and any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    required = required_affinity(spec)
    return required is None or matches(required, labels, node.metadata.name)


def misfits(spec: PodSpec, node: Node) -> Iterator[Misfit]:
    """Every reason on this side."""
    labels = node.metadata.labels
    if node.spec.unschedulable and not tolerates(spec.tolerations, CORDON):
        yield Misfit(FitCode.UNSCHEDULABLE, "the node is cordoned")
    for taint in untolerated(spec.tolerations, node.spec.taints):
        yield Misfit(FitCode.TAINT, f"the pod does not tolerate {_text(taint)}")
    for key, value in spec.node_selector.items():
        if labels.get(key) != value:
            yield Misfit(
                FitCode.NODE_SELECTOR, f"nodeSelector wants {key}={value}, the node has {_found(labels, key)}"
            )
    required = required_affinity(spec)
    if required is not None and not matches(required, labels, node.metadata.name):
        terms = " or ".join(_shown(term) for term in required.node_selector_terms) or "nothing"
        yield Misfit(FitCode.NODE_AFFINITY, f"required node affinity wants {terms}")


def required_affinity(spec: PodSpec) -> NodeSelector | None:
    """The required half of the pod's node affinity."""
    affinity = spec.affinity
    return None if affinity is None or affinity.node_affinity is None else affinity.node_affinity.required


# ---- node selectors


def matches(selector: NodeSelector, labels: Mapping[str, str], name: str) -> bool:
    """Whether one of the terms matches. Without a name, as for volumes, fields are not looked at."""
    return any(_term(term, labels, name) for term in selector.node_selector_terms)


def _term(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """All of its parts must hold, and a term without any matches nothing."""
    if not (term.match_expressions or term.match_fields):
        return False
    return all(_label(rule, labels) for rule in term.match_expressions) and all(
        _field(rule, name) for rule in term.match_fields
    )


def _label(rule: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(rule.key)
    match rule.operator:
        case "In":
            return value in rule.values
        case "NotIn":
            return value not in rule.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(rule, value)
        case _:
            return False


def _compares(rule: NodeSelectorRequirement, value: str | None) -> bool:
    """Both sides must be 64-bit integers; anything else matches no node."""
    limit = _integer(rule.values[0]) if len(rule.values) == 1 else None
    found = _integer(value)
    if limit is None or found is None:
        return False
    return found > limit if rule.operator == "Gt" else found < limit


def _integer(text: str | None) -> int | None:
    found = _INTEGER.fullmatch(text) if text is not None else None
    if found is None or len(found[2]) > _LONGEST:
        return None
    number = int(found[1] + (found[2] or "0"))
    return number if -_INT64 <= number < _INT64 else None


def _field(rule: NodeSelectorRequirement, name: str) -> bool:
    """Only the name can be asked for, and only one at a time."""
    if len(rule.values) != 1 or rule.operator not in {"In", "NotIn"}:
        return False
    if not name:
        return True
    value = name if rule.key == "metadata.name" else ""
    return (value == rule.values[0]) == (rule.operator == "In")


# ---- taints


def untolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Taints that keep the pod out."""
    return tuple(taint for taint in taints if taint.effect in KEEPING_OUT and not tolerates(tolerations, taint))


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of them does."""
    return any(_tolerates(it, taint) for it in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Gt and Lt exist in the API but are switched off by default, and then tolerate nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value


# ---- words


def _text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _found(labels: Mapping[str, str], key: str) -> str:
    return f"{key}={labels[key]}" if key in labels else "no such label"


def _shown(term: NodeSelectorTerm) -> str:
    rules = (*term.match_expressions, *term.match_fields)
    return "(" + ", ".join(f"{it.key} {it.operator} {','.join(it.values)}".rstrip() for it in rules) + ")"


def asked(spec: PodSpec) -> str:
    """What the pod asks of a node's labels and name, as people would write it."""
    labels = ", ".join(f"{key}={value}" for key, value in spec.node_selector.items())
    required = required_affinity(spec)
    terms = " or ".join(_shown(term) for term in required.node_selector_terms) if required is not None else ""
    told = (("nodeSelector", labels), ("required node affinity", terms))
    return " and ".join(f"{name} {text}" for name, text in told if text)

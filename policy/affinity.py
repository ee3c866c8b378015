"""What a pod's own node selector and node affinity already say: contradictions with our intent, and pins.

Takes the parts of a pod spec as plain mappings in their JSON form. Reads only; users' own fields always stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policy import capacity, keys
from policy.capacity import CapacityLabel, CapacityType
from policy.reasons import Malformed
from policy.values import Spot

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_NAME: Final = "metadata.name"

JsonObject = Mapping[str, Any]


def contradictions(
    spot: Spot,
    *,
    key: str,
    selector: Mapping[str, str],
    node_affinity: JsonObject,
    table: Sequence[CapacityLabel] = capacity.LABELS,
) -> tuple[Malformed, ...]:
    """What the pod requires against what it prefers, and against the `spot` intent that `key` asks for."""
    required = required_capacity(selector, node_affinity, table)
    if required is None:
        return ()
    found = []
    for preferred in sorted(set(_preferred(node_affinity, table)) - {required}):
        told = f"requires {required}, prefers {preferred}"
        found.append(Malformed("spec.affinity.nodeAffinity", told, "a preference that the requirement allows"))
    if required is CapacityType.ON_DEMAND and spot is Spot.REQUIRE:
        found.append(Malformed(key, spot.value, "another intent, because the pod's own affinity requires on-demand"))
    if required is CapacityType.SPOT and spot is Spot.AVOID:
        found.append(Malformed(key, spot.value, "another intent, because the pod's own affinity requires spot"))
    return tuple(found)


def required_capacity(
    selector: Mapping[str, str], node_affinity: JsonObject, table: Sequence[CapacityLabel] = capacity.LABELS
) -> CapacityType | None:
    """The one capacity type the pod can run on by its own rules; None if they leave both open."""
    selected = capacity.capacity_type(selector, table)
    if selected is not CapacityType.UNKNOWN:
        return selected
    kinds = {_of_term(term, table) for term in _required_terms(node_affinity)}
    return kinds.pop() if len(kinds) == 1 else None


def preferred_capacity(
    node_affinity: JsonObject, table: Sequence[CapacityLabel] = capacity.LABELS
) -> CapacityType | None:
    """The one capacity type that all preferences on it ask for; None if there is none, or if they disagree."""
    kinds = set(_preferred(node_affinity, table))
    return kinds.pop() if len(kinds) == 1 else None


def pinned(selector: Mapping[str, str], node_affinity: JsonObject) -> str | None:
    """The rule that ties the pod to a single node, in words; None if it may run elsewhere."""
    if keys.HOSTNAME in selector:
        return f"nodeSelector {keys.HOSTNAME}={selector[keys.HOSTNAME]}"
    rules = {_single_host(term) for term in _required_terms(node_affinity)}
    return rules.pop() if len(rules) == 1 else None


def _single_host(term: JsonObject) -> str | None:
    for listed, name in (("matchExpressions", keys.HOSTNAME), ("matchFields", _NODE_NAME)):
        for rule in term.get(listed) or ():
            hosts: Sequence[str] = rule.get("values") or ()
            if rule.get("key") == name and rule.get("operator") == "In" and len(set(hosts)) == 1:
                return f"required node affinity {name} In [{hosts[0]}]"
    return None


def _preferred(node_affinity: JsonObject, table: Sequence[CapacityLabel]) -> Iterator[CapacityType]:
    for item in node_affinity.get(_PREFERRED) or ():
        kind = _of_term(item.get("preference") or {}, table)
        if kind is not None:
            yield kind


def _required_terms(node_affinity: JsonObject) -> list[JsonObject]:
    """Terms are alternatives, rules within one are joined; an empty term matches nothing."""
    terms = (node_affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    return [term for term in terms if term.get("matchExpressions") or term.get("matchFields")]


def _of_term(term: JsonObject, table: Sequence[CapacityLabel]) -> CapacityType | None:
    rows = {row.key: row for row in table}
    for rule in term.get("matchExpressions") or ():
        row = rows.get(str(rule.get("key")))
        kind = None if row is None else _of_rule(rule, row)
        if kind is not None:
            return kind
    return None


def _of_rule(rule: JsonObject, row: CapacityLabel) -> CapacityType | None:
    kinds = {capacity.meaning(row, value) for value in rule.get("values") or ()}
    if len(kinds) != 1 or CapacityType.UNKNOWN in kinds:
        return None
    kind = kinds.pop()
    if rule.get("operator") == "In":
        return kind
    if rule.get("operator") == "NotIn":
        return CapacityType.ON_DEMAND if kind is CapacityType.SPOT else CapacityType.SPOT
    return None

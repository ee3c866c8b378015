"""Spot intent as node affinity and tolerations: prefer, require, avoid, or nothing.

What the user wrote on capacity stands: it is neither widened nor overridden nor said twice.
"""

from collections.abc import Container, Mapping
from typing import Any, Final

import msgspec

from policy import affinity
from policy.capacity import ANY, CapacityLabel, CapacityType
from policy.reasons import Malformed
from policy.values import Spot
from webhook.patch import NO_CHANGE, Change
from webhook.pod import Pod, Term, Toleration
from webhook.reasons import Note
from webhook.view import Taint, View

NARROWED_AT_MOST: Final = 64
"""Terms of one pod that the rule joins. People write a handful. Each costs an operation or more of the patch, and all
pods of the cluster wait while it is made and checked: 75,000 terms fit into a review.
"""
COPIED_AT_MOST_BYTES: Final = 128 * 1024
"""Where several labels are in use and each term is copied for all but the first. API servers end a patch that
copies more than 3 MiB, and etcd takes no object of more than 1.5 MiB: either way the pod would be denied.
"""
_PINNED: Final = Change(notes=(Note.PINNED,))
_IGNORED: Final = Change(notes=(Note.SPOT_IGNORED,))
_OWN_RULE: Final = Change(notes=(Note.OWN_CAPACITY_RULE,))
_NO_TERM: Final = Change(notes=(Note.NO_REQUIRED_TERM,))
_NO_LABEL: Final = Change(notes=(Note.NO_CAPACITY_LABEL,))
_NO_LABEL_TOLD: Final = Change(
    notes=(Note.NO_CAPACITY_LABEL,),
    warnings=("spot is required, but no node carries a capacity label: the pod may run anywhere",),
)


class Own(msgspec.Struct, frozen=True):
    """What the pod's own rules say about capacity."""

    selected: bool
    """The node selector names a capacity label."""
    terms: tuple[int, ...]
    """Required terms that do."""
    preferred: frozenset[CapacityType | None]
    """What the preferences that do ask for; None is one that we cannot read."""
    required: CapacityType | None
    """The one capacity that all of it leaves."""

    @property
    def any(self) -> bool:
        """Whether there is such a rule at all."""
        return self.selected or bool(self.terms) or bool(self.preferred)

    @property
    def allows_spot(self) -> bool:
        """Whether tolerating spot nodes goes with these rules."""
        if self.required is not None:
            return self.required is CapacityType.SPOT
        return not self.any or (not self.selected and not self.terms and self.preferred == {CapacityType.SPOT})


_NO_RULES: Final = Own(selected=False, terms=(), preferred=frozenset(), required=None)


def change(pod: Pod, spot: Spot, view: View, *, key: str, weight: int, mixed: bool = False) -> Change:
    """Affinity and tolerations for an intent that `key` asked for. A pod of a mix tolerates spot on either side: the
    side is a preference, and without the tolerations the pod could never be brought to the other one.
    """
    if spot is Spot.IGNORE:
        return _IGNORED
    free = not pod.selector and not pod.node_affinity
    if not free and affinity.pinned(pod.selector, pod.node_affinity) is not None:
        return _PINNED
    own = _NO_RULES if free else own_rules(pod, view.capacity_table)
    if spot is Spot.AVOID:
        placed = _preference(own, view, "not_spot", weight=weight, note=Note.SPOT_AVOIDED)
    elif spot is Spot.REQUIRE:
        placed = _require(pod, own, view)
    else:
        placed = _preference(own, view, "is_spot", weight=weight, note=Note.SPOT_PREFERRED)
    welcome = own.allows_spot or _leaves_spot_only(pod, own, placed, view.capacity_table)
    tolerated = _tolerate(pod, view) if welcome and (mixed or spot is not Spot.AVOID) else NO_CHANGE
    return Change(
        preferred=placed.preferred,
        alternatives=placed.alternatives,
        narrow=placed.narrow,
        tolerations=tolerated.tolerations,
        notes=placed.notes + tolerated.notes,
        warnings=placed.warnings + _contradictions(pod, spot, own, view, key),
    )


def own_rules(pod: Pod, table: tuple[CapacityLabel, ...]) -> Own:
    """What the pod's own rules say about capacity; ours of an earlier call are among them."""
    known: set[str | None] = {row.key for row in table}
    preferences = [item.get("preference") or Term() for item in pod.preferred_terms]
    return Own(
        selected=not known.isdisjoint(pod.selector),
        terms=tuple(index for index, term in enumerate(pod.required_terms) if _names(term, known)),
        preferred=frozenset(_kind(term, table) for term in preferences if _names(term, known)),
        required=affinity.required_capacity(pod.selector, pod.node_affinity, table),
    )


def _preference(own: Own, view: View, side: str, *, weight: int, note: Note) -> Change:
    """One preferred term per capacity label in use."""
    if own.any:
        return _OWN_RULE
    if not view.capacity:
        return _NO_LABEL
    rules: list[tuple[Mapping[str, Any], ...]] = [getattr(label, side) for label in view.capacity]
    terms = tuple({"weight": weight, "preference": {"matchExpressions": list(rule)}} for rule in rules)
    return Change(preferred=terms, notes=(note,))


def _require(pod: Pod, own: Own, view: View) -> Change:
    """The rule joins every term that says nothing on capacity; an empty term matches no node and stays so."""
    if own.selected:
        return _OWN_RULE
    required = pod.node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = pod.required_terms
    alive = [i for i, term in enumerate(terms) if term.get("matchExpressions") or term.get("matchFields")]
    spoken = frozenset(own.terms)
    narrow = tuple(i for i in alive if i not in spoken)
    if required is not None and not narrow:
        return _OWN_RULE if own.terms else _NO_TERM
    if not view.capacity:
        return _NO_LABEL_TOLD
    alternatives = tuple(label.is_spot for label in view.capacity)
    if len(narrow) > NARROWED_AT_MOST:
        return _too_large(f"{len(narrow)} required terms", f"at most {NARROWED_AT_MOST}")
    copied = (len(alternatives) - 1) * sum(len(msgspec.json.encode(terms[i])) for i in narrow)
    if copied > COPIED_AT_MOST_BYTES:
        return _too_large(f"{copied} bytes of copied terms", f"at most {COPIED_AT_MOST_BYTES}")
    return Change(alternatives=alternatives, narrow=narrow, notes=(Note.SPOT_REQUIRED,))


def _too_large(told: str, accepted: str) -> Change:
    """Joining some terms and not others would change which of them the scheduler takes, so none is joined."""
    wrong = Malformed("spec.affinity.nodeAffinity", told, f"{accepted}: spot is not required for this pod")
    return Change(notes=(Note.TOO_MANY_TERMS,), warnings=(str(wrong),))


def _leaves_spot_only(pod: Pod, own: Own, placed: Change, table: tuple[CapacityLabel, ...]) -> bool:
    """Whether the pod can run on nothing but spot once the rule is added, whatever it prefers: without the
    tolerations it could then run nowhere.
    """
    terms = pod.required_terms
    return bool(placed.alternatives) and all(_kind(terms[i], table) is CapacityType.SPOT for i in own.terms)


def _tolerate(pod: Pod, view: View) -> Change:
    """A toleration for each spot taint that nodes of this cluster have and the pod does not tolerate yet."""
    if not view.settings.placement.spot_tolerations:
        return NO_CHANGE
    held = pod.spec.tolerations or ()
    missing = [taint for taint in view.spot_taints if not any(tolerates(it, taint) for it in held)]
    if not missing:
        return NO_CHANGE
    return Change(tolerations=tuple(_toleration(taint) for taint in missing), notes=(Note.SPOT_TOLERATED,))


def tolerates(held: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint, by the scheduler's rules; `*` as the taint's value is every value."""
    if held.effect not in {None, "", taint.effect}:
        return False
    if held.operator == "Exists":
        return held.key in {None, "", taint.key}
    equal = held.operator in {None, "", "Equal"} and taint.value != ANY
    return equal and held.key == taint.key and (held.value or "") == taint.value


def _toleration(taint: Taint) -> Mapping[str, str]:
    if taint.value == ANY:
        return {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, "operator": "Equal", **value, "effect": taint.effect}


def _contradictions(pod: Pod, spot: Spot, own: Own, view: View, key: str) -> tuple[str, ...]:
    if not own.any:
        return ()
    found = affinity.contradictions(
        spot, key=key, selector=pod.selector, node_affinity=pod.node_affinity, table=view.capacity_table
    )
    return tuple(str(it) for it in found)


def _names(term: Term, known: Container[str | None]) -> bool:
    return any(rule.get("key") in known for rule in term.get("matchExpressions") or ())


def _kind(term: Term, table: tuple[CapacityLabel, ...]) -> CapacityType | None:
    """What one term asks for: as much as a pod that required it and nothing else."""
    alone = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return affinity.required_capacity({}, alone, table)

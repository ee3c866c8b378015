"""A target for one proposal, or the one reason why there is none.   Pure.

Which capacity a pod may go to follows from its intent and from where it is: a move nobody has to make must not take a
pod a step back, off spot where it prefers spot or onto spot where it avoids it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from cluster.objects import Pod, PodSpec
from descheduler.fit import FitCode, Misfit
from descheduler.guards.case import Case, Context
from descheduler.ledger import Ledger
from descheduler.node_state import NodeState
from descheduler.places import Template, template
from descheduler.proposal import Aim, Proposal, Urgency
from descheduler.reasons import Code, Reason
from policy.capacity import CapacityType
from policy.values import Spot
from policy.values import Tier as Importance

DETAILED_CHECKS: Final = 5_000
"""Pairs of pod and node for which one plan asks for every reason, some fifty milliseconds. After that a refusal says
that none of so many nodes fits, but no longer why."""

Tier = bool | None
"""Spot nodes, other nodes, or any."""

NAMES: Final[dict[Tier, str]] = {True: "spot nodes", False: "nodes other than spot", None: "nodes"}
PHRASES: Final = {
    FitCode.TAINT: "untolerated taint",
    FitCode.NODE_SELECTOR: "node selector",
    FitCode.NODE_AFFINITY: "node affinity",
}
MORE_UNEVEN: Final = Reason(
    Code.NO_IMPROVEMENT, "without it where it is, its workload would be more uneven than its spread constraints allow"
)


@dataclass(frozen=True, slots=True)
class _Stuck:
    """A pod of a template had nowhere to go."""

    booked: int
    """After so many bookings."""
    untried: str
    """The node that was not tried, because the pod was on it."""
    reason: Reason


class Search:
    """Remembers what could go nowhere: pods of one template come by the dozen."""

    def __init__(self, ledger: Ledger, context: Context) -> None:
        self._ledger = ledger
        self._context = context
        self._stuck: dict[tuple[Template, tuple[Tier, ...], Hashable], _Stuck] = {}
        self._details: dict[tuple[Template, Tier], str] = {}
        self._checks_left = DETAILED_CHECKS

    def target(self, proposal: Proposal) -> str | Reason:
        """The node to go to. The pod has left its own in the picture."""
        pod, aim = proposal.pod, proposal.aim
        tiers = proposal.tiers or tiers_of(Case(pod, self._context), proposal.urgency)
        for alike in _kinds(aim):
            known = self._stuck.get((template(pod), tiers, alike))
            if known is not None and self._still_holds(known, pod, tiers, aim):
                return known.reason
        places = self._ledger.places
        for tier in tiers:
            found = places.choose(pod, spot=tier, aim=aim, even=proposal.urgency is Urgency.VOLUNTARY)
            if found is not None:
                return found
        reason = self._reason(pod, tiers, aim)
        if not proposal.tiers and reason.code is Code.NO_IMPROVEMENT and reason is not MORE_UNEVEN:
            reason = self._narrowed(reason, tiers)
        alike = None if aim is None or reason.code is Code.NO_NODE_FITS else aim.alike()
        if reason.code is Code.NO_NODE_FITS or alike is not None:
            stuck = _Stuck(self._ledger.booked, pod.node_name, reason)
            self._stuck[template(pod), tiers, alike] = stuck
        return reason

    # ---- what does not fit

    def _reason(self, pod: Pod, tiers: tuple[Tier, ...], aim: Aim | None) -> Reason:
        for tier in tiers:
            fitting = self._ledger.places.choose(pod, spot=tier)
            if fitting is not None:
                objection = None if aim is None else aim.objection(self._ledger.picture, pod, fitting)
                return objection or MORE_UNEVEN
        return Reason(Code.NO_NODE_FITS, "; ".join(self._why(pod, tier) for tier in tiers))

    def _narrowed(self, objection: Reason, tiers: tuple[Tier, ...]) -> Reason:
        """With nodes named on which the pod fits and which are not for it: people see them stand empty."""
        if len(tiers) != 1 or tiers[0] is None:
            return objection
        others = not tiers[0]
        there = next(self._ledger.places.names(spot=others), None) is not None
        return Reason(objection.code, f"{objection.text}; {NAMES[others]} are not for it") if there else objection

    def _still_holds(self, known: _Stuck, pod: Pod, tiers: tuple[Tier, ...], aim: Aim | None) -> bool:
        if known.booked != self._ledger.booked or pod.claims or _minds_others(pod.spec):
            return False
        node = self._ledger.state.nodes.get(known.untried)
        if known.untried == pod.node_name or node is None or not node.open:
            return True
        allowed = any(tier is None or tier is _is_spot(node) for tier in tiers)
        return not allowed or not self._serves(known, pod, aim)

    def _serves(self, known: _Stuck, pod: Pod, aim: Aim | None) -> bool:
        """Whether the one node that was not tried would do."""
        fits = self._ledger.fitter.fits(pod, known.untried)
        if known.reason.code is Code.NO_NODE_FITS or aim is None:
            return fits
        return fits and aim.objection(self._ledger.picture, pod, known.untried) is None

    def _why(self, pod: Pod, tier: Tier) -> str:
        """Once for a template: the sentence is for people, and a move or two do not change what it tells them."""
        known = self._details.get((template(pod), tier))
        if known is None or pod.claims or _minds_others(pod.spec):
            known = self._details[template(pod), tier] = self._count_misfits(pod, tier)
        return known

    def _count_misfits(self, pod: Pod, tier: Tier) -> str:
        """As kube-scheduler says it: `0/20 nodes fit: 12 insufficient cpu, 8 untolerated taint`."""
        count = self._ledger.places.count(spot=tier, but=pod.node_name)
        text = f"0/{count} {NAMES[tier]} fit"
        if not count or count > self._checks_left:
            return text
        self._checks_left -= count
        names = [name for name in self._ledger.places.names(spot=tier) if name != pod.node_name]
        counts = Counter(
            phrase for name in names for phrase in {_phrase(it) for it in self._ledger.fitter.misfits(pod, name)}
        )
        ordered = sorted(counts.items(), key=lambda it: (-it[1], it[0]))
        return f"{text}: {', '.join(f'{count} {phrase}' for phrase, count in ordered)}"


def tiers_of(case: Case, urgency: Urgency) -> tuple[Tier, ...]:
    """Where the pod may go, the better first."""
    forced = urgency is not Urgency.VOLUNTARY
    lost = urgency is Urgency.INTERRUPTION
    match case.spot:
        case Spot.REQUIRE:
            return (True,)
        case Spot.PREFER if lost and case.decision.intent.tier is Importance.CRITICAL:
            return False, True  # what it just lost, it should not lose again with the next node
        case Spot.PREFER:
            return (True, False) if forced or not _is_spot(case.node) else (True,)
        case Spot.AVOID:
            return (False, True) if forced or _is_spot(case.node) else (False,)
        case Spot.IGNORE:
            return (None,)


def _kinds(aim: Aim | None) -> tuple[Hashable, ...]:
    """Under what an answer may be remembered: whatever the aim, and for aims like this one."""
    alike = None if aim is None else aim.alike()
    return (None,) if alike is None else (None, alike)


def _phrase(misfit: Misfit) -> str:
    if misfit.code is FitCode.RESOURCES:
        return f"insufficient {misfit.text.partition(':')[0]}"
    return PHRASES.get(misfit.code) or misfit.code.lower().replace("_", " ")


def _is_spot(node: NodeState | None) -> bool:
    return node is not None and node.capacity is CapacityType.SPOT


def _minds_others(spec: PodSpec) -> bool:
    """Whether other pods decide where it may go, so that each pod of the template is a case of its own."""
    affinity = spec.affinity
    return bool(spec.topology_spread_constraints) or (
        affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    )

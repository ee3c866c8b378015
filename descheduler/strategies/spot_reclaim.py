"""SpotReclaim: bring pods back to spot when there is room again.   Decides only; never evicts.

Pods that prefer spot are on on-demand because there was no room when they came, or because an interruption sent them
there. They go back when they fit on spot now, all of them counted together; first the nodes that can be emptied as a
whole, those with the fewest pods first, so that an autoscaler can take them away. Workloads with a mix
are left to SpotMix.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from cluster.objects import Pod
from descheduler import guards, memory, off_spot, resting
from descheduler.following import Followed
from descheduler.guards import Context
from descheduler.guards.case import Case
from descheduler.node_state import Key
from descheduler.off_spot import OffSpot
from descheduler.picture import Change, Picture
from descheduler.proposal import Aim, Proposal, Urgency
from descheduler.reasons import Code, Reason
from descheduler.resting import Held
from descheduler.state import ClusterState
from descheduler.trial import Trial
from descheduler.usage import Usage
from policy import durations, keys
from policy.capacity import CapacityType
from policy.settings import Settings

NAME: Final = "SpotReclaim"
WEIGHT: Final = 60

TOLD: Final = 100
"""Pods that stay are proposed all the same, so that they are told why; in one pass not more than so many."""
PASSING: Final = frozenset({Code.NOT_READY, Code.STATEFULSET_BUSY, Code.OUTSIDE_WINDOW})
"""What holds a pod back for a moment only, and so does not keep its node from being emptied."""
NOT_SPOT: Final = Reason(Code.NO_IMPROVEMENT, "it prefers spot, and this node is not spot either")

KEPT: Final = Held(Reason(Code.NO_IMPROVEMENT, "what room there is on spot is for pods whose nodes can be emptied"))
"""Of those that go first some may have to wait for a limit or a budget; nobody else takes their room meanwhile."""


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """How long pods stay, how long workloads rest, how many go at once."""

    settings: Settings = Settings()
    told: int = TOLD
    """Pods that are proposed though they stay."""

    @classmethod
    def of(cls, settings: Settings, usage: Usage | None) -> Args:  # noqa: ARG003 - the same for every strategy
        """From the settings."""
        return cls(settings=settings)


@dataclass(slots=True)
class Back:
    """The aim of all that go back: so many at once, and only to spot."""

    allowed: int
    proposed: set[Key] = field(default_factory=set)
    full: bool = False
    """Whether it was reached when it was last asked."""
    _moving: Followed = field(init=False)

    def __post_init__(self) -> None:
        self._moving = Followed(lambda: 0, self._weigh)

    def reached(self, picture: Picture) -> bool:
        """Whether as many are on their way as may be."""
        self.full = self._moving.of(picture) >= self.allowed
        return self.full

    def ceiling(self) -> float:
        """Any spot node will do."""
        return float("inf")

    def alike(self) -> Hashable:
        """There is one."""
        return NAME

    def objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:  # noqa: ARG002 - the shape of an aim
        """On-demand would be no way back."""
        return None if picture.state.nodes[node].capacity is CapacityType.SPOT else NOT_SPOT

    def _weigh(self, change: Change) -> int:
        return -change.sign if not change.replacement and change.pod.metadata.key in self.proposed else 0


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:
    """Pods of nodes that can be emptied, then single ones that fit, then those that have to be told why they stay."""
    if not state.roster.has_open(spot=True):
        return
    settings = args.settings
    cooldowns = memory.cooldowns(state.migrations.values(), settings, now)
    context = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns)
    found = sorted(off_spot.find(context, _hold(context)), key=_fewest_first)
    if found:
        aim = Back(settings.strategies.spot_reclaim.max_pods - _under_way(state))
        yield from _back(found, context, aim, args.told)


def _fewest_first(found: OffSpot) -> tuple[int, float, str]:
    return len(found.pods), found.node.load(), found.node.name


def _back(found: Sequence[OffSpot], context: Context, aim: Back, told: int) -> Iterator[Proposal]:
    trial = Trial(context.state, context.settings)
    left: list[OffSpot] = []
    for each in found:
        if aim.full:
            return
        whole = each.alone and not each.held
        if whole and _may_all_go(each.pods, context) and trial.all(each.pods):
            yield from (_proposal(pod, aim) for pod in each.pods)
        else:
            left.append(each)
    stay: list[tuple[Pod, Held]] = []
    for each in left:
        for pod in each.pods:
            if aim.full:
                return
            if not trial.is_hopeless(pod) and _may_all_go((pod,), context) and trial.all((pod,)):
                yield _proposal(pod, aim)
            else:
                stay.append((pod, KEPT))
        stay += [(pod, Held(reason)) for pod, reason in each.held]
    yield from (_proposal(pod, why) for pod, why in stay[:told])


def _proposal(pod: Pod, aim: Aim) -> Proposal:
    if isinstance(aim, Back):
        aim.proposed.add(pod.metadata.key)
    return Proposal(pod, Urgency.VOLUNTARY, f"it prefers spot, and {pod.node_name} is not", aim, tiers=(True,))


def _hold(context: Context) -> Callable[[Case], Reason | None]:
    """Why a pod may not go back yet."""
    own = context.settings.strategies.spot_reclaim
    rests = {
        **resting.missed(context.state, NAME, own.cool_down, context.now),
        **resting.interrupted(context.state, own.cool_down, context.now),
    }
    too_early = Reason(
        Code.TOO_YOUNG, f"it has been there for less than minStay, which is {durations.text_of(own.min_stay)}"
    )

    def hold(case: Case) -> Reason | None:
        if case.since is None or context.now - case.since < own.min_stay:
            return too_early
        return rests.get(memory.subject_of(case.pod, case.workload))

    return hold


def _may_all_go(pods: Sequence[Pod], context: Context) -> bool:
    """Whether no guard holds any of them back for longer than a moment."""
    reasons = (reason for pod in pods for reason in guards.reasons(pod, context, Urgency.VOLUNTARY))
    return all(reason.code in PASSING for reason in reasons)


def _under_way(state: ClusterState) -> int:
    return sum(it.spec.strategy == NAME for it in state.open_migrations())

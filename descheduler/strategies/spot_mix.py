"""SpotMix: bring workloads to the mix of spot and on-demand that they ask for.   Decides only; never evicts.

Admission decides the side of every new pod, so most workloads are where they should be. What is left to correct: pods
that found no room on their side, those that an autoscaler or a failure took, and a mix that was changed. A workload
that has too many on one side moves just so many, those first that belong on the other side by their own annotation.
A workload that avoids spot is one whose mix has no spot at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from cluster.objects import Pod
from descheduler import avoiding, memory, mixes, resting
from descheduler.following import Followed
from descheduler.guards import Context
from descheduler.mixes import Mixed
from descheduler.node_state import NodeState
from descheduler.picture import Change, Picture
from descheduler.proposal import Aim, Proposal, Urgency
from descheduler.reasons import Code, Reason
from descheduler.resting import Held
from descheduler.state import ClusterState
from descheduler.usage import Usage
from descheduler.workload import Workload
from policy import keys, mix
from policy.capacity import CapacityType
from policy.settings import Settings
from policy.values import Side

NAME: Final = "SpotMix"
WEIGHT: Final = 70


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as off the mix, and how long a workload rests."""

    settings: Settings = Settings()

    @property
    def tolerance(self) -> int:
        """Pods by which a workload may be off."""
        return self.settings.strategies.spot_mix.tolerance

    @property
    def cool_down(self) -> timedelta:
        """After an interruption, and after a move that missed."""
        return self.settings.strategies.spot_mix.cool_down

    @classmethod
    def of(cls, settings: Settings, usage: Usage | None) -> Args:  # noqa: ARG003 - the same for every strategy
        """From the settings."""
        return cls(settings=settings)


@dataclass(frozen=True, slots=True)
class Balance:
    """The aim for one workload: no more pods on the side that has too many than the mix allows."""

    to_spot: bool
    count: Followed
    """Pods on the side that has too many."""
    allowed: int
    wrong: Reason

    def reached(self, picture: Picture) -> bool:
        """Whether enough will have left."""
        return self.count.of(picture) <= self.allowed

    def ceiling(self) -> float:
        """Any node of the other side will do."""
        return float("inf")

    def alike(self) -> Hashable:
        """All that go to the same side."""
        return NAME, self.to_spot

    def objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:  # noqa: ARG002 - the shape of an aim
        """A node of the side that has too many."""
        is_spot = picture.state.nodes[node].capacity is CapacityType.SPOT
        return None if is_spot is self.to_spot else self.wrong


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:
    """Of each workload that is off its mix, the pods of the side that has too many."""
    context = Context(state, args.settings, keys.under(args.settings.label_prefix), now, cooldowns={})
    rests: _Rests | None = None
    for found in itertools.chain(_without_spot(context), mixes.find(context)):
        if found.over_on_spot > (0 if found.too_few_on_demand else args.tolerance):
            rests = rests or _Rests.read(state, args, now)
            yield from _leave(found, found.on_spot, context, rests, to_spot=False)
        elif found.over_elsewhere > args.tolerance and state.roster.has_open(spot=True):
            rests = rests or _Rests.read(state, args, now)
            yield from _leave(found, found.elsewhere, context, rests, to_spot=True)


def _without_spot(context: Context) -> Iterator[Mixed]:
    """Before all others, for nobody needs other nodes more. Where there are none, nothing is asked."""
    return avoiding.find(context) if context.state.roster.has_open(spot=False) else iter(())


@dataclass(frozen=True, slots=True)
class _Rests:
    """Read when the first workload is off its mix: most passes find none."""

    interrupted: Mapping[str, Reason]
    missed: Mapping[str, Reason]

    @classmethod
    def read(cls, state: ClusterState, args: Args, now: datetime) -> _Rests:
        return cls(resting.interrupted(state, args.cool_down, now), resting.missed(state, NAME, args.cool_down, now))

    def of(self, found: Workload, *, to_spot: bool) -> Reason | None:
        """On-demand is safe after an interruption; spot is not."""
        subject = memory.of_workload(found)
        return self.missed.get(subject) or (self.interrupted.get(subject) if to_spot else None)


def _leave(
    found: Mixed, pods: Sequence[Pod], context: Context, rests: _Rests, *, to_spot: bool
) -> Iterator[Proposal]:
    why = _why(found)
    held = rests.of(found.workload, to_spot=to_spot)
    aim = _balance(found, pods, why, context.state.nodes, to_spot=to_spot) if held is None else Held(held)
    shown = found.over_elsewhere if to_spot else found.over_on_spot
    for number, pod in enumerate(_in_order(pods, context, to_spot=to_spot)):
        if held is not None and number >= shown:
            return
        yield Proposal(pod, Urgency.VOLUNTARY, why, aim, tiers=(to_spot,))


def _balance(found: Mixed, pods: Sequence[Pod], why: str, nodes: Mapping[str, NodeState], *, to_spot: bool) -> Aim:
    allowed = found.mix.on_demand(found.replicas) if to_spot else found.mix.spot(found.replicas)
    counted = frozenset(pod.metadata.key for pod in pods)
    wrong = Reason(Code.NO_IMPROVEMENT, f"{why}; a node of the same capacity would not change that")

    def weigh(change: Change) -> int:
        """Those that leave; a replacement that another strategy sends to the same side is one that has not left."""
        if change.pod.metadata.key not in counted:
            return 0
        stays = (nodes[change.node].capacity is CapacityType.SPOT) is not to_spot
        return change.sign if stays else 0

    return Balance(to_spot, Followed(lambda: len(pods), weigh), allowed, wrong)


def _in_order(pods: Sequence[Pod], context: Context, *, to_spot: bool) -> list[Pod]:
    """Those first that do not belong where they are; to spot from the emptiest node, which is then free soonest, and
    off spot from the fullest.
    """
    belongs = Side.SPOT if to_spot else Side.ON_DEMAND
    nodes = context.state.nodes

    def rank(pod: Pod) -> tuple[bool, float, tuple[str, str]]:
        load = nodes[pod.node_name].load()
        misplaced = mix.chosen(pod.metadata.annotations, context.keys) is belongs
        return not misplaced, load if to_spot else -load, pod.metadata.key

    return sorted(pods, key=rank)


def _why(found: Mixed) -> str:
    there = f"{len(found.on_spot)} of {found.replicas} pods on spot"
    if found.mix is avoiding.NO_SPOT:
        return f"{found.workload.text} avoids spot and has {there}"
    return f"{found.workload.text} has {there}, its mix asks for {found.mix.spot(found.replicas)}"

"""SpotInterruption: leave every node that is about to be lost.   Decides only; never evicts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from cluster.objects import Pod
from descheduler import interruption
from descheduler.guards import Context
from descheduler.guards.case import Case
from descheduler.interruption import NEVER, Loss
from descheduler.node_state import Key
from descheduler.proposal import Proposal, Urgency
from descheduler.state import ClusterState
from descheduler.usage import Usage
from policy import keys
from policy.settings import Settings
from policy.values import Tier

NAME: Final = interruption.STRATEGY
WEIGHT: Final = 200
RANK: Final = {Tier.CRITICAL: 0, Tier.STANDARD: 1, Tier.BATCH: 2}


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as a loss, and what the tiers of pods go by."""

    settings: Settings = Settings()

    @classmethod
    def of(cls, settings: Settings, usage: Usage | None) -> Args:  # noqa: ARG003 - the same for every strategy
        """From the settings."""
        return cls(settings=settings)


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:
    """Every pod of every such node at once, in the order that saves most: room is given out, and evictions are sent,
    in this order. Those that are on their way are not asked for again, there may be hundreds.
    """
    settings = args.settings
    context = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns={})
    leaving = [
        (_place(key, pod, loss, context), pod, loss)
        for name, loss in interruption.find(context).items()
        for key, pod in state.nodes[name].pods.items()
        if not _is_on_its_way(key, pod, state)
    ]
    for _, pod, loss in sorted(leaving, key=lambda it: it[0]):
        yield Proposal(pod, Urgency.INTERRUPTION, _why(loss), deadline=loss.deadline)


def _is_on_its_way(key: Key, pod: Pod, state: ClusterState) -> bool:
    moves = state.moving.by_pod.get(key, ())
    return pod.metadata.deletion_timestamp is not None or any(it.spec.pod_ref.uid == pod.metadata.uid for it in moves)


def _place(key: Key, pod: Pod, loss: Loss, context: Context) -> tuple[int, int, datetime, bool, int, Key]:
    """Tier and priority, then who has the least time, then who needs the most of it: the only replica, which is
    doubled first if that can be done, and a long grace period.
    """
    owner = pod.metadata.controller
    others = len(context.state.by_owner.get((key[0], owner.uid), {})) > 1 if owner is not None else False
    rank = RANK[Case(pod, context).decision.intent.tier]
    grace = pod.spec.termination_grace_period_seconds
    return rank, -pod.spec.priority, loss.deadline or NEVER, others, -grace, key


def _why(loss: Loss) -> str:
    if loss.silent:
        return f"spot node {loss.name} has been NotReady since {loss.since:%H:%M:%S}"
    until = f", by {loss.deadline:%H:%M:%S}" if loss.deadline is not None else ""
    return f"node {loss.name} is about to be lost{until}: {loss.cause}"

"""NodeMaintenance: empty every node that carries a maintenance signal.   Decides only; never evicts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from descheduler import drain
from descheduler.guards import Context
from descheduler.proposal import Proposal, Urgency
from descheduler.state import ClusterState
from descheduler.usage import Usage
from policy import keys
from policy.settings import Settings

NAME: Final = "NodeMaintenance"
WEIGHT: Final = 120


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as a sign of maintenance, how many nodes at once, and what the guards go by."""

    settings: Settings = Settings()

    @classmethod
    def of(cls, settings: Settings, usage: Usage | None) -> Args:  # noqa: ARG003 - the same for every strategy
        """From the settings."""
        return cls(settings=settings)


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:
    """Every pod of the nodes whose turn it is, those of the node with the nearest deadline first."""
    settings = args.settings
    context = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns={})
    for asked in drain.chosen(drain.asked(context), context):
        why = f"node {asked.name} is to be emptied: {asked.signal.source}"
        for key in sorted(state.nodes[asked.name].pods):
            pod = state.nodes[asked.name].pods[key]
            yield Proposal(pod, Urgency.MAINTENANCE, why, deadline=asked.signal.deadline)

"""LeaveNoisyNodes: bring pods off nodes that somebody labelled as noisy.   Decides only; never evicts.

An example of a strategy in a package of its own. What a strategy may rely on is in docs/strategies.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from descheduler.proposal import Proposal, Urgency
from descheduler.state import ClusterState

NAME: Final = "LeaveNoisyNodes"
WEIGHT: Final = 50


class Args(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments, as they stand under `strategies.thirdParty.LeaveNoisyNodes.args`."""

    label: str = "example.com/noisy"
    """Nodes with this label, set to `true`, are left."""


def propose(state: ClusterState, args: Args, now: datetime) -> Iterator[Proposal]:  # noqa: ARG001 - one shape
    """Every pod of every such node, node by node in the order of names: the same cluster gives the same plan."""
    for name in sorted(state.nodes):
        found = state.nodes[name]
        if found.node is None or found.node.metadata.labels.get(args.label) != "true":
            continue
        why = f"node {name} is labelled {args.label}"
        for key in sorted(found.pods):
            yield Proposal(found.pods[key], Urgency.VOLUNTARY, why)

"""A plan in figures: what was proposed, what moves, what stays and why, what changes for the nodes.   Values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from descheduler.node_state import NodeLoad
from descheduler.proposal import Move, Refusal
from descheduler.reasons import Code, Reason

BEFORE: Final = attrgetter("before")
AFTER: Final = attrgetter("after")
"""Of thousands of nodes in every pass."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The plan in figures."""

    proposals: int
    """How many were looked at; once a limit ends the pass, strategies are not asked further."""
    moves: int
    by_strategy: Mapping[str, int]
    """Moves by strategy."""
    refusals: int
    by_code: Mapping[Code, int]
    """Refused pods by reason; a pod with several counts under each."""
    limited: Reason | None
    """What ended the pass before the strategies had said everything."""
    highest_before: float
    highest_after: float

    @classmethod
    def of(
        cls,
        moves: Sequence[Move],
        refusals: Sequence[Refusal],
        nodes: Sequence[NodeLoad],
        *,
        proposals: int,
        limited: Reason | None,
    ) -> Summary:
        """Counted."""
        by_code = Counter(code for refusal in refusals for code in {reason.code for reason in refusal.reasons})
        by_strategy = Counter(move.strategy for move in moves)
        return cls(
            proposals=proposals,
            moves=len(moves),
            by_strategy=dict(sorted(by_strategy.items())),
            refusals=len(refusals),
            by_code=dict(sorted(by_code.items())),
            limited=limited,
            highest_before=max(map(BEFORE, nodes), default=0.0),
            highest_after=max(map(AFTER, nodes), default=0.0),
        )

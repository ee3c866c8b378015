"""What was measured, run by run, and what it says: spreads, ratios within one run, and targets."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.decode import Spread, Target, spread
from bench.webhook.contenders import IDIOMATIC, LEAN, OURS
from bench.webhook.creations import NONE
from bench.webhook.load import Flood, Turns
from bench.webhook.usage import Usage

NEW = f"{OURS}, every pod new"
"""Ours without its memory of decisions: no two pods are alike."""
JUDGED_AT = 16
"""Connections at which ours is compared."""
RATE = 500

TARGETS = (
    Target(f"requests/s beside {LEAN}", 1.0, at_least=True),
    Target(f"requests per processor second beside {LEAN}", 1.0, at_least=True),
    Target(f"p99 beside {LEAN}", 1.0),
    Target(f"p99 ms at {RATE} requests/s", 5.0),
    Target(f"added p99 beside {LEAN}", 1.2),
    Target(f"added p99 beside {IDIOMATIC}", 1.2),
)


@dataclass(frozen=True, slots=True)
class Flooded:
    """One run of wrk against one webhook."""

    found: Flood
    used: Usage

    @property
    def per_second(self) -> float:
        """Requests answered."""
        return self.found.requests / self.found.seconds

    @property
    def microseconds(self) -> float:
        """Processor time of a request."""
        return self.used.seconds / max(self.found.requests, 1) * 1e6

    @property
    def starved(self) -> float:
        """Share of the time in which the webhook could have run and was not let."""
        return self.used.waited / self.found.seconds


@dataclass(slots=True)
class Round:
    """Everything once, one webhook after the other."""

    floods: dict[tuple[str, int], Flooded] = field(default_factory=dict)
    paced: dict[str, Turns] = field(default_factory=dict)
    creations: dict[str, Turns] = field(default_factory=dict)
    resident: dict[str, float] = field(default_factory=dict)

    def added(self, name: str, figure: str) -> float:
        """Milliseconds that a webhook adds to the creation of a pod."""
        mine: float = getattr(self.creations[name], figure)
        none: float = getattr(self.creations[NONE], figure)
        return mine - none

    def flood(self, name: str) -> Flooded:
        """The run that is compared."""
        return self.floods[name, JUDGED_AT]


def compared(rounds: Sequence[Round]) -> dict[str, Spread]:
    """Ours beside the others, each ratio formed within one round."""
    return {
        f"requests/s beside {LEAN}": spread([it.flood(OURS).per_second / it.flood(LEAN).per_second for it in rounds]),
        f"requests/s beside {LEAN}, every pod new": spread(
            [it.flood(NEW).per_second / it.flood(LEAN).per_second for it in rounds]
        ),
        f"requests/s beside {IDIOMATIC}": spread(
            [it.flood(OURS).per_second / it.flood(IDIOMATIC).per_second for it in rounds]
        ),
        f"requests per processor second beside {LEAN}": spread(
            [it.flood(LEAN).microseconds / it.flood(OURS).microseconds for it in rounds]
        ),
        f"requests per processor second beside {LEAN}, every pod new": spread(
            [it.flood(LEAN).microseconds / it.flood(NEW).microseconds for it in rounds]
        ),
        f"p99 beside {LEAN}": spread([it.flood(OURS).found.p99_ms / it.flood(LEAN).found.p99_ms for it in rounds]),
        f"p99 ms at {RATE} requests/s": spread([it.paced[OURS].p99_ms for it in rounds]),
        f"added p99 beside {LEAN}": spread([_ratio(it, LEAN) for it in rounds]),
        f"added p99 beside {IDIOMATIC}": spread([_ratio(it, IDIOMATIC) for it in rounds]),
    }


def _ratio(one: Round, peer: str) -> float:
    return one.added(OURS, "p99_ms") / max(one.added(peer, "p99_ms"), 0.01)

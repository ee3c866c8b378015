"""Only who holds the lease acts, and nobody deletes what is not ours.   Pure.

Two processes of one account are told apart by their tokens. Who wrote to the lease last holds it. A process that
stood still may find a request of its own half sent when it goes on; what comes after that must know better.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.budgets import OURS
from tests.chaos.watching import Request

LEASE, ACCOUNT = "leases", "spotshift-descheduler"
HALF_SENT_SECONDS: Final = 2.0
NO_EFFECT: Final = frozenset({404, 409, 422, 429})
UNGUARDED: Final = frozenset({LEASE, "events"})
"""Told or asked by anybody, at any time."""


@dataclass(slots=True)
class Leaders:
    """Reads the requests in the order in which they were answered."""

    pod_of: Callable[[str], str]
    """The pod that has this token."""
    resumed: Mapping[str, float]
    """When a process that stood still went on, by pod."""
    holder: str = ""
    since: float = 0.0
    terms: int = 0
    stragglers: int = 0
    """Writes of a process that had stood still, in the moment in which it went on."""
    writes: Counter[str] = field(default_factory=Counter)

    def see(self, request: Request) -> Iterator[str]:
        """One request of the product."""
        if request.verb in {"delete", "deletecollection"} and request.code < 300:
            yield from _deleted(request)
        if request.account != ACCOUNT or not request.writes:
            return
        who = self.pod_of(request.credential)
        if request.resource == LEASE:
            self._lease(request, who)
        elif request.resource not in UNGUARDED and request.code not in NO_EFFECT:
            self.writes[f"{request.verb} {request.resource}"] += 1
            yield from self._acted(request, who)

    def _lease(self, request: Request, who: str) -> None:
        if request.code < 300 and who != self.holder:
            self.holder, self.since = who, request.at
            self.terms += 1

    def _acted(self, request: Request, who: str) -> Iterator[str]:
        if who == self.holder or request.at < self.since or request.code >= 300:
            return
        if 0 <= request.at - self.resumed.get(who, 0.0) < HALF_SENT_SECONDS:
            self.stragglers += 1
            return
        held = f"{self.holder} has held the lease for {request.at - self.since:.1f} s"
        yield f"{who} sent {request.verb} {request.resource} {request.namespace}/{request.name}, and {held}"


def _deleted(request: Request) -> Iterator[str]:
    """Budgets of ours and records of moves go; nothing else is ours to delete."""
    own_budget = request.resource == "poddisruptionbudgets" and request.name.endswith(OURS)
    if not own_budget and request.resource != "podmigrations":
        yield f"{request.account} deleted {request.resource} {request.namespace}/{request.name}"

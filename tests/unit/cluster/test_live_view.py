"""A view of a resource that may be absent: what a moment without it costs, and what its end does."""

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.absent import MayBeAbsent
from cluster.decode import Decoder
from cluster.live_view import LiveView
from cluster.meta import PartialObjectMetadata
from cluster.pace import Pace
from cluster.recovery import STUCK_AFTER, Tuning
from cluster.resources import PODMIGRATIONS, Resource
from cluster.store import Delta
from policy.settings import Settings
from tests.unit.cluster.kept import Kept
from tests.unit.cluster.surroundings import World, until

QUICK = Tuning(pace=Pace(0.02, 0.05))


class Names:
    """Parts whose view is the names of what is there."""

    def __init__(self, _: Settings) -> None:
        self._there: set[str] = set()

    def apply(self, resource: Resource, delta: Delta[Any]) -> None:
        if delta.new is None:
            self._there.discard(delta.object.metadata.name)
        else:
            self.put(resource, delta.new)

    def put(self, _: Resource, seen: Any) -> None:
        self._there.add(seen.metadata.name)

    def forget(self, _: Resource) -> None:
        self._there.clear()

    def view(self) -> frozenset[str]:
        return frozenset(self._there)


class Refusing(Kept):
    """Not found for the next requests."""

    def __init__(self, resource: Resource, decoder: Decoder[Any]) -> None:
        self.refusals = 0
        super().__init__(resource, decoder)

    @property
    def exists(self) -> bool:
        if not self.refusals:
            return True
        self.refusals -= 1
        return False

    @exists.setter
    def exists(self, _: bool) -> None:
        """It goes by the count."""


@pytest.fixture
def kept() -> Refusing:
    made = Refusing(PODMIGRATIONS, Decoder(PartialObjectMetadata))
    made.say("ADDED", "first")
    made.say("ADDED", "second")
    return made


@pytest.fixture
def live(kept: Refusing) -> Iterator[LiveView[frozenset[str]]]:
    made = LiveView([(PODMIGRATIONS, MayBeAbsent(kept))], Settings(), Names, runtime=World().runtime, tuning=QUICK)
    made.start()
    until(lambda: made.view == {"first", "second"}, "what is there")
    yield made
    made.stop()


ABSENT = {
    "one watch": 1,
    "until it is listed again": STUCK_AFTER,
    "and the list as well": STUCK_AFTER + 1,
}


@pytest.mark.parametrize("requests", ABSENT.values(), ids=ABSENT.keys())
def test_a_moment_of_absence_costs_nothing_that_is_there(
    live: LiveView[frozenset[str]], kept: Refusing, requests: int
) -> None:
    """One API server of several that has not read the definition yet says 404 once, and then goes on."""
    kept.refusals = requests
    kept.end()
    until(lambda: not kept.refusals, "that it was absent")
    kept.say("ADDED", "third")
    until(lambda: live.view == {"first", "second", "third"}, "all of it")


def test_what_went_while_it_was_absent_does_not_come_back(live: LiveView[frozenset[str]], kept: Refusing) -> None:
    kept.refusals = STUCK_AFTER
    kept.end()
    kept.say("DELETED", "first")
    until(lambda: not kept.refusals, "that it was absent")
    until(lambda: live.view == {"second"}, "what is left")

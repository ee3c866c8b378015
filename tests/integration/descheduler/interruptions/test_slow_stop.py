"""A member of a StatefulSet that takes longer to stop than a replacement may take to come."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from testbed import objects
from testbed.waiting import eventually
from tests.integration.descheduler.interruptions.product import Product
from tests.integration.descheduler.interruptions.scene import Scene

TIMEOUT = timedelta(seconds=10)
STOP = {f"{objects.PREFIX}stop-delay": "14s"}


@pytest.fixture
def impatient(running: Product) -> Iterator[Product]:
    running.configure(migrations={"readyTimeout": f"{TIMEOUT.seconds}s"})
    yield running
    running.configure()


@pytest.mark.campaign
@pytest.mark.usefixtures("impatient")
def test_the_move_waits_until_the_old_pod_is_gone(on: Scene) -> None:
    lost, *_ = on.pool(spot=3, zone="z")
    with on.only(lost):
        on.create("statefulsets", objects.stateful_set("db", annotations=STOP, terminationGracePeriodSeconds=60))
        on.settle(1)
    on.taint(lost)
    eventually(on.moves, what="the move")
    eventually(on.open_moves, until=lambda it: not it, timeout=90, what="its end")
    (move,) = on.moves()
    assert (move["status"]["phase"], move["status"]["replacement"]["name"]) == ("Completed", "db-0")
    gone, evicted = (datetime.fromisoformat(move["status"]["intent"][it]) for it in ("goneAt", "evictedAt"))
    assert gone - evicted > TIMEOUT

"""The campaigns in short, so that every change meets them: a few crashes, a few troubled drains."""

from collections import Counter

from tests.integration.descheduler.moves import crashes, oracle, trouble
from tests.integration.descheduler.moves.crashes import Cell, Kind
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import Scene

CRASHES: tuple[Cell, ...] = (
    ("evict", Kind.KILLED_AFTER),
    # Stopped, not killed: a kill would cut evictions that are under way, which costs two minutes of waiting.
    ("surge: raise", Kind.STOPPED_BEFORE),
    ("copy: create", Kind.STOPPED_BEFORE),
    ("unmark the pod", Kind.KILLED_AFTER),
)
TROUBLED_SEEDS = (1, 2)


def test_a_few_crashes(running: Product, everything: Scene) -> None:
    wrong = {cell: found for cell in CRASHES if (found := crashes.crash(running, everything, cell))}
    assert wrong == {}
    assert oracle.effects(running.bed, everything.kube, everything.namespace) == []


def test_troubled_requests(running: Product, on: Scene) -> None:
    results = [trouble.run(running, on, seed) for seed in TROUBLED_SEEDS]
    assert [it for it in results if not it.succeeded] == []
    assert oracle.effects(running.bed, on.kube, on.namespace) == []
    assert sum(it.hits for it in results) > 0
    assert set(Counter(phase for it in results for phase in it.moves)) <= {"Completed", "Cancelled"}

"""The campaigns in short, so that every change meets them: a dozen crashes, half a dozen troubled drains."""

from collections import Counter

from tests.integration.descheduler.moves import crashes, oracle, trouble
from tests.integration.descheduler.moves.crashes import Cell, Kind
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import Scene

CRASHES: tuple[Cell, ...] = (
    ("create", Kind.KILLED_AFTER),
    ("adopt", Kind.STOPPED_BEFORE),
    ("announce: Mark", Kind.KILLED_BEFORE),
    ("mark the pod", Kind.STOPPED_AFTER),
    ("mark the workload", Kind.KILLED_AFTER),
    ("announce: Evict", Kind.KILLED_BEFORE),
    ("evict", Kind.KILLED_AFTER),
    ("evict", Kind.STOPPED_BEFORE),
    ("claim the replacement", Kind.KILLED_BEFORE),
    ("end: Completed", Kind.STOPPED_AFTER),
    ("release", Kind.KILLED_BEFORE),
    ("unmark the pod", Kind.KILLED_AFTER),
)
TROUBLED_SEEDS = range(1, 7)


def test_a_dozen_crashes(running: Product, on: Scene) -> None:
    wrong = {cell: found for cell in CRASHES if (found := crashes.crash(running, on, cell))}
    assert wrong == {}
    assert oracle.effects(running.bed, on.kube, on.namespace) == []


def test_troubled_requests(running: Product, on: Scene) -> None:
    results = [trouble.run(running, on, seed) for seed in TROUBLED_SEEDS]
    assert [it for it in results if not it.succeeded] == []
    assert oracle.effects(running.bed, on.kube, on.namespace) == []
    assert sum(it.hits for it in results) > 0
    assert set(Counter(phase for it in results for phase in it.moves)) <= {"Completed", "Cancelled"}

"""Trouble on the way between the descheduler and the apiserver, drawn from a seed."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from testbed import faults
from testbed.faults import Fault
from testbed.waiting import NeverCame, eventually
from tests.integration.descheduler.moves import product
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import Scene

TROUBLED_SECONDS: Final = 10.0
"""How long it lasts at most; a move without trouble takes about three."""
SETTLE_SECONDS: Final = 200.0
"""An eviction whose request breaks off half-way holds its place in the budget for two minutes: that is how long the
disruption controller waits for a pod to go that nobody deleted."""
WRITES: Final = ("create", "patch", "update")
Draw = Callable[[random.Random], tuple[Fault, dict[str, Any]]]


def _often(fault: Fault) -> Draw:
    """To writes, every so often."""
    return lambda rng: (fault, {"verb": rng.choice(WRITES), "probability": rng.uniform(0.1, 0.5)})


def _once(fault: Fault) -> Draw:
    """To one or two writes: each costs whoever asked the whole time it is ready to wait."""
    return lambda rng: (fault, {"verb": rng.choice(WRITES), "count": rng.choice((1, 2))})


TROUBLES: Final[dict[str, Draw]] = {
    "409": _often(faults.Answer(409)),
    "429": _often(faults.Answer(429, retry_after=1)),
    "500": _often(faults.Answer(500)),
    "503": _often(faults.Answer(503)),
    "any 503": lambda rng: (faults.Answer(503), {"probability": rng.uniform(0.05, 0.2)}),
    "lost answer": _often(faults.Cut()),
    "cut watch": lambda rng: (faults.Cut(rng.randrange(1, 20_000)), {"verb": "watch", "probability": 0.7}),
    "silent watch": lambda rng: (faults.Hold(rng.randrange(1, 20_000)), {"verb": "watch", "count": 2}),
    "410": lambda rng: (faults.Answer(410), {"verb": "watch", "probability": rng.uniform(0.2, 0.6)}),
    "blackhole": _once(faults.Blackhole()),
    "held answer": _once(faults.Hold()),
    "late": lambda rng: (faults.Delay(rng.uniform(0.2, 2.0)), {"probability": 0.3}),
}

WATCHES: Final = frozenset({"cut watch", "silent watch", "410"})


@dataclass(slots=True)
class Result:
    """Of one schedule."""

    seed: int
    troubles: tuple[str, ...]
    hits: int = 0
    """Requests that were troubled."""
    moves: list[str] = field(default_factory=list)
    """Phases in which its moves ended."""
    problems: list[str] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        return not self.problems and "Failed" not in self.moves


def run(running: Product, on: Scene, seed: int, *, calm: bool = False) -> Result:
    """One drain, with trouble until it is done or the time for trouble is over."""
    rng = random.Random(seed)
    names = () if calm else tuple(rng.sample(sorted(TROUBLES), rng.choice((1, 2, 3))))
    result = Result(seed, names)
    known = {it["metadata"]["name"] for it in product.migrations(on.kube, on.namespace)}
    rules = [member.proxy.rules.add(fault, **how) for member, fault, how in _drawn(running, names, rng)]
    if WATCHES & set(names):
        for member in running.members:
            member.proxy.cut_all()  # an open watch was let through before there were rules
    on.drain()
    try:
        if not _drained(on, TROUBLED_SECONDS):
            _end(running)
        if not _drained(on, SETTLE_SECONDS):
            result.problems.append("the node was not drained")
    finally:
        _end(running)
        on.return_node()
    result.problems += on.left(SETTLE_SECONDS)
    made = [it for it in product.migrations(on.kube, on.namespace) if it["metadata"]["name"] not in known]
    result.moves = [it.get("status", {}).get("phase", "") for it in made]
    result.hits = sum(rule.hits for rule in rules)
    return result


def _drawn(running: Product, names: tuple[str, ...], rng: random.Random) -> Iterator[tuple[Any, Fault, Any]]:
    for member in running.members:
        member.proxy.rules.rng = random.Random(rng.random())
        for name in names:
            fault, how = TROUBLES[name](rng)
            yield member, fault, how


def _end(running: Product) -> None:
    for member in running.members:
        member.proxy.rules.clear()


def _drained(on: Scene, timeout: float) -> bool:
    try:
        return eventually(on.is_drained, timeout=timeout)
    except NeverCame:
        return False

"""What can happen, each drawn so that it is possible as things stand.   Pure."""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from testbed import objects
from tests.chaos.model import ENDS, Form, Kind, Machine, Model, Workload
from tests.chaos.settings import DOCUMENTS
from tests.integration.descheduler.moves.trouble import TROUBLES

MOST_PODS: Final = 40
"""What the machines hold even when as many are out as may be."""
LEAST_USABLE: Final = {False: 3, True: 2}
"""Machines that are left in use, on-demand and spot."""
MACHINES: Final = {False: 4, True: 4}
FIRST: Final = (Form.DEPLOYMENT,) * 4 + (Form.STATEFUL_SET, Form.POD, Form.JOB)
WISHES: Final[tuple[dict[str, str], ...]] = (
    {},
    {},
    {"spot": "avoid"},
    {"spot-percentage": "50"},
    {"min-on-demand": "1"},
    {"tier": "batch"},
)
BUDGETS: Final = ({"maxUnavailable": 1}, {"maxUnavailable": 0}, {"minAvailable": 1}, {"minAvailable": "50%"})
Drawn = list[tuple[float, Kind, str, Any]]
"""Seconds from now, and what is done then."""


@dataclass(slots=True)
class Pen:
    """What is drawn with: chance, what is there, and names that never come again."""

    rng: random.Random
    model: Model = field(default_factory=Model)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def machine(self, *, spot: bool) -> Machine:
        number = next(self.numbers)
        zone = objects.ZONES[number % len(objects.ZONES)]
        return Machine(f"{'spot' if spot else 'on-demand'}-{number}", spot, zone)

    def workload(self, form: Form) -> Workload:
        """One that a user could have."""
        rng = self.rng
        replicas = {Form.DEPLOYMENT: rng.choice((1, 1, 2, 3, 4, 5)), Form.STATEFUL_SET: rng.choice((1, 2, 3))}
        wishes = {"rescheduling": "enabled"} if form is Form.POD else rng.choice(WISHES)
        count = 2 if form is Form.JOB else replicas.get(form, 1)
        cpu, ready = rng.choice(("100m", "200m", "400m")), rng.choice((0, 0, 1, 3))
        return Workload(f"{form.value.rstrip('s')}-{next(self.numbers)}", form, count, cpu, ready, wishes)


# ---- what users do


def _create(by: Pen) -> Drawn:
    form = by.rng.choice((Form.DEPLOYMENT, Form.DEPLOYMENT, Form.STATEFUL_SET, Form.JOB, Form.POD))
    made = by.workload(form)
    return [(0, Kind.CREATE, made.name, made)] if by.model.pods + made.replicas <= MOST_PODS else []


def _delete(by: Pen) -> Drawn:
    found = by.model.of(*Form)
    return [(0, Kind.DELETE, by.rng.choice(found).name, None)] if len(found) > len(FIRST) else []


def _scale(by: Pen) -> Drawn:
    found = by.model.of(Form.DEPLOYMENT, Form.STATEFUL_SET)
    chosen, replicas = by.rng.choice(found) if found else None, by.rng.randrange(1, 6)
    if chosen is None or by.model.pods - chosen.replicas + replicas > MOST_PODS:
        return []
    return [(0, Kind.SCALE, chosen.name, replicas)]


def _roll_out(by: Pen) -> Drawn:
    found = by.model.of(Form.DEPLOYMENT, Form.STATEFUL_SET)
    return [(0, Kind.ROLL_OUT, by.rng.choice(found).name, next(by.numbers))] if found else []


def _to_a_pod(kind: Kind, *forms: Form) -> Callable[[Pen], Drawn]:
    def draw(by: Pen) -> Drawn:
        found = by.model.of(*forms)
        return [(0, kind, by.rng.choice(found).name, by.rng.randrange(100))] if found else []

    return draw


def _budget(by: Pen) -> Drawn:
    found = by.model.of(Form.DEPLOYMENT, Form.STATEFUL_SET)
    if not found:
        return []
    return [(0, Kind.BUDGET, by.rng.choice(found).name, by.rng.choice(BUDGETS))]


def _no_budget(by: Pen) -> Drawn:
    found = sorted(by.model.budgets())
    return [(0, Kind.NO_BUDGET, by.rng.choice(found), None)] if found else []


# ---- what happens to machines


def _out(begin: Kind, end: Kind, seconds: tuple[float, float], spot: tuple[bool, ...]) -> Callable[[Pen], Drawn]:
    """A machine is out of use for a while, if enough are left."""

    def draw(by: Pen) -> Drawn:
        of = by.rng.choice(spot)
        found = by.model.usable(spot=of)
        if len(found) <= LEAST_USABLE[of]:
            return []
        name = by.rng.choice(found).name
        return [(0, begin, name, None), (by.rng.uniform(*seconds), end, name, None)]

    return draw


def _add(by: Pen) -> Drawn:
    spot = by.rng.random() < 0.6
    if sum(1 for it in by.model.machines.values() if it.spot == spot) > MACHINES[spot]:
        return []
    made = by.machine(spot=spot)
    return [(0, Kind.ADD_NODE, made.name, made)]


def _remove(by: Pen) -> Drawn:
    spot = by.rng.random() < 0.6
    found = by.model.usable(spot=spot)
    return [(0, Kind.REMOVE_NODE, by.rng.choice(found).name, None)] if len(found) > LEAST_USABLE[spot] else []


# ---- what happens to the product


def _once(kind: Kind, subjects: tuple[str, ...] = ("",)) -> Callable[[Pen], Drawn]:
    return lambda by: [(0, kind, by.rng.choice(subjects), None)]


def _for_a_while(kind: Kind, seconds: tuple[float, float]) -> Callable[[Pen], Drawn]:
    return lambda by: [(0, kind, "", None), (by.rng.uniform(*seconds), ENDS[kind], "", None)]


def _configure(by: Pen) -> Drawn:
    chosen = by.rng.choice(sorted(DOCUMENTS))
    return [(0, Kind.CONFIGURE, chosen, None), (by.rng.uniform(4, 15), Kind.CONFIGURE, "usual", None)]


def _trouble(by: Pen) -> Drawn:
    names = tuple(by.rng.sample(sorted(TROUBLES), by.rng.choice((1, 2))))
    return [
        (0, Kind.TROUBLE, ", ".join(names), by.rng.randrange(10**6)),
        (by.rng.uniform(3, 12), Kind.END_TROUBLE, "", None),
    ]


BOTH, SPOT = (False, True), (True,)
DRAWS: Final[dict[Kind, Callable[[Pen], Drawn]]] = {
    Kind.CREATE: _create,
    Kind.DELETE: _delete,
    Kind.SCALE: _scale,
    Kind.ROLL_OUT: _roll_out,
    Kind.DELETE_POD: _to_a_pod(Kind.DELETE_POD, Form.DEPLOYMENT, Form.STATEFUL_SET),
    Kind.ASK: _to_a_pod(Kind.ASK, Form.DEPLOYMENT, Form.STATEFUL_SET, Form.POD),
    Kind.SNATCH: _to_a_pod(Kind.SNATCH, Form.STATEFUL_SET),
    Kind.BUDGET: _budget,
    Kind.NO_BUDGET: _no_budget,
    Kind.ADD_NODE: _add,
    Kind.REMOVE_NODE: _remove,
    Kind.NOTICE: _out(Kind.NOTICE, Kind.REMOVE_NODE, (15, 40), SPOT),
    Kind.NOT_READY: _out(Kind.NOT_READY, Kind.READY, (5, 40), BOTH),
    Kind.LABEL: _out(Kind.LABEL, Kind.UNLABEL, (4, 40), BOTH),
    Kind.CORDON: _out(Kind.CORDON, Kind.UNCORDON, (5, 60), BOTH),
    Kind.KILL_LEADER: _once(Kind.KILL_LEADER),
    Kind.STOP_LEADER: _for_a_while(Kind.STOP_LEADER, (2, 15)),
    Kind.KILL_WEBHOOK: _once(Kind.KILL_WEBHOOK, ("0", "1")),
    Kind.KILL_WEBHOOKS: _once(Kind.KILL_WEBHOOKS),
    Kind.ROTATE: _once(Kind.ROTATE, ("leaf", "leaf", "ca")),
    Kind.CONFIGURE: _configure,
    Kind.EMERGENCY_STOP: _for_a_while(Kind.EMERGENCY_STOP, (3, 8)),
    Kind.RESTART_APISERVER: _once(Kind.RESTART_APISERVER),
    Kind.TROUBLE: _trouble,
    Kind.CUT: _once(Kind.CUT),
}
WEIGHTS: Final[dict[Kind, int]] = {
    Kind.CREATE: 8,
    Kind.DELETE: 6,
    Kind.SCALE: 8,
    Kind.ROLL_OUT: 4,
    Kind.DELETE_POD: 4,
    Kind.ASK: 6,
    Kind.SNATCH: 3,
    Kind.BUDGET: 6,
    Kind.NO_BUDGET: 4,
    Kind.ADD_NODE: 4,
    Kind.REMOVE_NODE: 2,
    Kind.NOTICE: 5,
    Kind.NOT_READY: 4,
    Kind.LABEL: 10,
    Kind.CORDON: 3,
    Kind.KILL_LEADER: 4,
    Kind.STOP_LEADER: 3,
    Kind.KILL_WEBHOOK: 3,
    Kind.KILL_WEBHOOKS: 1,
    Kind.ROTATE: 2,
    Kind.CONFIGURE: 3,
    Kind.EMERGENCY_STOP: 1,
    Kind.RESTART_APISERVER: 1,
    Kind.TROUBLE: 5,
    Kind.CUT: 2,
}

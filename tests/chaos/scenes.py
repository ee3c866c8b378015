"""Short scenes, each made for one kind of harm, where chance alone would take long: what the mutants are shown to."""

import itertools
import random
import time
from collections.abc import Callable
from typing import Final

from testbed.waiting import patient
from tests.chaos import run
from tests.chaos.model import Act, Form, Kind, Machine, Workload
from tests.chaos.records import Entry
from tests.chaos.stage import Stage

NODES: Final = tuple(Machine(f"scene-{letter}", spot=False, zone="zone-a") for letter in "abc")
STEP_SECONDS: Final = 40.0
Scene = Callable[[Stage, random.Random, str], None]


def play(on: Stage, scene: Scene, *, seed: int, seconds: float) -> None:
    """Over and over with other names, until something is wrong or the time is over; once at least."""
    rng, began = random.Random(seed), time.monotonic()
    on.do(Act(0, Kind.CONFIGURE, "drains only"))
    on.do(Act(0, Kind.ADD_NODE, NODES[0].name, NODES[0]))
    for number in itertools.count(1):
        scene(on, rng, f"scene-{number}")
        if not on.violations:
            on.settle()
        if on.violations or time.monotonic() > began + seconds:
            return


def namesake(on: Stage, rng: random.Random, name: str) -> None:
    """A pod of a StatefulSet has been replaced by one of its name when its eviction arrives."""
    _populate(on, Workload(name, Form.STATEFUL_SET, 3))
    on.do(Act(0, Kind.SNATCH, name, rng.randrange(3)))
    _until(on, lambda: [it for it in on.timeline.lines if f"{name}-" in it.text and "replaced" in it.text])
    on.wait(time.monotonic() + 3.0)
    _remove(on, name)


def crowd(on: Stage, _: random.Random, name: str) -> None:
    """A whole workload has to leave its node, and its budget allows one at a time."""
    _populate(on, Workload(name, Form.DEPLOYMENT, 6, ready_seconds=4))
    on.do(Act(0, Kind.BUDGET, name, {"maxUnavailable": 1}))
    on.wait(time.monotonic() + 2.0)
    on.do(Act(0, Kind.LABEL, NODES[0].name))
    _until(on, lambda: _moves(on, name, step="Evict"))
    on.wait(time.monotonic() + patient(10.0))
    on.do(Act(0, Kind.UNLABEL, NODES[0].name))
    _remove(on, name)


def called_off(on: Stage, rng: random.Random, name: str) -> None:
    """The only replica is being doubled when the label goes that was the reason for it."""
    _populate(on, Workload(name, Form.DEPLOYMENT, 1, ready_seconds=6))
    on.do(Act(0, Kind.LABEL, NODES[0].name))
    _until(on, lambda: _moves(on, name, step="AwaitAvailable"))
    on.wait(time.monotonic() + rng.uniform(0, 2))
    on.do(Act(0, Kind.UNLABEL, NODES[0].name))
    on.settle()
    _remove(on, name)


def unannounced(on: Stage, rng: random.Random, name: str) -> None:
    """The leader is killed while it drains a node."""
    _populate(on, Workload(name, Form.DEPLOYMENT, 3))
    on.do(Act(0, Kind.LABEL, NODES[0].name))
    _until(on, lambda: _moves(on, name, step="Mark"))
    on.wait(time.monotonic() + rng.uniform(0, 3))
    on.do(Act(0, Kind.KILL_LEADER))
    on.wait(time.monotonic() + patient(10.0))
    on.do(Act(0, Kind.UNLABEL, NODES[0].name))
    _remove(on, name)


SCENES: Final[dict[str, Scene]] = {
    "namesake": namesake,
    "crowd": crowd,
    "called-off": called_off,
    "unannounced": unannounced,
}


def _populate(on: Stage, workload: Workload) -> None:
    """All of it on the first node; then there are others."""
    for it in NODES[1:]:
        if it.name in on.model.machines:
            on.do(Act(0, Kind.CORDON, it.name))
    on.do(Act(0, Kind.CREATE, workload.name, workload))
    on.settle()
    for it in NODES[1:]:
        kind = Kind.UNCORDON if it.name in on.model.machines else Kind.ADD_NODE
        on.do(Act(0, kind, it.name, it if kind is Kind.ADD_NODE else None))
    on.wait(time.monotonic() + patient(2.0))


def _remove(on: Stage, name: str) -> None:
    if not on.violations:
        on.settle()
        run.perform(on, [Act(0, Kind.DELETE, name)])


def _moves(on: Stage, workload: str, *, step: str) -> list[Entry]:
    """Those of the workload that are or were at this step."""
    return [
        it
        for history in on.moves.histories.values()
        for it in history
        if it.pod.startswith(f"{workload}-") and it.step == step
    ]


def _until(on: Stage, seen: Callable[[], object]) -> None:
    """Look until it is there; if it does not come, what follows will show why."""
    deadline = time.monotonic() + patient(STEP_SECONDS)
    while not seen() and not on.violations and time.monotonic() < deadline:
        on.wait(time.monotonic() + 0.1)

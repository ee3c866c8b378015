"""Every write of a move, and every way in which its author can be lost at that moment."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from testbed import faults, objects
from testbed.api import ApiError, Object
from testbed.faults import Gate, Verb
from testbed.waiting import eventually
from tests.integration.descheduler.moves import product
from tests.integration.descheduler.moves.product import Member, Product
from tests.integration.descheduler.moves.scene import APP, BARE, LONE, Scene

HELD_SECONDS: Final = 60.0
"""Until the request in question must have come."""
SETTLE_SECONDS: Final = 200.0
"""An eviction whose request breaks off half-way holds its place in the budget for two minutes: that is how long the
disruption controller waits for a pod to go that nobody deleted."""


class Kind(StrEnum):
    """What happens to the process that leads."""

    KILLED_BEFORE = "killed before"
    """The request is lost with it."""
    KILLED_AFTER = "killed after"
    """The request took effect, nobody heard of it."""
    STOPPED_BEFORE = "stopped before"
    """It stands still, another takes over, and then its request arrives after all."""
    STOPPED_AFTER = "stopped after"
    """It stands still, another takes over, and then it hears the answer and goes on."""

    @property
    def kills(self) -> bool:
        return self in {Kind.KILLED_BEFORE, Kind.KILLED_AFTER}

    @property
    def after(self) -> bool:
        return self in {Kind.KILLED_AFTER, Kind.STOPPED_AFTER}


class During(StrEnum):
    """What is going on when a request is sent."""

    DRAIN = "drain"
    RETURN = "return"
    """A drained node is given back."""
    CALLED_OFF = "called off"
    """A move that a budget holds up is taken back; the same for one of a single replica and for a copy."""
    SURGE_CALLED_OFF = "surge called off"
    COPY_CALLED_OFF = "copy called off"


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a move."""

    verb: Verb
    resource: str
    body: str = ""
    during: During = During.DRAIN


STATUS: Final = "podmigrations/status"
STEPS: Final[dict[str, Step]] = {
    "create": Step("create", "podmigrations"),
    "adopt": Step("patch", "podmigrations", r'"finalizers":\["'),
    "announce: Guard": Step("patch", STATUS, r'"step":"Guard"'),
    "announce: Mark": Step("patch", STATUS, r'"step":"Mark"'),
    "mark the pod": Step("patch", "pods", r'migration-status":"in-progress"'),
    "mark the workload": Step("patch", "deployments", r'moving":"'),
    "announce: Evict": Step("patch", STATUS, r'"step":"Evict"'),
    "evict": Step("create", "pods/eviction"),
    "announce: AwaitReplacement": Step("patch", STATUS, r'"step":"AwaitReplacement"'),
    "claim the replacement": Step("patch", STATUS, r'"replacement":\{'),
    "announce: Settle": Step("patch", STATUS, r'"step":"Settle"'),
    "mark the replacement": Step("patch", "pods", r'migration-status":"completed"'),
    "end: Completed": Step("patch", STATUS, r'"phase":"Completed"'),
    "unmark the workload": Step("patch", "deployments", r'moving":null'),
    "release": Step("patch", "podmigrations", r'"finalizers":\[\]'),
    "unmark the pod": Step("patch", "pods", r'migration-status":null', During.CALLED_OFF),
    "end: Cancelled": Step("patch", STATUS, r'"phase":"Cancelled"', During.CALLED_OFF),
    "surge: announce the raise": Step("patch", STATUS, r'"step":"SurgeUp"'),
    "surge: raise": Step("patch", "deployments/scale", r'"replicas":2'),
    "surge: announce the wait": Step("patch", STATUS, r'"step":"AwaitAvailable"'),
    "surge: announce the lowering": Step("patch", STATUS, r'"step":"SurgeDown"'),
    "surge: set the cost": Step("patch", "pods", "pod-deletion-cost"),
    "surge: lower": Step("patch", "deployments/scale", r'"replicas":1'),
    "surge: announce the way back": Step("patch", STATUS, r'"step":"SurgeBack"', During.SURGE_CALLED_OFF),
    "surge: lower on the way back": Step("patch", "deployments/scale", r'"replicas":1', During.SURGE_CALLED_OFF),
    "copy: announce": Step("patch", STATUS, r'"step":"CreateCopy"'),
    "copy: create": Step("create", "pods"),
    "copy: announce the wait": Step("patch", STATUS, r'"step":"AwaitReady"'),
    "copy: announce the removal": Step("patch", STATUS, r'"step":"RemoveCopy"', During.COPY_CALLED_OFF),
    "copy: remove": Step("create", "pods/eviction", during=During.COPY_CALLED_OFF),
    "copy: note that there is none": Step("patch", STATUS, '"sought"', During.COPY_CALLED_OFF),
    "budget: create": Step("create", "poddisruptionbudgets"),
    "budget: delete": Step("delete", "poddisruptionbudgets"),
    "node: cordon": Step("patch", "nodes", r'"unschedulable":true'),
    "node: progress": Step("patch", "nodes", "maintenance-status"),
    "node: give back": Step("patch", "nodes", r'"unschedulable":null', During.RETURN),
}

Cell = tuple[str, Kind]
CELLS: Final[tuple[Cell, ...]] = tuple((name, kind) for name in STEPS for kind in Kind)


@dataclass(slots=True)
class Held:
    """A request that was caught, once it was."""

    running: Product
    gates: list[tuple[Member, Gate]]

    def reached(self) -> tuple[Member, Gate]:
        """Wait for it; whose it is, and the gate that holds it."""
        found = eventually(
            lambda: next((it for it in self.gates if it[1].reached.is_set()), None),
            timeout=HELD_SECONDS,
            interval=0.005,
            what=f"the request\n{self.running.tails()}",
        )
        assert found is not None
        return found

    def open(self) -> None:
        """Let it go on."""
        for _, gate in self.gates:
            gate.opened.set()


@contextlib.contextmanager
def held(running: Product, step: Step, *, after: bool = False) -> Iterator[Held]:
    """Catch the first such request, whoever sends it: another process may have taken the lead meanwhile."""
    gates, rules = [], []
    for member in running.members:
        gate = faults.Gate(after=after)
        how: dict[str, Any] = {"verb": step.verb, "resource": step.resource, "body": step.body or None}
        rules.append((member, member.proxy.rules.add(gate, **how, count=1)))
        gates.append((member, gate))
    made = Held(running, gates)
    try:
        yield made
    finally:
        for member, rule in rules:
            member.proxy.rules.remove(rule)
        made.open()


def crash(running: Product, on: Scene, cell: Cell) -> list[str]:
    """Let moves happen, lose the leader at this very request, and say what is wrong afterwards."""
    step, kind = STEPS[cell[0]], cell[1]
    with held(running, step, after=kind.after) as request:
        undo = _BEGIN[step.during](on)
        victim, gate = request.reached()
        _lose(running, victim, gate, kind)
    return [*undo(), *on.left(SETTLE_SECONDS)]


def _lose(running: Product, victim: Member, gate: Gate, kind: Kind) -> None:
    if kind.kills:
        running.kill(victim)
        running.start(victim)
        return
    running.pause(victim)
    running.leader(but=victim)
    gate.opened.set()
    running.resume(victim)


End = Callable[[], list[str]]
"""Waits until what was begun is over, puts things back, and says what is wrong."""


def _drain(on: Scene) -> End:
    on.drain()

    def ended() -> list[str]:
        wrong = _waited(on.is_drained, "the drained node")
        wrong += on.stalled() if wrong else []
        on.return_node()
        return wrong

    return ended


def _return(on: Scene) -> End:
    """The drain itself is not disturbed."""
    on.drain()
    wrong = _waited(lambda: on.is_drained() and not on.stalled(), "the drained node")
    on.return_node()
    return lambda: wrong


def _call_off(on: Scene) -> End:
    """A move that a budget holds up at its eviction, taken back by its user."""
    on.kube.create("poddisruptionbudgets", objects.budget("none", app=APP, maxUnavailable=0), on.namespace)
    ended = _taken_back(on, on.a_pod(), "Evict", step="Evict", message="PDB_NO_BUDGET")

    def over() -> list[str]:
        wrong = ended()
        on.kube.delete("poddisruptionbudgets", "none", on.namespace)
        return wrong

    return over


def _call_off_surge(on: Scene) -> End:
    return _taken_back(on, on.a_pod(LONE), "Surge", step="AwaitAvailable")


def _call_off_copy(on: Scene) -> End:
    return _taken_back(on, on.a_pod(BARE), "Recreate", step="AwaitReady")


def _taken_back(on: Scene, pod: str, mode: str, *, step: str, message: str = "") -> End:
    """A move that its user deletes when it has come so far."""
    kube = on.kube
    name = product.ask_for(kube, on.namespace, pod, target=on.target, mode=mode)

    def status() -> Object:
        found: Object = kube.get("podmigrations", name, on.namespace).get("status", {})
        return found

    def has_come(found: Object) -> bool:
        return bool(found.get("step") == step and message in found.get("message", ""))

    eventually(status, until=has_come, timeout=HELD_SECONDS, interval=0.05, what=f"a move of {pod} at {step}")
    kube.delete("podmigrations", name, on.namespace)

    def is_gone() -> bool:
        return all(it["metadata"]["name"] != name for it in product.migrations(kube, on.namespace))

    return lambda: _waited(is_gone, "the end of the cancelled move")


def _waited(probe: Callable[[], bool], what: str) -> list[str]:
    try:
        eventually(probe, timeout=SETTLE_SECONDS, what=what)
    except (AssertionError, ApiError) as never:
        return [str(never)]
    return []


_BEGIN: Final[dict[During, Callable[[Scene], End]]] = {
    During.DRAIN: _drain,
    During.RETURN: _return,
    During.CALLED_OFF: _call_off,
    During.SURGE_CALLED_OFF: _call_off_surge,
    During.COPY_CALLED_OFF: _call_off_copy,
}

"""Every write of a move, and every way in which its author can be lost at that moment."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from testbed import faults, objects
from testbed.api import ApiError
from testbed.faults import Gate, Verb
from testbed.waiting import eventually
from tests.integration.descheduler.moves import product
from tests.integration.descheduler.moves.product import Member, Product
from tests.integration.descheduler.moves.scene import APP, Scene

HELD_SECONDS: Final = 60.0
"""Until the request in question must have come."""
SETTLE_SECONDS: Final = 90.0


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


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a move."""

    verb: Verb
    resource: str
    body: str = ""
    called_off: bool = False
    """Seen only when a move is called off."""


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
    "unmark the pod": Step("patch", "pods", r'migration-status":null', called_off=True),
    "end: Cancelled": Step("patch", STATUS, r'"phase":"Cancelled"', called_off=True),
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
        undo = _call_off(on) if step.called_off else _drain(on)
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


def _drain(on: Scene) -> Callable[[], list[str]]:
    on.drain()

    def ended() -> list[str]:
        try:
            eventually(on.is_drained, timeout=SETTLE_SECONDS, what="the drained node")
        except AssertionError as never:
            return [str(never), *on.left(0)]
        finally:
            on.return_node()
        return []

    return ended


def _call_off(on: Scene) -> Callable[[], list[str]]:
    """A move that a budget holds up at its eviction, taken back by its user."""
    kube = on.kube
    kube.create("poddisruptionbudgets", objects.budget("none", app=APP, maxUnavailable=0), on.namespace)
    name = product.ask_for(kube, on.namespace, on.a_pod(), target=on.target)

    def blocked() -> bool:
        status = kube.get("podmigrations", name, on.namespace).get("status", {})
        return bool(status.get("step") == "Evict" and "PDB_NO_BUDGET" in status.get("message", ""))

    eventually(blocked, timeout=HELD_SECONDS, what="a move that its budget holds up")
    kube.delete("podmigrations", name, on.namespace)

    def ended() -> list[str]:
        def is_gone() -> bool:
            return all(it["metadata"]["name"] != name for it in product.migrations(kube, on.namespace))

        try:
            eventually(is_gone, timeout=SETTLE_SECONDS, what="the end of the cancelled move")
        except (AssertionError, ApiError) as never:
            return [str(never)]
        finally:
            kube.delete("poddisruptionbudgets", "none", on.namespace)
        return []

    return ended

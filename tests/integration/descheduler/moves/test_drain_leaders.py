"""The leader is lost at the writes to a node and to a temporary budget: whoever takes over leaves nothing of them."""

from dataclasses import dataclass
from typing import Any

import pytest

from policy import keys
from testbed.faults import Gate, Verb
from testbed.waiting import eventually
from tests.integration.descheduler.moves import scene as scenes
from tests.integration.descheduler.moves.product import Member, Product
from tests.integration.descheduler.moves.scene import Scene

KEYS = keys.under()
OURS = (KEYS.cordoned_by, KEYS.maintenance_status, KEYS.maintenance_remaining, KEYS.maintenance_since)


@pytest.fixture(autouse=True)
def as_usual(running: Product) -> None:
    running.configure()


@dataclass(frozen=True)
class Write:
    """One write of the leader."""

    verb: Verb
    resource: str
    body: str = ""


WRITES = {
    "cordon": Write("patch", "nodes", '"unschedulable":true'),
    "progress": Write("patch", "nodes", "draining"),
    "budget made": Write("create", "poddisruptionbudgets"),
    "budget removed": Write("delete", "poddisruptionbudgets"),
}


def cases(shown: str) -> list[Any]:
    """All writes, of which one is enough for every day."""
    return [
        pytest.param(write, id=name, marks=() if name == shown else pytest.mark.campaign)
        for name, write in WRITES.items()
    ]


@pytest.mark.parametrize("after", [False, True], ids=["before it arrives", "before it is answered"])
@pytest.mark.parametrize("write", cases("progress"))
def test_a_leader_that_stands_still_does_no_harm_when_it_goes_on(
    running: Product, write: Write, *, after: bool
) -> None:
    """It wakes up with its request half sent, when the label is gone and another leads."""
    with scenes.scene(running) as scene:
        victim, gate = stopped_at(running, scene, write, after=after)
        running.pause(victim)
        label(scene, None)
        other = running.leader(but=victim)
        gate.opened.set()
        running.resume(victim)
        as_found(running, scene)
        assert other.identity != victim.identity


@pytest.mark.parametrize("write", cases("budget made"))
def test_a_drain_goes_on_when_its_leader_is_killed(running: Product, write: Write) -> None:
    with scenes.scene(running) as scene:
        victim, gate = stopped_at(running, scene, write, after=False)
        running.kill(victim)
        gate.opened.set()
        running.start(victim)
        eventually(scene.is_drained, timeout=120, what="the drain to go on")
        eventually(lambda: note(running, scene, KEYS.maintenance_status), until=lambda it: it == "drained")
        label(scene, None)
        as_found(running, scene)


def stopped_at(running: Product, scene: Scene, write: Write, *, after: bool) -> tuple[Member, Gate]:
    """Who was about to do this write, and what holds it."""
    gates = [(member, Gate(after=after)) for member in running.members]
    for member, gate in gates:
        member.proxy.rules.add(gate, verb=write.verb, resource=write.resource, body=write.body or None, count=1)
    label(scene, "true")
    found = eventually(
        lambda: [it for it in gates if it[1].reached.is_set()], timeout=60, interval=0.02, what="the write"
    )
    for member in running.members:
        member.proxy.rules.clear()
    return found[0]


def label(scene: Scene, value: str | None) -> None:
    scene.kube.patch("nodes", scene.source, {"metadata": {"labels": {KEYS.maintenance: value}}})


def note(running: Product, scene: Scene, key: str) -> str:
    return str(running.kube.get("nodes", scene.source)["metadata"]["annotations"].get(key, ""))


def as_found(running: Product, scene: Scene) -> None:
    """No cordon, no word and no budget of ours, and no move under way."""

    def left() -> list[str]:
        node = running.kube.get("nodes", scene.source)
        cordon = ["cordon"] if node["spec"].get("unschedulable") else []
        notes = [key for key in OURS if key in node["metadata"]["annotations"]]
        budgets = [it["metadata"]["name"] for it in running.kube.list("poddisruptionbudgets", scene.namespace)]
        return cordon + notes + budgets

    eventually(left, until=lambda it: not it, timeout=60, what=f"the node as it was found\n{running.tails()}")
    assert scene.left() == []
    assert left() == [], "and it stays so"

"""Every row of the signal table on a real node: signal on, the node is left; taken back where that can be, stopped.

All rows are tried at the same time, each on a node of its own; a test looks at its row. Only a notice that stands
for some seconds without its signal is given when its turn comes.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from policy.signal_table import ROWS, Clock, Kind, Place, SignalRow
from testbed import objects
from testbed.waiting import eventually
from tests.integration.descheduler.interruptions import scene as scenes
from tests.integration.descheduler.interruptions.product import Product
from tests.integration.descheduler.interruptions.scene import KEYS, Scene

LEFT = {Kind.INTERRUPTION, Kind.REBALANCE, Kind.MAINTENANCE}
NUMBERS = {f"{row.kind}: {row.place} {row.key or 'cordon'}": number for number, row in enumerate(ROWS)}


@dataclass(frozen=True)
class Case:
    """One row and its node."""

    row: SignalRow
    node: str
    app: str

    @property
    def key(self) -> str:
        return self.row.key.replace("*", "anything")

    @property
    def value(self) -> str:
        if self.row.clock is Clock.VALUE_DEADLINE or self.row.clock is Clock.VALUE_START:
            return str(int(time.time()) + 3600)
        return "" if self.row.value == "*" else self.row.value

    @property
    def stands(self) -> bool:
        """Whether the notice counts without its signal."""
        return self.row.kind is Kind.INTERRUPTION and self.row.notice_seconds is not None

    def put(self, on: Scene) -> None:
        match self.row.place:
            case Place.TAINT:
                body: Any = {"spec": {"taints": [{"key": self.key, "value": self.value, "effect": "NoSchedule"}]}}
            case Place.LABEL | Place.ANNOTATION:
                body = {"metadata": {f"{self.row.place}s": {self.key: self.value}}}
            case Place.UNSCHEDULABLE:
                body = {"spec": {"unschedulable": True}}
            case Place.CONDITION:
                on.condition(self.node, self.key, self.row.value)
                return
        on.kube.patch("nodes", self.node, body)

    def take_back(self, on: Scene) -> None:
        if self.row.place is Place.TAINT:
            on.untaint(self.node, self.key)
        elif self.row.place is Place.CONDITION:
            on.condition(self.node, self.key, "False")
        else:
            on.kube.patch("nodes", self.node, {"metadata": {f"{self.row.place}s": {self.key: None}}})


def pinned(*nodes: str) -> dict[str, Any]:
    """To the first if it can, else to the others."""

    def term(names: tuple[str, ...]) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(names)}]}

    wanted = {"weight": 100, "preference": term(nodes[:1])}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term(nodes)]},
            "preferredDuringSchedulingIgnoredDuringExecution": [wanted],
        }
    }


@pytest.fixture(scope="module")
def on(running: Product) -> Iterator[Scene]:
    with scenes.scene(running) as made:
        yield made


@pytest.fixture(scope="module")
def cases(on: Scene) -> list[Case]:
    """Two pods that may leave on every node; where it is to be left, one more that its budget never lets go."""
    made = [objects.node(f"{on.namespace}-{number}", spot=True) for number in range(len(ROWS))]
    safe, *names = on.nodes(objects.node(f"{on.namespace}-safe", cpu="64", memory="256Gi", pods="500"), *made)
    found = [Case(row, node, f"app-{number}") for number, (row, node) in enumerate(zip(ROWS, names, strict=True))]
    held = [it for it in found if it.row.kind in LEFT]
    for it in found:
        on.create("deployments", objects.deployment(it.app, replicas=2, affinity=pinned(it.node, safe)))
    for it in held:
        on.create("statefulsets", objects.stateful_set(f"held-{it.app}", affinity=pinned(it.node, safe)))
        on.create("poddisruptionbudgets", objects.budget(f"held-{it.app}", app=f"held-{it.app}", maxUnavailable=0))
    on.settle(2 * len(found) + len(held))
    for it in found:
        if not it.stands:
            it.put(on)
    return found


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS.keys())
def test_each_row(on: Scene, cases: list[Case], number: int) -> None:
    case = cases[number]
    if case.row.kind not in LEFT:
        stays(on, case, cases)
        return
    if case.stands:
        case.put(on)
    given = time.monotonic()
    eventually(
        lambda: on.where(app=case.app),
        until=lambda it: len(it) == 2 and case.node not in it.values(),
        timeout=60,
        what=f"{case.node} to be left",
    )
    assert set(on.where(app=f"held-{case.app}").values()) == {case.node}, "its budget is respected"
    assert on.node(case.node)["spec"]["unschedulable"] is True
    assert on.node(case.node)["metadata"]["annotations"][KEYS.cordoned_by] == "spotshift"
    case.take_back(on)
    if case.row.notice_seconds and case.stands:
        # What was taken back is seen by the same watch as the answer to this; the notice counts until its deadline.
        marks, held = on.marks(case.node), open_of(on, f"held-{case.app}")
        if time.monotonic() - given < case.row.notice_seconds:  # else this machine is too slow to tell
            assert marks[KEYS.interruption_cause].endswith(case.key)
            assert KEYS.interruption_deadline in marks
            assert held
        return
    eventually(lambda: on.marks(case.node), until=lambda it: not it, timeout=20, what="the node as it was found")
    eventually(lambda: open_of(on, f"held-{case.app}"), until=lambda it: not it, timeout=20, what="no move under way")
    assert set(on.where(app=f"held-{case.app}").values()) == {case.node}, "and its pod never left"


def stays(on: Scene, case: Case, cases: list[Case]) -> None:
    """Nobody is moved, and not because it takes a while: the others were left meanwhile."""
    last = next(it for it in reversed(cases) if it.row.kind in LEFT)
    eventually(
        lambda: on.where(app=last.app), until=lambda it: len(it) == 2 and last.node not in it.values(), timeout=60
    )
    assert set(on.where(app=case.app).values()) == {case.node}
    assert not [it for it in on.moves() if it["spec"]["podRef"]["name"].startswith(f"{case.app}-")]
    assert set(on.marks(case.node)) == ({"cordon"} if case.row.place is Place.UNSCHEDULABLE else set())


def open_of(on: Scene, app: str) -> list[str]:
    """Moves of its pods that are not over."""
    opened = on.open_moves()
    pods = {it["metadata"]["name"]: it["spec"]["podRef"]["name"] for it in on.moves()}
    return [name for name in opened if pods[name].startswith(f"{app}-")]

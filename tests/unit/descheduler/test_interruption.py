"""Which nodes count as being lost, since when, until when, and when silence is not believed."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import Node
from descheduler import interruption
from descheduler.guards import Context
from descheduler.interruption import Loss, Scope, Sort
from policy import keys
from policy.settings import Settings
from policy.settings_strategies import SpotInterruption, Strategies
from policy.signal_table import Kind, Place, SignalRow, SignalSettings
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment

KEYS = keys.under()
ITN = "aws-node-termination-handler/spot-itn"
REBALANCE = "aws-node-termination-handler/rebalance-recommendation"
LIFECYCLE = "aws-node-termination-handler/asg-lifecycle-termination"
GKE = "cloud.google.com/impending-node-termination"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def taint(key: str, added: datetime | None = None) -> dict[str, str]:
    return {"key": key, "effect": "NoSchedule", **({"timeAdded": text(added)} if added else {})}


def noted(cause: str, since: float, deadline: float | None = None) -> dict[str, str]:
    """As it stands on the node: seconds ago, and seconds from now."""
    made = {KEYS.interruption_cause: cause, KEYS.interruption_since: text(ago(since))}
    return made if deadline is None else {**made, KEYS.interruption_deadline: text(ago(-deadline))}


def silent(name: str, seconds: float, **more: Any) -> Node:
    """NotReady for so long."""
    made = build.node(name, ready=False, **{"spot": True, "zone": "z", **more})
    ready = msgspec.structs.replace(made.status.conditions[0], last_transition_time=ago(seconds))
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, conditions=(ready,)))


def context(*objects: Any, settings: Settings | None = None) -> Context:
    used = settings or Settings()
    return Context(build.state(*objects, settings=used), used, KEYS, NOW, {})


def found(*objects: Any, settings: Settings | None = None) -> dict[str, Loss]:
    return interruption.find(context(*objects, settings=settings))


SIGNALS: dict[str, tuple[dict[str, Any], tuple[float, float | None] | None]] = {
    "no sign": ({}, None),
    "a cordon": ({"unschedulable": True}, None),
    "maintenance": ({"labels": {KEYS.maintenance: "true"}}, None),
    "taint with its time": ({"taints": [taint(ITN, ago(20))]}, (20, 100)),
    "taint without a time, first seen now": ({"taints": [taint(ITN)]}, (0, 120)),
    "and seen before": (
        {"taints": [taint(ITN)], "annotations": noted(f"taint {ITN}", 30)},
        (30, 90),
    ),
    "seen before for another reason": (
        {"taints": [taint(ITN)], "annotations": noted(f"taint {REBALANCE}", 3000)},
        (0, 120),
    ),
    "nonsense written there": (
        {"taints": [taint(ITN)], "annotations": {KEYS.interruption_cause: "x", KEYS.interruption_since: "soon"}},
        (0, 120),
    ),
    "an annotation has no time of its own": ({"annotations": {GKE: ""}}, (0, 15)),
    "and counts from when it was seen": ({"annotations": {GKE: "", **noted(f"annotation {GKE}", 5)}}, (5, 10)),
    "no deadline": ({"taints": [taint(LIFECYCLE)]}, (0, None)),
    "may be taken back": ({"taints": [taint(REBALANCE)]}, (0, None)),
    "two, the hard one counts": ({"taints": [taint(REBALANCE, ago(900)), taint(ITN, ago(5))]}, (5, 115)),
    "of two the nearer": (
        {
            "taints": [taint(ITN, ago(5)), taint(GKE, ago(1))],
        },
        (1, 14),
    ),
    "a notice stands without its signal": ({"annotations": noted(f"taint {ITN}", 60, 60)}, (60, 60)),
    "until its deadline": ({"annotations": noted(f"taint {ITN}", 121, -1)}, None),
    "one that may be taken back does not": ({"annotations": noted(f"taint {REBALANCE}", 60)}, None),
}


@pytest.mark.parametrize(("node", "expected"), SIGNALS.values(), ids=SIGNALS.keys())
@pytest.mark.parametrize("spot", [True, False], ids=["spot", "on-demand"])
def test_signals(node: dict[str, Any], expected: tuple[float, float | None] | None, spot: bool) -> None:
    """Whatever the capacity: the platform says that the node goes."""
    loss = found(build.node("a", spot=spot, **node)).get("a")
    told = None if loss is None else ((NOW - loss.since).total_seconds(), _left(loss))
    assert told == expected


def _left(loss: Loss) -> float | None:
    return None if loss.deadline is None else (loss.deadline - NOW).total_seconds()


def test_a_row_of_the_settings_counts() -> None:
    row = SignalRow(Kind.INTERRUPTION, Place.LABEL, "example.org/going", notice_seconds=40)
    settings = Settings(signals=SignalSettings(rows=(row,)))
    assert _left(found(build.node("a", labels={"example.org/going": "yes"}), settings=settings)["a"]) == 40


def test_nothing_is_lost_while_the_strategy_is_off() -> None:
    settings = Settings(enabled_strategies=("LoadBalancing",))
    assert found(build.node("a", taints=[taint(ITN)]), settings=settings) == {}


READY = [build.node(f"r{number}", spot=True, zone="z") for number in range(3)]
DAEMON = build.pod("agent", on="a", of=build.owner("DaemonSet", "agent"))
SILENCE: dict[str, tuple[list[Any], bool]] = {
    "a spot node, long enough": ([silent("a", 60), *deployment("x", ["a"])], True),
    "not long enough": ([silent("a", 59), *deployment("x", ["a"])], False),
    "an on-demand node": ([silent("a", 600, spot=False), *deployment("x", ["a"])], False),
    "capacity unknown": ([silent("a", 600, spot=None), *deployment("x", ["a"])], False),
    "nothing on it but its own": ([silent("a", 600), DAEMON], False),
    "nothing any more": ([silent("a", 600, annotations=noted("NotReady", 500))], True),
    "Ready again": ([build.node("a", spot=True, annotations=noted("NotReady", 500)), *deployment("x", ["a"])], False),
}


@pytest.mark.parametrize(("objects", "expected"), SILENCE.values(), ids=SILENCE.keys())
def test_silence(objects: list[Any], expected: bool) -> None:
    loss = found(*READY, *objects).get("a")
    assert (loss is not None) is expected
    if loss is not None:
        assert (loss.cause, loss.sort, loss.deadline) == ("NotReady", Sort.NOT_READY, None)


def test_how_long_is_a_setting() -> None:
    settings = Settings(
        strategies=Strategies(spot_interruption=SpotInterruption(not_ready_after=timedelta(seconds=5)))
    )
    assert set(found(*READY, silent("a", 6), *deployment("x", ["a"]), settings=settings)) == {"a"}


def zone(name: str, silent_ones: int, ready: int, *, spot: bool = True) -> list[Node]:
    return [
        *(silent(f"{name}-s{number}", 300, zone=name, spot=spot) for number in range(silent_ones)),
        *(build.node(f"{name}-r{number}", zone=name, spot=spot) for number in range(ready)),
    ]


BRAKE: dict[str, tuple[list[Any], list[tuple[Scope, str, int, int]]]] = {
    "half of a zone": ([*zone("z", 5, 5)], []),
    "most of a zone": ([*zone("z", 6, 4), *zone("y", 0, 10)], [(Scope.ZONE, "z", 6, 10)]),
    "exactly the share": ([*zone("z", 11, 9), *zone("y", 0, 20)], [(Scope.ZONE, "z", 11, 20)]),
    "on-demand nodes count for their zone": (
        [*zone("z", 1, 1), *(silent(f"od{it}", 300, spot=False) for it in range(3)), *zone("y", 0, 9)],
        [(Scope.ZONE, "z", 4, 5)],
    ),
    "most spot nodes, over many zones": (
        [node for name in "abc" for node in zone(name, 2, 1)],
        [(Scope.SPOT, "", 6, 9), (Scope.ZONE, "a", 2, 3), (Scope.ZONE, "b", 2, 3), (Scope.ZONE, "c", 2, 3)],
    ),
}


@pytest.mark.parametrize(("nodes", "expected"), BRAKE.values(), ids=BRAKE.keys())
def test_silence_of_most_is_a_partition(nodes: list[Node], expected: list[tuple[Scope, str, int, int]]) -> None:
    quiet = [it.metadata.name for it in nodes if it.status.conditions[0].status == "False"]
    scene = context(*nodes, *deployment("x", quiet))
    assert [(it.scope, it.name, it.silent, it.total) for it in interruption.partitions(scene)] == expected
    lost, held = set(interruption.find(scene)), {node.metadata.name for node, _ in interruption.held(scene)}
    spot = {name for name in quiet if not name.startswith("od")}
    assert (lost, held) == ((set(), spot) if expected else (spot, set()))


def test_a_partition_of_spot_nodes_alone() -> None:
    """No zone is in trouble, but most of what may vanish has."""
    nodes = [*zone("a", 2, 1), *zone("b", 2, 1)]
    others = [build.node(f"od-{zone}{it}", zone=zone, spot=False) for zone in "ab" for it in range(3)]
    scene = context(*nodes, *others, *deployment("x", ["a-s0", "b-s0"]))
    assert [(it.scope, it.silent, it.total) for it in interruption.partitions(scene)] == [(Scope.SPOT, 4, 6)]
    assert interruption.find(scene) == {}


def test_a_signal_counts_in_a_partition_too() -> None:
    nodes = [*zone("z", 7, 3), build.node("told", zone="z", spot=True, taints=[taint(ITN)])]
    assert set(found(*nodes, *deployment("x", ["z-s0"]))) == {"told"}


CHANGES: dict[str, tuple[list[Any], float | None]] = {
    "nothing": ([build.node("a")], None),
    "silence": ([silent("a", 50), silent("b", 20)], 10),
    "silence that has lasted": ([silent("a", 70)], None),
    "on-demand": ([silent("a", 50, spot=False)], None),
    "a notice that stands": ([build.node("a", annotations=noted("taint x", 100, 7))], 7),
}


@pytest.mark.parametrize(("objects", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_when_to_look_again(objects: list[Any], expected: float | None) -> None:
    due = interruption.next_change(context(*objects))
    assert (None if due is None else (due - NOW).total_seconds()) == expected

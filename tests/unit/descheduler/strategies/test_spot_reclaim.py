"""SpotReclaim: who goes back, from which node first, and who stays and is told why."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import Node
from descheduler.reasons import Code
from policy import values
from policy.settings import Settings
from policy.settings_moves import Limits
from policy.settings_strategies import SpotReclaim, Strategies
from tests.unit.descheduler import build, scenes
from tests.unit.descheduler.scenes import NOW, PREFIX, deployment, nodes

FREE = Limits(per_node=100, per_namespace=100, per_workload=100)
MINUTES = timedelta(minutes=1)


def policy(*also: str, **own: Any) -> Settings:
    return Settings(
        enabled_strategies=("SpotReclaim", *also),
        max_reschedule_pods=100,
        limits=FREE,
        strategies=Strategies(spot_reclaim=SpotReclaim(**{"max_pods": 100, **own})),
    )


def spot(cpu: str = "4", **more: Any) -> Node:
    return build.node("s0", spot=True, cpu=cpu, **more)


def od(*names: str) -> list[Any]:
    return nodes(*names, spot=False)


def moved(objects: list[Any], chosen: Settings | None = None) -> list[tuple[str, str | None]]:
    found = scenes.made(objects, chosen or policy())
    return [(source, target) for _, source, target in scenes.moves(found)]


@pytest.mark.parametrize(
    ("cpu", "on", "expected"),
    [
        pytest.param("4", ["o0", "o0", "o1"], {"o1": 1, "o0": 2}, id="all fit"),
        pytest.param("2", ["o0", "o0", "o1"], {"o1": 1, "o0": 1}, id="the node that can be emptied, then one more"),
        pytest.param("3", ["o0"] * 3 + ["o1"] * 3, {"o0": 3}, id="one whole node and not half of each"),
        pytest.param("1", ["o0"] * 3 + ["o1"], {"o1": 1}, id="the emptiest"),
        pytest.param("500m", ["o0", "o1"], {}, id="nothing fits"),
    ],
)
def test_whole_nodes_first(cpu: str, on: list[str], expected: dict[str, int]) -> None:
    found = moved([spot(cpu), *od("o0", "o1"), *deployment("web", on, cpu="1")])
    sources = [source for source, _ in found]
    assert {source: sources.count(source) for source in sources} == expected
    assert list(dict.fromkeys(sources)) == list(expected), "in this order"
    assert {target for _, target in found} <= {"s0"}


def test_room_for_a_node_that_is_emptied_step_by_step_is_kept() -> None:
    """One pod of a workload at a time: the rest of its node waits, and pods of other nodes do not go instead."""
    chosen = msgspec.structs.replace(policy(), limits=Limits(per_node=100, per_namespace=100, per_workload=1))
    objects = [
        spot("3"),
        *od("o0", "o1"),
        *deployment("few", ["o0"] * 3, cpu="1"),
        *deployment("x", ["o1"] * 4, cpu="1"),
    ]
    found = scenes.made(objects, chosen)
    assert [source for _, source, _ in scenes.moves(found)] == ["o0"]
    told = scenes.refused(found)
    assert {name: codes for name, codes in told.items() if name.startswith("x")} == {
        f"x-{number:02}": {Code.NO_IMPROVEMENT} for number in range(4)
    }


def test_a_node_that_cannot_be_emptied_waits_for_those_that_can() -> None:
    """It is the emptiest, but a pod that avoids spot holds it."""
    said = {f"{PREFIX}spot": "avoid"}
    held = [*deployment("stays", ["o0"], annotations=said), *deployment("web", ["o0"], cpu="1")]
    objects = [spot("1"), *od("o0", "o1"), *held, *deployment("other", ["o1"], cpu="1", memory="8Gi")]
    assert moved(objects) == [("o1", "s0")]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({}, True, id="prefers spot by default"),
        pytest.param({"annotations": {f"{PREFIX}spot": "require"}}, True, id="requires it"),
        pytest.param({"annotations": {f"{PREFIX}spot": "avoid"}}, False, id="avoids it"),
        pytest.param({"annotations": {f"{PREFIX}spot": "ignore"}}, False, id="does not care"),
        pytest.param({"annotations": {f"{PREFIX}rescheduling": "disabled"}}, False, id="opted out"),
        pytest.param({"annotations": {f"{PREFIX}spot-percentage": "70"}}, False, id="has a mix"),
        pytest.param({"namespace": "kube-system"}, False, id="in an excluded namespace"),
    ],
)
def test_who_goes_back(pod: dict[str, Any], expected: bool) -> None:
    assert bool(moved([spot(), *od("o0"), *deployment("web", ["o0", "o0"], **pod)])) is expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        pytest.param({"spot": False}, {}, True, id="on-demand"),
        pytest.param({}, {}, True, id="a node that does not tell its capacity"),
        pytest.param({"spot": True}, {}, False, id="spot already"),
        pytest.param({"spot": False, "unschedulable": True}, {}, False, id="cordoned: somebody is at it"),
        pytest.param({"labels": {f"{PREFIX}maintenance": "true"}}, {}, False, id="to be drained by another strategy"),
        pytest.param({"spot": False}, {"ready": False}, False, id="the spot node is not Ready"),
        pytest.param({"spot": False}, {"unschedulable": True}, False, id="the spot node is cordoned"),
        pytest.param({"spot": False}, {"taints": [{"key": "x", "effect": "NoSchedule"}]}, False, id="tainted"),
    ],
)
def test_from_where_and_to_where(source: dict[str, Any], target: dict[str, Any], expected: bool) -> None:
    objects = [spot(**target), build.node("n0", **source), *deployment("web", ["n0", "n0"])]
    assert bool(moved(objects)) is expected


@pytest.mark.parametrize("willing", ["a", "z"])
def test_each_namespace_speaks_for_its_own_pods(willing: str) -> None:
    """Of two pods without a controller that are alike, in the order of their nodes either may be asked first."""
    says = {"a": {f"{PREFIX}spot": "avoid"}, "z": {f"{PREFIX}spot": "avoid"}, willing: {}}
    spaces = [build.thing("Namespace", name, "", metadata={"annotations": said}) for name, said in says.items()]
    alike = {f"{PREFIX}rescheduling": "enabled"}
    bare = [
        build.pod("p", on=node, namespace=name, annotations=alike, cpu="1")
        for node, name in (("o0", "a"), ("o1", "z"))
    ]
    found = scenes.made([spot(), *od("o0", "o1"), *spaces, *bare], policy())
    assert [it.pod.metadata.namespace for it in found.moves] == [willing]


def test_daemons_and_pods_that_go_do_not_hold_a_node() -> None:
    daemon = build.pod("d", on="o0", of=build.owner("DaemonSet", "d"))
    going = build.pod("g", on="o0", cpu="4", metadata={"deletionTimestamp": "2026-03-01T12:00:00Z"})
    objects = [spot("1"), *od("o0", "o1"), daemon, going, *deployment("web", ["o0", "o1", "o1"], cpu="1")]
    assert moved(objects) == [("o0", "s0")]


def interrupted(ago: timedelta, *, strategy: str = "SpotInterruption", phase: str = "Completed") -> Any:
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-default-web"}
    return build.thing(
        "PodMigration",
        "m-1",
        spec={"podRef": {"name": "gone"}, "targetNode": "s0", "strategy": strategy},
        status={
            "phase": phase,
            "resolved": {"workload": workload, "sourceNode": "s9", "targetNode": "s0"},
            "finishedAt": values.format_time(NOW - ago),
            "onTarget": False,
            "replacement": {"name": "web-x", "uid": "x", "node": "o0"},
        },
    )


@pytest.mark.parametrize(
    ("pod", "others", "code"),
    [
        pytest.param({"status": {"startTime": "2026-03-01T11:51:00Z"}}, [], Code.TOO_YOUNG, id="has just come"),
        pytest.param({"status": {"startTime": "2026-03-01T11:49:00Z"}}, [], None, id="has been there long enough"),
        pytest.param({}, [interrupted(14 * MINUTES)], Code.COOLING_DOWN, id="an interruption not long ago"),
        pytest.param({}, [interrupted(16 * MINUTES)], None, id="an interruption long ago"),
        pytest.param({}, [interrupted(MINUTES, phase="Cancelled")], None, id="an interruption that was called off"),
        pytest.param({}, [interrupted(MINUTES, strategy="SpotReclaim")], Code.COOLING_DOWN, id="a way that failed"),
        pytest.param({}, [interrupted(MINUTES, strategy="LoadBalancing")], None, id="a move of another strategy"),
        pytest.param({"cpu": "5"}, [], Code.NO_NODE_FITS, id="does not fit"),
    ],
)
def test_who_stays_is_told(pod: dict[str, Any], others: list[Any], code: Code | None) -> None:
    objects = [spot(), *nodes("o0", spot=False, cpu="8"), *deployment("web", ["o0", "o0"], **pod), *others]
    found = scenes.made(objects, policy())
    assert len(found.moves) == (2 if code is None else 0)
    told = {each for codes in scenes.refused(found).values() for each in codes}
    assert told == (set() if code is None else {code})


@pytest.mark.parametrize(
    ("own", "expected"),
    [pytest.param(3, 3, id="three"), pytest.param(100, 12, id="all")],
)
def test_so_many_at_once(own: int, expected: int) -> None:
    objects = [spot("20"), *od("o0", "o1", "o2"), *deployment("web", ["o0", "o1", "o2"] * 4, cpu="1")]
    found = moved(objects, policy(max_pods=own))
    assert len(found) == expected


def test_those_under_way_count() -> None:
    moving = build.thing(
        "PodMigration",
        "m-2",
        spec={"podRef": {"name": "web-00"}, "targetNode": "s0", "strategy": "SpotReclaim"},
        status={"phase": "InProgress", "resolved": {"sourceNode": "o0", "targetNode": "s0"}},
    )
    objects = [spot("20"), *od("o0"), *deployment("web", ["o0"] * 8, cpu="100m"), moving]
    assert len(moved(objects, policy(max_pods=3))) == 2


def test_without_spot_nobody_is_told_anything() -> None:
    found = scenes.made([*od("o0", "o1"), *deployment("web", ["o0", "o1"])], policy())
    assert (found.moves, found.refusals) == ((), ())


def test_back_on_spot_balancing_does_not_send_anybody_away() -> None:
    """Spot nodes are then fuller than all others, and stay so."""
    chosen = policy("LoadBalancing")
    objects = [spot("4", pods="40"), *od("o0", "o1", "o2"), *deployment("web", ["s0"] * 8, cpu="450m")]
    assert moved(objects, chosen) == []

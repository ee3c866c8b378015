"""What a cluster holds altogether does not change while pods are on their way."""

from typing import Any

import pytest

from descheduler import surplus
from descheduler.roster import Group
from descheduler.strategies import load_balancing
from descheduler.strategies.load_balancing import Args
from descheduler.surplus import Surplus
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import nodes

LEAVING = {"deletionTimestamp": "2026-03-01T11:59:58Z"}
OWNER = build.owner("ReplicaSet", "web")


def pod(name: str, on: str, **metadata: Any) -> Any:
    return build.pod(name, on=on, of=OWNER, cpu="1", memory="1Gi", metadata=metadata)


def move(name: str, phase: str = "InProgress") -> Any:
    status = {"phase": phase, "resolved": {"owner": OWNER, "sourceNode": "n0"}}
    return build.thing("PodMigration", f"m-{name}", spec={"podRef": {"name": name}}, status=status)


OF_ONE = (1000, 1 << 30, 1)
STAYING = [pod("web-1", "n0"), pod("web-2", "n1")]
SCENES: dict[str, tuple[list[Any], dict[str, int]]] = {
    # three replicas are wanted; what there is beside two that stay, and the pods that count too much on a node
    "not yet": ([pod("web-0", "n0"), move("web-0")], {}),
    "going, its replacement is not there": ([pod("web-0", "n0", **LEAVING), move("web-0")], {"n0": 0}),
    "going, its replacement has no node": (
        [pod("web-0", "n0", **LEAVING), pod("web-3", ""), move("web-0")],
        {"n0": 0},
    ),
    "going, its replacement is there": (
        [pod("web-0", "n0", **LEAVING), pod("web-3", "n1"), move("web-0")],
        {"n0": 1},
    ),
    "neither is there": ([move("web-0")], {"n0": -1}),
    "arrived": ([pod("web-3", "n1"), move("web-0")], {}),
    "the move has ended, its pod not": (
        [pod("web-0", "n0", **LEAVING), pod("web-3", "n1"), move("web-0", "Completed")],
        {"n0": 1},
    ),
    "a pod is missing and nobody moved it": ([move("web-0", "Completed")], {}),
}


@pytest.mark.parametrize(("there", "expected"), SCENES.values(), ids=SCENES.keys())
def test_pods_on_their_way_count_once(there: list[Any], expected: dict[str, int]) -> None:
    owner = build.thing("ReplicaSet", "web", spec={"replicas": 3})
    state = build.state(*nodes("n0", "n1"), owner, *STAYING, *there)
    found = surplus.by_node(state)
    assert found == {node: Surplus(*(count * it for it in OF_ONE)) for node, count in expected.items()}


@pytest.mark.parametrize("there", [it for it, _ in SCENES.values()][:-1], ids=list(SCENES)[:-1])
def test_so_the_line_stays_where_it_is(there: list[Any]) -> None:
    owner = build.thing("ReplicaSet", "web", spec={"replicas": 3})
    state = build.state(*nodes("n0", "n1"), owner, *STAYING, *there)
    line = load_balancing.line(Group([*state.nodes.values()]), Args(), surplus.by_node(state))
    assert line.mean == pytest.approx(100 * 3 / 8)


def test_a_pod_that_is_gone_is_forgotten() -> None:
    going = pod("web-0", "n0", **LEAVING)
    state = build.state(*nodes("n0"), pod("web-0", "n0"))
    assert not state.going
    state.apply(None, going)
    assert list(state.going) == [going.metadata.key]
    state.apply(going, None)
    assert not state.going

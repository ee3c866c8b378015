"""NodeMaintenance: every pod of every node that is to be emptied, and what becomes of it."""

from datetime import timedelta
from typing import Any

import pytest

from descheduler.proposal import Urgency
from descheduler.reasons import Code
from descheduler.strategies import node_maintenance
from descheduler.strategies.node_maintenance import Args
from policy.settings import Settings
from policy.settings_strategies import NodeMaintenance, Strategies, WhenNothingFits
from tests.unit.descheduler import build, scenes
from tests.unit.descheduler.scenes import NOW, PREFIX, deployment, nodes

LABEL = {f"{PREFIX}maintenance": "true"}
TERMINATION = "karpenter.sh/nodeclaim-termination-timestamp"


@pytest.mark.parametrize(
    ("node", "count"),
    [
        pytest.param({"labels": LABEL}, 2, id="our label"),
        pytest.param({"labels": {f"{PREFIX}maintenance": "yes"}}, 0, id="another value of it"),
        pytest.param(
            {"taints": [{"key": "medik8s.io/drain", "effect": "NoSchedule"}]}, 2, id="a sign of another project"
        ),
        pytest.param({"unschedulable": True}, 0, id="a cordon moves nobody"),
        pytest.param(
            {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
            0,
            id="somebody else drains",
        ),
        pytest.param({}, 0, id="no sign"),
    ],
)
def test_every_pod_of_a_node_in_maintenance(node: dict[str, Any], count: int) -> None:
    state = build.state(build.node("n0", **node), *nodes("n1"), *deployment("x", ["n0", "n0", "n1"]))
    found = list(node_maintenance.propose(state, Args(), NOW))
    assert len(found) == count
    assert {it.urgency for it in found} <= {Urgency.MAINTENANCE}
    assert {it.pod.node_name for it in found} <= {"n0"}


def test_the_nearest_deadline_comes_first() -> None:
    soon, late = (NOW + timedelta(minutes=minutes) for minutes in (5, 50))
    made = {"a": {}, "b": {TERMINATION: late.isoformat()}, "c": {TERMINATION: soon.isoformat()}}
    objects = [build.node(name, labels=LABEL, annotations=signs) for name, signs in made.items()]
    many = Args(settings=Settings(strategies=Strategies(node_maintenance=NodeMaintenance(max_nodes=3))))
    found = node_maintenance.propose(build.state(*objects, *deployment("x", ["a", "b", "c"])), many, NOW)
    assert [(it.pod.node_name, it.deadline) for it in found] == [("c", soon), ("b", late), ("a", None)]


def test_a_sign_may_begin_to_ask_by_the_time_alone() -> None:
    """Nothing on the node changes, and its host is maintained within a day."""
    labels = {"cloud.google.com/scheduled-maintenance-time": str(int((NOW + timedelta(hours=25)).timestamp()))}
    state = build.state(build.node("a", labels=labels), *deployment("x", ["a", "a"]))
    asked = [list(node_maintenance.propose(state, Args(), NOW + timedelta(hours=hours))) for hours in (0, 2, 0)]
    assert [len(it) for it in asked] == [0, 2, 0]


SINCE = f"{PREFIX}maintenance-since"
DISABLED = {f"{PREFIX}rescheduling": "disabled"}


@pytest.mark.parametrize(
    ("objects", "most", "expected"),
    [
        pytest.param([*deployment("x", ["a", "b", "c"])], 1, ["a"], id="by name"),
        pytest.param([*deployment("x", ["a", "b", "c"])], 2, ["a", "b"], id="two at once"),
        pytest.param([*deployment("x", ["b", "c"])], 1, ["b"], id="an empty node holds up nobody"),
        pytest.param(
            [*deployment("x", ["a"], annotations=DISABLED), *deployment("y", ["b", "c"])],
            1,
            ["a", "b"],
            id="nor does one with pods that stay",
        ),
        pytest.param(
            [
                *deployment("x", ["b", "c"]),
                build.thing(
                    "PodMigration",
                    "m",
                    spec={"podRef": {"name": "gone"}},
                    status={"phase": "InProgress", "resolved": {"sourceNode": "a"}},
                ),
            ],
            1,
            [],
            id="a replacement that is not Ready yet does",
        ),
    ],
)
def test_so_many_nodes_at_once(objects: list[Any], most: int, expected: list[str]) -> None:
    args = Args(settings=Settings(strategies=Strategies(node_maintenance=NodeMaintenance(max_nodes=most))))
    state = build.state(*(build.node(name, labels=LABEL) for name in "abc"), *objects)
    found = node_maintenance.propose(state, args, NOW)
    assert list(dict.fromkeys(it.pod.node_name for it in found)) == expected


def test_who_came_first_is_written_on_the_node() -> None:
    late, early = ({SINCE: (NOW - timedelta(minutes=minutes)).isoformat()} for minutes in (1, 5))
    made = {"a": {}, "b": late, "c": early}
    objects = [build.node(name, labels=LABEL, annotations=since) for name, since in made.items()]
    found = node_maintenance.propose(build.state(*objects, *deployment("x", ["a", "b", "c"])), Args(), NOW)
    assert [it.pod.node_name for it in found] == ["c"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        pytest.param(WhenNothingFits.WAIT, [], id="wait"),
        pytest.param(WhenNothingFits.EVICT, [("x-00", "n0", None)], id="evict"),
    ],
)
def test_when_nothing_fits(choice: WhenNothingFits, expected: list[Any]) -> None:
    settings = Settings(strategies=Strategies(node_maintenance=NodeMaintenance(when_nothing_fits=choice)))
    objects = [build.node("n0", labels=LABEL), build.node("n1", cpu="1"), *deployment("x", ["n0"], cpu="2")]
    found = scenes.made(objects, settings)
    assert scenes.moves(found) == expected
    waits = [] if expected else ["0/0 spot nodes fit; 0/1 nodes other than spot fit: 1 insufficient cpu"]
    assert [reason.text for it in found.refusals for reason in it.reasons] == waits


def test_a_pod_that_has_to_leave_may_go_a_step_back() -> None:
    objects = [
        build.node("spot-0", spot=True, labels=LABEL),
        build.node("od-0", spot=False),
        *deployment("x", ["spot-0"]),
    ]
    assert scenes.moves(scenes.made(objects)) == [("x-00", "spot-0", "od-0")]


def test_maintenance_goes_before_balancing() -> None:
    objects = [
        build.node("n0", cpu="4", labels=LABEL),
        *nodes("n1", "n2", cpu="4"),
        *deployment("x", ["n0"], cpu="3"),
        *deployment("y", ["n1"] * 3, cpu="1"),
    ]
    found = scenes.made(objects)
    assert [(move.strategy, move.target) for move in found.moves] == [("NodeMaintenance", "n2")]
    assert Code.NO_IMPROVEMENT in {code for codes in scenes.refused(found).values() for code in codes}

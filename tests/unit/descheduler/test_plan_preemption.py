"""Room that kube-scheduler has to make belongs to the critical pod it is made for; nobody else counts on it."""

from typing import Any

import pytest

from descheduler import preemption
from descheduler.picture import Picture
from descheduler.plan import Plan
from policy import keys
from policy.settings import Placement, Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build, counting, scenes
from tests.unit.descheduler.scenes import PREFIX, deployment
from tests.unit.descheduler.test_interruption import ITN, taint

FREE = Limits(per_node=100, per_namespace=100, per_workload=100)
LOST = build.node("lost", spot=True, taints=[taint(ITN)])


def planned(*objects: Any, strategies: tuple[str, ...]) -> Plan:
    settings = Settings(
        enabled_strategies=("SpotInterruption", *strategies),
        limits=FREE,
        max_reschedule_pods=100,
        placement=Placement(critical_namespaces=("*",)),
    )
    return scenes.made([LOST, *objects], settings)


def told(found: Plan) -> list[tuple[str, str | None, list[str]]]:
    return [(it.pod.metadata.name, it.target, [pod.metadata.name for pod in it.victims]) for it in found.moves]


def pods(name: str, on: str, cpu: str, priority: int = 0, *, count: int = 1, **annotations: str) -> list[Any]:
    marks = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
    return deployment(name, [on] * count, cpu=cpu, annotations=marks, spec={"priority": priority})


def critical(count: int = 1, cpu: str = "500m") -> list[Any]:
    return pods("critical", "lost", cpu, 1000, count=count, tier="critical")


MAINTAINED = build.node("upkeep", spot=False, cpu="1", labels={keys.under().maintenance: "true"})
OTHERS: dict[str, tuple[str, list[Any]]] = {
    "SpotMix": (
        "SpotMix",
        [
            build.node("spot", spot=True, cpu="2"),
            *pods("fill", "spot", "1"),
            *pods("other", "spot", "200m", count=4, spot_percentage="0"),
        ],
    ),
    "SpotReclaim": (
        "SpotReclaim",
        [build.node("od2", spot=False, cpu="1"), *pods("other", "od2", "800m", 2000, spot="prefer")],
    ),
    "NodeMaintenance": ("NodeMaintenance", [MAINTAINED, *pods("other", "upkeep", "300m", 2000)]),
}


@pytest.mark.parametrize(("strategy", "objects"), OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("spot", [True, False], ids=["spot", "on-demand"])
def test_no_other_move_counts_on_it(strategy: str, objects: list[Any], spot: bool) -> None:
    """Most of the room that the victim leaves is not needed; it is no room for others all the same."""
    full = [build.node("full", spot=spot, cpu="4"), *pods("batch", "full", "3900m", -100)]
    found = planned(*full, *objects, *critical(), strategies=(strategy,))
    assert ("critical-00", "full", ["batch-00"]) in told(found)
    assert [it for it in told(found) if it[1] == "full"] == [("critical-00", "full", ["batch-00"])]


def test_a_pod_of_another_tier_that_is_driven_out_as_well_does_not_count_on_it() -> None:
    full = [build.node("full", spot=False, cpu="4"), *pods("batch", "full", "3900m", -100)]
    found = planned(*full, *critical(), *pods("plain", "lost", "500m", 500, count=2), strategies=())
    assert told(found) == [("critical-00", "full", ["batch-00"]), ("plain-00", None, []), ("plain-01", None, [])]


def test_critical_pods_share_what_one_victim_leaves() -> None:
    full = [build.node("full", spot=False, cpu="4"), *pods("batch", "full", "3900m", -100)]
    found = planned(*full, *critical(3), strategies=())
    assert told(found) == [
        ("critical-00", "full", ["batch-00"]),
        ("critical-01", "full", []),
        ("critical-02", "full", []),
    ]


def test_a_victim_is_not_moved_a_second_time() -> None:
    """It prefers spot, and there is room for it: the scheduler takes it, and its next pod goes there by itself."""
    full = [build.node("full", spot=False, cpu="1"), *pods("keep", "full", "400m", 2000, spot="avoid")]
    spot = [build.node("spot", spot=True, cpu="1"), *pods("fill", "spot", "450m", 2000)]
    batch = pods("batch", "full", "500m", -100, spot="prefer")
    found = planned(*full, *spot, *batch, *critical(cpu="600m"), strategies=("SpotReclaim",))
    assert told(found) == [("critical-00", "full", ["batch-00"])]


def test_in_the_end_the_victims_have_left() -> None:
    full = [build.node("full", spot=False, cpu="1"), *pods("batch", "full", "900m", -100)]
    mixed = [build.node("spot", spot=True, cpu="1"), *pods("web", "spot", "200m", count=4, spot_percentage="0")]
    found = planned(*full, *mixed, *critical(), strategies=("SpotMix",))
    assert {it.name: it.after for it in found.nodes}["full"] == pytest.approx(50)


# ---- budgets

KEPT = build.thing(
    "HorizontalPodAutoscaler",
    "auto",
    spec={"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 9},
)
"""Keeps the workload from being doubled, so that its budget is all there is."""


@pytest.mark.parametrize(("allowed", "moved"), [(1, []), (2, ["web-01"])])
def test_a_victim_takes_a_disruption_of_its_budget(allowed: int, moved: list[str]) -> None:
    full = [build.node("od", spot=False, cpu="1"), build.node("free", spot=False, cpu="400m"), MAINTAINED]
    web = deployment("web", ["od", "upkeep"], cpu="400m", spec={"priority": -100})
    keep = pods("keep", "od", "500m", 2000)
    budget = build.budget("pdb", allowed=allowed, labels={"app": "web"})
    found = planned(*full, *web, *keep, *critical(), budget, KEPT, strategies=("NodeMaintenance",))
    assert told(found)[0] == ("critical-00", "od", ["web-00"])
    assert [name for name, _, _ in told(found)[1:]] == moved


def test_two_victims_of_one_budget_break_it_if_it_allows_one_disruption() -> None:
    """Either node takes the pod; on the first it costs two pods of one budget, on the second two of two."""
    both = [build.node(name, spot=False, cpu="1") for name in ("a", "b")]
    one = deployment("one", ["a", "a"], cpu="450m", spec={"priority": -100})
    two = [
        *deployment("two", ["b"], cpu="450m", spec={"priority": -50}),
        *deployment("three", ["b"], cpu="450m", spec={"priority": -50}),
    ]
    budgets = [build.budget(name, allowed=1, labels={"app": name}) for name in ("one", "two", "three")]
    found = planned(*both, *one, *two, *budgets, *critical(cpu="900m"), strategies=())
    assert told(found) == [("critical-00", "b", ["three-00", "two-00"])]


# ---- what it costs


def tried(patch: pytest.MonkeyPatch, *objects: Any, count: int) -> tuple[int, Plan]:
    """How often pods of other nodes than the lost one were taken away to see whether that helps."""
    asked = counting.calls(patch, Picture, "take")
    found = planned(*objects, *critical(count), strategies=())
    return sum(pod.node_name != "lost" for (pod,) in asked), found


HOPELESS: dict[str, list[Any]] = {
    "a taint": [
        build.node("no", spot=False, cpu="1", taints=[{"key": "only", "effect": "NoSchedule"}]),
        *pods("batch", "no", "900m", -100),
    ],
    "too little is lower": [
        build.node("no", spot=False, cpu="1"),
        *pods("high", "no", "700m", 2000),
        *pods("batch", "no", "200m", -100),
    ],
    "too small": [build.node("no", spot=False, cpu="400m"), *pods("batch", "no", "300m", -100)],
}


@pytest.mark.parametrize("objects", HOPELESS.values(), ids=HOPELESS.keys())
def test_a_node_that_cannot_help_is_left_alone(objects: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    taken, found = tried(monkeypatch, *objects, count=1)
    assert (taken, told(found)) == (0, [("critical-00", None, [])])


def test_when_a_plan_has_tried_enough_each_pod_gets_the_best_of_a_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption, "TAKEN", 30)
    names = [f"n{number:02}" for number in range(30)]
    nodes = [build.node(name, spot=False, cpu="600m") for name in names]
    batch = deployment("batch", names, cpu="500m", spec={"priority": -100})
    first, _ = tried(monkeypatch, *nodes, *batch, count=1)
    taken, found = tried(monkeypatch, *nodes, *batch, count=9)
    assert [(target, len(victims)) for _, target, victims in told(found)] == [(name, 1) for name in names[:9]]
    # The first looks at all nodes; then it is a few each, and once more for the one that is to go.
    assert taken <= first + 8 * (2 * preemption.FEW + 2)

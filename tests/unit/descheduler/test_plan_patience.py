"""A plan that knows what is on its way: it waits for its turn, fills up nothing it has just relieved, and leaves room
on spot to those who may go nowhere else.
"""

from datetime import timedelta
from typing import Any

import pytest

from descheduler import plan
from descheduler.strategies import load_balancing
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW

SETTINGS = Settings(enabled_strategies=("LoadBalancing",), limits=Limits(min_pod_age=timedelta()))


def workload(name: str, cpu: str, on: list[str], **pod: Any) -> list[Any]:
    made = [build.pod(f"{name}-{at}", on=node, of=_owner(name), cpu=cpu, **pod) for at, node in enumerate(on)]
    return [build.thing("ReplicaSet", name, spec={"replicas": len(on)}), *made]


def _owner(name: str) -> dict[str, Any]:
    return build.owner("ReplicaSet", name)


def move(pod: str, source: str, target: str, owner: str, **status: Any) -> Any:
    resolved = {"owner": _owner(owner), "workload": {"uid": f"uid-default-{owner}"}, "sourceNode": source}
    return build.thing(
        "PodMigration",
        f"m-{pod}",
        spec={"podRef": {"name": pod}, "strategy": "LoadBalancing", "targetNode": target},
        status={"phase": "InProgress", "step": "Mark", **status, "resolved": {**resolved, "targetNode": target}},
    )


def moves(*objects: Any) -> list[tuple[str, str | None]]:
    made = plan.make(build.state(*objects, settings=SETTINGS), SETTINGS, NOW)
    return [(it.pod.metadata.name, it.target) for it in made.moves]


def nodes(*names: str, **more: Any) -> list[Any]:
    return [build.node(name, cpu="10", memory="64Gi", **more) for name in names]


def test_small_pods_do_not_go_in_the_place_of_a_large_one_that_waits_for_its_turn() -> None:
    """70 % are to become 28.3: two large ones and a small one. One large one is under way, the other must wait."""
    state = [
        *nodes("a", "b", "c"),
        *workload("large", "2", ["a", "a"]),
        *workload("small", "300m", ["a"] * 10),
        move("large-0", "a", "b", "large"),
    ]
    assert sorted(pod for pod, _ in moves(*state)) == ["small-0"]


def test_a_pod_that_is_on_its_way_out_is_not_there_any_more() -> None:
    """The move has ended, its pod has not: 40 % are 20 without it."""
    leaving = {"deletionTimestamp": "2026-03-01T11:59:58Z"}
    stays = [*nodes("a", "b", "c"), *workload("web", "1", ["a", "a", "b", "b", "c", "c"])]
    assert moves(*stays, *workload("other", "1", ["a", "a"], metadata=leaving)) == []
    assert moves(*stays, *workload("other", "1", ["a", "a"])) != []


def test_a_budget_that_our_own_move_uses_up_is_waited_for() -> None:
    """No second replica is started, and no other pod goes in its place; a budget that is blocked by itself is another
    matter.
    """
    web = workload("web", "1", ["a"] * 6, labels={"app": "web"})
    state = [*nodes("a", "b", "c"), *web, build.budget("web", allowed=0, labels={"app": "web"})]
    assert moves(*state, move("web-0", "a", "b", "web")) == []
    assert len(moves(*state)) == 1


REST = load_balancing.REST
RELIEVED = {
    "under way": ({}, True),
    "ended just now": ({"phase": "Completed", "finishedAt": (NOW - timedelta(seconds=5)).isoformat()}, True),
    "ended long ago": ({"phase": "Completed", "finishedAt": (NOW - REST).isoformat()}, False),
}


@pytest.mark.parametrize(("status", "spared"), RELIEVED.values(), ids=RELIEVED.keys())
def test_a_node_that_was_relieved_is_not_filled_up_again(status: dict[str, Any], spared: bool) -> None:
    """The mean is 31 %; pods have just left `b`, which is a little above it."""
    state = [
        *nodes("a", "b", "c", "d"),
        *workload("web", "300m", ["a"] * 20),
        *workload("own", "3200m", ["b"]),
        *workload("others", "1600m", ["c", "d"]),
        move("gone", "b", "c", "gone", **status),
    ]
    proposal, *_ = load_balancing.propose(build.state(*state), load_balancing.Args(), NOW)
    assert isinstance(proposal.aim, load_balancing.Level)
    assert proposal.aim.peers == ({"c", "d"} if spared else {"b", "c", "d"})


def test_a_node_that_was_relieved_and_is_below_the_mean_now_is_as_good_as_any() -> None:
    state = [*nodes("a", "b"), *workload("web", "1", ["a"] * 5)]
    ended = {"phase": "Completed", "finishedAt": NOW.isoformat()}
    assert {target for _, target in moves(*state, move("gone", "b", "a", "gone", **ended))} == {"b"}


def test_room_on_spot_is_for_pods_that_may_go_nowhere_else() -> None:
    """A spot node and another are too full; pods of the other prefer spot too, but have a choice."""
    full = [*nodes("o1", "o2", spot=False), *nodes("s1", "s2", spot=True)]
    state = [*full, *workload("one", "1", ["o1"] * 8), *workload("two", "1", ["s1"] * 8)]
    found = moves(*state)
    assert {(pod[:3], target) for pod, target in found} == {("one", "o2"), ("two", "s2")}


def test_where_only_spot_has_room_everybody_may_have_it() -> None:
    full = [*nodes("o1", spot=False), *nodes("s1", "s2", "s3", spot=True)]
    kept = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    state = [*full, *workload("one", "1", ["o1"] * 8), *workload("two", "1", ["s1"] * 8, annotations=kept)]
    found = moves(*state)
    assert {pod[:3] for pod, _ in found} == {"one"}
    assert {target for _, target in found} <= {"s2", "s3"}

"""Which proposal goes first, and what becomes of pods that have to leave whatever happens."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from descheduler.plan import _Planner
from descheduler.proposal import Proposal, Urgency
from descheduler.reasons import Code
from descheduler.strategies import Active
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment, nodes


@dataclass(frozen=True)
class Said:
    """A strategy that proposes what it was given."""

    proposals: tuple[Proposal, ...]
    NAME: str = "Said"
    WEIGHT: int = 1
    Args: type[Any] = object

    def propose(self, state: Any, args: Any, now: datetime) -> Iterator[Proposal]:
        yield from self.proposals


def planner(objects: list[Any], *groups: list[list[Proposal]], **settings: Any) -> _Planner:
    """Groups of strategies of one weight each, the heaviest first."""
    chosen = Settings(**settings)
    made = _Planner(build.state(*objects, settings=chosen), chosen, NOW)
    for weight, group in zip(range(9, 0, -1), groups, strict=False):
        made.consider(tuple(Active(f"s{number}", weight, Said(tuple(it)), None) for number, it in enumerate(group)))
    return made


def proposal(pod: Any, minutes: int | None = None, urgency: Urgency = Urgency.MAINTENANCE) -> Proposal:
    return Proposal(pod, urgency, "said so", deadline=None if minutes is None else NOW + timedelta(minutes=minutes))


def test_by_weight_then_by_deadline_then_in_the_order_of_the_strategy() -> None:
    a, b, c, d, e = (deployment(name, ["n0"])[2] for name in "abcde")
    objects = [*nodes("n0", "n1"), *(it for name in "abcde" for it in deployment(name, ["n0"]))]
    same_weight = [[proposal(a, 30), proposal(b)], [proposal(c, 10), proposal(d, 40)]]
    found = planner(objects, [[proposal(e)]], same_weight)
    assert [move.pod.metadata.name[0] for move in found.moves] == ["e", "c", "a", "d", "b"]
    assert [move.weight for move in found.moves] == [9, 8, 8, 8, 8]


def test_a_pod_is_moved_for_the_first_who_asks() -> None:
    made = deployment("x", ["n0"])
    found = planner([*nodes("n0", "n1"), *made], [[proposal(made[2])], [proposal(made[2])]])
    assert [move.strategy for move in found.moves] == ["s0"]
    assert found.refusals == ()


@pytest.mark.parametrize(
    ("urgency", "target"),
    [
        pytest.param(Urgency.VOLUNTARY, "stays", id="voluntary"),
        pytest.param(Urgency.MAINTENANCE, "stays", id="maintenance waits"),
        pytest.param(Urgency.INTERRUPTION, None, id="interruption"),
    ],
)
def test_a_pod_that_fits_nowhere(urgency: Urgency, target: str | None) -> None:
    made = deployment("x", ["n0"], cpu="2")
    found = planner([*nodes("n0"), build.node("n1", cpu="1"), *made], [[proposal(made[2], urgency=urgency)]])
    if target == "stays":
        assert found.moves == []
        assert [it.code for refusal in found.refusals for it in refusal.reasons] == [Code.NO_NODE_FITS]
    else:
        assert [move.target for move in found.moves] == [None]


def test_a_pass_that_has_used_up_its_moves_asks_no_further() -> None:
    made = deployment("x", ["n0"] * 4)
    asked = [proposal(pod, urgency=Urgency.VOLUNTARY) for pod in made[2:]]
    found = planner([*nodes("n0", "n1"), *made], [asked, [proposal(made[5])]], max_reschedule_pods=1)
    assert [move.pod.metadata.name for move in found.moves] == ["x-00", "x-03"]
    assert found.proposals == 3
    assert found.limited is not None
    assert found.limited.code is Code.LIMIT_TOTAL


def test_a_refusal_is_taken_back_when_a_later_move_makes_room() -> None:
    fast = {"disk": "fast"}
    first = deployment("first", ["n0"], cpu="3", spec={"nodeSelector": fast})
    second = deployment("second", ["n1"], cpu="3")
    objects = [*nodes("n0", "n1", cpu="4", labels=fast), build.node("n2", cpu="4"), *first, *second]
    found = planner(objects, [[proposal(first[2]), proposal(second[2])]])
    assert [(move.pod.metadata.name, move.target) for move in found.moves] == [
        ("second-00", "n2"),
        ("first-00", "n1"),
    ]
    assert found.refusals == ()


@pytest.mark.parametrize(
    ("urgency", "moves", "codes"),
    [
        pytest.param(Urgency.VOLUNTARY, 0, [Code.NO_IMPROVEMENT], id="voluntary"),
        pytest.param(Urgency.MAINTENANCE, 1, [], id="maintenance"),
    ],
)
def test_the_zone_a_pod_leaves_counts_too(urgency: Urgency, moves: int, codes: list[Code]) -> None:
    """Four pods in a and one each in b and c may be. With none in b they may not, though c could take one more."""
    constraint = {
        "maxSkew": 3,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    made = deployment("x", ["a", "a", "a", "a", "b", "c"], spec={"topologySpreadConstraints": [constraint]})
    objects = [*(build.node(zone, zone=zone) for zone in "abc"), *made]
    found = planner(objects, [[proposal(made[6], urgency=urgency)]])
    assert len(found.moves) == moves
    assert [it.code for refusal in found.refusals for it in refusal.reasons] == codes

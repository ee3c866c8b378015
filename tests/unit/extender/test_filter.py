"""Which nodes may have a pod: what goes away never, everything else only while there is something better."""

import pytest

from extender import filter as filters
from extender.view import NodeFacts
from extender.wish import Wish
from policy.settings_extender import By
from policy.signal_table import Kind
from tests.unit.extender.building import ON_DEMAND, SPOT, facts

GOING = {"a": facts(SPOT, Kind.INTERRUPTION), "b": facts(ON_DEMAND, Kind.MAINTENANCE)}
AVOIDED = {"c": facts(SPOT, Kind.REBALANCE), "d": facts(ON_DEMAND, Kind.AVOID)}
SOUND = {"e": facts(SPOT), "f": facts(ON_DEMAND), "g": NodeFacts()}
ANY, SPOT_FIRST, ON_DEMAND_FIRST = Wish(), Wish(SPOT, By.FILTER), Wish(ON_DEMAND, By.FILTER)


@pytest.mark.parametrize(
    ("candidates", "wish", "passed"),
    [
        pytest.param(SOUND, ANY, "efg", id="nothing wrong, no wish"),
        pytest.param({**GOING, **AVOIDED, **SOUND}, ANY, "efg", id="going and avoided nodes are left out"),
        pytest.param({**GOING, **AVOIDED}, ANY, "cd", id="avoided nodes where nothing else is left"),
        pytest.param(GOING, ANY, "", id="nothing but nodes that go away"),
        pytest.param(SOUND, SPOT_FIRST, "e", id="spot first"),
        pytest.param(SOUND, ON_DEMAND_FIRST, "fg", id="on-demand first, which is all that is not spot"),
        pytest.param({"f": facts(ON_DEMAND)}, SPOT_FIRST, "f", id="no spot left"),
        pytest.param({"e": facts(SPOT)}, ON_DEMAND_FIRST, "e", id="no on-demand left"),
        pytest.param({**GOING, "e": facts(SPOT)}, ON_DEMAND_FIRST, "e", id="the only on-demand node goes away"),
        pytest.param({**AVOIDED, "e": facts(SPOT)}, ON_DEMAND_FIRST, "e", id="sound comes before the capacity"),
        pytest.param(SOUND, Wish(SPOT, By.SCORE), "efg", id="a wish by score filters nothing"),
        pytest.param(GOING, Wish(free=False), "ab", id="a pod of one node is not held back"),
        pytest.param({}, SPOT_FIRST, "", id="no nodes"),
    ],
)
def test_who_passes(candidates: dict[str, NodeFacts], wish: Wish, passed: str) -> None:
    assert "".join(filters.nodes(candidates, wish).names) == passed


@pytest.mark.parametrize(
    ("target", "passed"),
    [
        pytest.param("f", "f", id="alone"),
        pytest.param("d", "d", id="though it is avoided: the plan knew"),
        pytest.param("a", "e", id="not if it goes away"),
        pytest.param("z", "e", id="not if it cannot take the pod"),
    ],
)
def test_the_target_of_a_move(target: str, passed: str) -> None:
    found = filters.nodes({**GOING, **AVOIDED, **SOUND}, SPOT_FIRST, target=target)
    assert "".join(found.names) == passed
    assert set(found.out) == set(GOING)


def test_the_reason_names_the_sign() -> None:
    assert filters.nodes(GOING, ANY).out == {
        "a": "node is about to be taken away",
        "b": "node is to be drained for maintenance",
    }

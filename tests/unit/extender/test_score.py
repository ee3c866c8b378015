"""Scores: the weighted mean, each part of it alone, and the target of a move above all."""

import pytest

from extender import score
from extender.view import NodeFacts
from extender.wish import Wish
from policy.settings_extender import By
from policy.signal_table import Kind
from tests.unit.extender.building import ON_DEMAND, SPOT, facts, settings

SPOT_WISH, ON_DEMAND_WISH, NO_WISH = Wish(SPOT), Wish(ON_DEMAND, By.FILTER), Wish()
METRIC = "metric: {annotation: example.org/latency, best: 0, worst: 200}"
ONLY_METRIC = f"extender: {{capacityWeight: 0, loadWeight: 0, {METRIC}}}"


def scored(
    candidates: dict[str, NodeFacts],
    wish: Wish,
    *,
    said: str = "",
    loads: dict[str, float] | None = None,
    target: str | None = None,
) -> dict[str, int]:
    return dict(score.nodes(candidates, wish, loads=loads or {}, settings=settings(said).extender, target=target))


@pytest.mark.parametrize(
    ("node", "wish", "load", "said", "expected"),
    [
        pytest.param(facts(SPOT), SPOT_WISH, 0.0, "", 10, id="empty spot node"),
        pytest.param(facts(ON_DEMAND), SPOT_WISH, 0.0, "", 3, id="empty, but on-demand: the load's third"),
        pytest.param(facts(SPOT), SPOT_WISH, 1.0, "", 7, id="full spot node: the capacity's two thirds"),
        pytest.param(facts(ON_DEMAND), SPOT_WISH, 1.0, "", 0, id="full and on-demand"),
        pytest.param(facts(SPOT), ON_DEMAND_WISH, 0.0, "", 3, id="spot for one who avoids it"),
        pytest.param(facts(ON_DEMAND), ON_DEMAND_WISH, 0.5, "", 8, id="half full, of the right kind"),
        pytest.param(NodeFacts(), ON_DEMAND_WISH, 0.0, "", 10, id="without a label: not spot"),
        pytest.param(facts(SPOT), NO_WISH, 0.3, "", 7, id="no wish: the load alone"),
        pytest.param(facts(SPOT, Kind.AVOID), SPOT_WISH, 0.0, "", 0, id="avoided"),
        pytest.param(facts(SPOT), SPOT_WISH, 0.5, "extender: {loadWeight: 0}", 10, id="load does not count"),
        pytest.param(facts(SPOT), SPOT_WISH, 0.8, "extender: {capacityWeight: 0}", 2, id="capacity does not count"),
        pytest.param(facts(metric=0.75), NO_WISH, 0.0, ONLY_METRIC, 8, id="the number in the annotation alone"),
        pytest.param(facts(SPOT, metric=1.0), SPOT_WISH, 0.0, f"extender: {{{METRIC}}}", 10, id="all three, best"),
        pytest.param(facts(SPOT, metric=0.0), SPOT_WISH, 0.0, f"extender: {{{METRIC}}}", 8, id="all three, far away"),
        pytest.param(
            facts(SPOT), SPOT_WISH, 0.0, "extender: {capacityWeight: 0, loadWeight: 0}", 0, id="nothing counts"
        ),
    ],
)
def test_one_node(node: NodeFacts, wish: Wish, load: float, said: str, expected: int) -> None:
    assert scored({"a": node}, wish, said=said, loads={"a": load}) == {"a": expected}


def test_the_target_has_it_all() -> None:
    candidates = {"a": facts(SPOT), "b": facts(ON_DEMAND), "c": facts(SPOT)}
    assert scored(candidates, SPOT_WISH, target="b") == {"a": 0, "b": 10, "c": 0}
    assert scored(candidates, SPOT_WISH, target="z") == {"a": 10, "b": 3, "c": 10}


def test_a_pod_of_one_node_gets_no_scores() -> None:
    assert scored({"a": facts(SPOT)}, Wish(free=False)) == {"a": 0}

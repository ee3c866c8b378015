"""LoadBalancing makes about as few moves as can be: see `moves_bound`, which prints the distribution."""

import statistics

import pytest

from tests.unit.descheduler import build, moves_bound
from tests.unit.descheduler.generated import World


@pytest.mark.parametrize(
    ("small", "mean"),
    [pytest.param(True, 1.05, id="against an exact search"), pytest.param(False, 1.25, id="against a bound")],
)
def test_about_as_few_moves_as_can_be(small: bool, mean: float) -> None:
    ratios = [it.ratio for it in moves_bound.results(12, 1, small=small)[0]]
    assert statistics.median(ratios) <= 1.05
    assert statistics.mean(ratios) <= mean


def test_the_search_finds_what_is_known() -> None:
    """The mean is 20 %, the node at 80 % is to go down to 22.5 %: three of its pods of 20 % have to leave."""
    nodes = [build.node(name, cpu="1") for name in ("n0", "n1", "n2", "n3")]
    pods = [build.pod(f"p{number}", on="n0", cpu="200m", memory="1Mi") for number in range(4)]
    problem = moves_bound.Problem(World(nodes, pods))
    assert moves_bound.cover(problem) == 3
    assert moves_bound.fewest(problem, 50) == 3
    assert moves_bound.fewest(problem, 3) is None

"""How many pods belong on spot: bounds for every number, and pods that are decided one by one end up there."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import keys, mix, placement
from policy.mix import Mix
from policy.placement import Intent
from policy.values import Rescheduling, Side, Spot, Tier

mixes = st.builds(Mix, st.integers(0, 100), st.integers(0, 12))
numbers = st.integers(0, 300)


@pytest.mark.parametrize(
    ("wanted", "replicas", "spot"),
    [
        pytest.param(Mix(70), 50, 35, id="a share"),
        pytest.param(Mix(70), 1, 0, id="rounded down"),
        pytest.param(Mix(100), 1, 1, id="all"),
        pytest.param(Mix(0), 9, 0, id="none"),
        pytest.param(Mix(100, 2), 10, 8, id="a minimum alone"),
        pytest.param(Mix(90, 2), 10, 8, id="a minimum above the share"),
        pytest.param(Mix(50, 2), 10, 5, id="a minimum below the share"),
        pytest.param(Mix(100, 5), 3, 0, id="a minimum above the number of pods"),
        pytest.param(Mix(70, 2), 0, 0, id="no pods"),
    ],
)
def test_how_many(wanted: Mix, replicas: int, spot: int) -> None:
    assert wanted.spot(replicas) == spot
    assert wanted.on_demand(replicas) == replicas - spot


@given(mixes, numbers)
def test_bounds(wanted: Mix, replicas: int) -> None:
    spot = wanted.spot(replicas)
    assert 0 <= spot <= replicas
    assert 100 * spot <= replicas * wanted.percentage
    assert replicas - spot >= min(wanted.min_on_demand, replicas)
    assert wanted.spot(replicas + 1) - spot in {0, 1}


def counted(wanted: Mix, spot: int, on_demand: int, more: int) -> tuple[int, int]:
    """After so many more pods, decided one by one."""
    for _ in range(more):
        if wanted.next(spot, on_demand) is Side.SPOT:
            spot += 1
        else:
            on_demand += 1
    return spot, on_demand


@given(mixes, numbers)
def test_pods_decided_one_by_one_are_exact(wanted: Mix, replicas: int) -> None:
    assert counted(wanted, 0, 0, replicas)[0] == wanted.spot(replicas)


@given(mixes, st.integers(1, 100), st.data())
def test_lost_pods_are_made_up_for(wanted: Mix, replicas: int, data: st.DataObject) -> None:
    """Whichever are lost: those that come in their place bring the mix back."""
    spot = data.draw(st.integers(0, wanted.spot(replicas)))
    on_demand = data.draw(st.integers(0, wanted.on_demand(replicas)))
    found = counted(wanted, spot, on_demand, replicas - spot - on_demand)
    assert found == (wanted.spot(replicas), wanted.on_demand(replicas))


@given(mixes, numbers)
def test_numbered_pods_are_exact_for_every_number_of_them(wanted: Mix, replicas: int) -> None:
    assert sum(wanted.at(number) is Side.SPOT for number in range(replicas)) == wanted.spot(replicas)


@given(mixes, st.integers(1, 80), st.randoms(use_true_random=False))
def test_two_that_see_each_other_late_are_near(wanted: Mix, pods: int, rng: random.Random) -> None:
    """A burst in batches that double, as controllers create: within one, neither sees what the other decides."""
    spot, left, batch = 0, pods, 1
    while left:
        size = min(batch, left)
        before, own = (spot, pods - left - spot), [(0, 0), (0, 0)]
        for _ in range(size):
            who = rng.randrange(2)
            is_spot = wanted.next(before[0] + own[who][0], before[1] + own[who][1]) is Side.SPOT
            own[who] = (own[who][0] + is_spot, own[who][1] + (not is_spot))
            spot += is_spot
        left, batch = left - size, batch * 2
    both_fill_the_minimum = 2 if wanted.min_on_demand else 0  # and both make up for it in the next batch
    assert abs(spot - wanted.spot(pods)) <= max(3, pods // 10) + both_fill_the_minimum


def intent(spot: Spot = Spot.PREFER, share: int | None = None, least: int | None = None) -> Intent:
    return Intent(
        spot=spot,
        tier=Tier.STANDARD,
        rescheduling=Rescheduling.ENABLED,
        spot_percentage=share,
        min_on_demand=least,
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(intent(), None, id="nothing said"),
        pytest.param(intent(share=70), Mix(70), id="a share"),
        pytest.param(intent(least=2), Mix(100, 2), id="a minimum"),
        pytest.param(intent(share=0), Mix(0), id="no spot at all is a mix too"),
        pytest.param(intent(Spot.AVOID, share=70), None, id="avoid"),
        pytest.param(intent(Spot.REQUIRE, share=70), None, id="require"),
        pytest.param(intent(Spot.IGNORE, share=70), None, id="ignore"),
    ],
)
def test_who_is_mixed(asked: placement.Intent, expected: Mix | None) -> None:
    assert mix.of(asked) == expected


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        pytest.param("db-7", {}, 7, id="by name"),
        pytest.param("db-7", {keys.POD_INDEX: "3"}, 3, id="by index"),
        pytest.param("db-7", {keys.POD_INDEX: "x"}, 7, id="an index that is none"),
        pytest.param("db", {}, None, id="no number"),
        pytest.param("db-٣", {}, None, id="a digit of another script"),
        pytest.param("db-99999999999999", {}, None, id="more than there can be"),
        pytest.param("", {}, None, id="no name"),
    ],
)
def test_the_number_of_a_pod(name: str, labels: dict[str, str], expected: int | None) -> None:
    assert mix.ordinal(name, labels) == expected

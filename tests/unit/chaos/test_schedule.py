"""The same seed draws the same acts, and every act is possible when its time comes."""

import pytest

from policy import settings_load
from policy.mistakes import InvalidSettings
from tests.chaos.draws import DRAWS, LEAST_USABLE, MACHINES, MOST_PODS, WEIGHTS
from tests.chaos.model import ENDS, Act, Condition, Kind, Model
from tests.chaos.schedule import ABOUT_MACHINES, ABOUT_WORKLOADS, Author
from tests.chaos.settings import DOCUMENTS

SEEDS = range(1, 21)
ROUNDS, SECONDS = 3, 300.0


def written(seed: int) -> list[list[Act]]:
    author = Author(seed)
    return [author.opening(), *(author.round(SECONDS) for _ in range(ROUNDS))]


def test_a_seed_draws_the_same_acts_again() -> None:
    assert written(7) == written(7)
    assert written(7) != written(8)


def test_everything_comes_up() -> None:
    drawn = {act.kind for seed in SEEDS for acts in written(seed) for act in acts}
    assert drawn == set(Kind)
    assert set(DRAWS) == set(WEIGHTS) == set(Kind) - {*ENDS.values(), Kind.READY, Kind.UNLABEL, Kind.UNCORDON}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_act_is_impossible(seed: int) -> None:
    model = Model()
    for acts in written(seed):
        assert [act.at for act in acts] == sorted(act.at for act in acts)
        for act in acts:
            assert act.subject in model.workloads or act.kind not in ABOUT_WORKLOADS, act
            assert act.subject in model.machines or act.kind not in ABOUT_MACHINES, act
            assert act.subject in DOCUMENTS or act.kind is not Kind.CONFIGURE, act
            model.apply(act)
            assert model.pods <= MOST_PODS
            if len(model.machines) >= sum(MACHINES.values()):
                assert all(len(model.usable(spot=spot)) >= least for spot, least in LEAST_USABLE.items()), act


@pytest.mark.parametrize("seed", SEEDS)
def test_a_round_takes_back_what_would_keep_the_cluster_from_rest(seed: int) -> None:
    model = Model()
    for acts in written(seed):
        for act in acts:
            model.apply(act)
        assert model.under_way == set()
        assert {it.condition for it in model.machines.values()} == {Condition.UP}
        assert not any(it.cordoned for it in model.machines.values())
        assert all(len(model.usable(spot=spot)) >= count for spot, count in MACHINES.items())
    last = [act.subject for act in written(seed)[-1] if act.kind is Kind.CONFIGURE][-1]
    assert last == "usual"


def test_settings_are_good_but_for_the_broken_ones() -> None:
    for name, text in DOCUMENTS.items():
        if name == "broken":
            with pytest.raises(InvalidSettings):
                settings_load.load(text)
        else:
            settings_load.load(text)

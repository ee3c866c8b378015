"""The list of strategies: all of one shape, in the order of their weights, and only those that are enabled."""

import inspect

import msgspec
import pytest

from descheduler import strategies
from descheduler.strategies import REGISTRY, Strategy
from policy import settings_strategies
from policy.settings import Settings
from policy.settings_strategies import LoadBalancing, Strategies

ALL = [name for name in settings_strategies.BUILT_IN if name in {it.NAME for it in REGISTRY}]
"""In the order of their weights."""


@pytest.mark.parametrize("strategy", REGISTRY, ids=lambda it: str(it.NAME))
def test_every_strategy_has_the_same_shape(strategy: Strategy) -> None:
    assert strategy.NAME in settings_strategies.BUILT_IN
    assert issubclass(strategy.Args, msgspec.Struct)
    assert strategy.Args() == strategy.Args()  # a default for every argument
    assert list(inspect.signature(strategy.propose).parameters) == ["state", "args", "now"]
    default = next(it for it in strategies.active(Settings()) if it.name == strategy.NAME)
    assert default.weight == strategy.WEIGHT


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(Settings(), ALL, id="all of ours"),
        pytest.param(Settings(enabled_strategies=("LoadBalancing",)), ["LoadBalancing"], id="one"),
        pytest.param(Settings(enabled_strategies=()), [], id="none"),
        pytest.param(
            Settings(strategies=Strategies(load_balancing=LoadBalancing(weight=300))),
            ["LoadBalancing", *(name for name in ALL if name != "LoadBalancing")],
            id="by the weights of the settings",
        ),
    ],
)
def test_which_are_asked_and_in_what_order(settings: Settings, expected: list[str]) -> None:
    assert [it.name for it in strategies.active(settings)] == expected

"""Where a move goes after others took its target and left it theirs."""

import pytest

from policy import exchange
from policy.exchange import Exchange

CASES: dict[str, tuple[list[Exchange], str]] = {
    "nothing was traded": ([], "b"),
    "somebody took it": ([Exchange("m", "b", "a")], "a"),
    "somebody took it from another": ([Exchange("other", "b", "a")], "b"),
    "a chain, in any order": ([Exchange("m", "a", "d"), Exchange("m", "b", "a")], "d"),
    "a record that is no longer true": ([Exchange("m", "x", "a")], "b"),
    "back again": ([Exchange("m", "b", "a"), Exchange("m", "a", "b")], "b"),
    "the same node twice": ([Exchange("m", "b", "a"), Exchange("m", "b", "c")], "a"),
}


@pytest.mark.parametrize(("exchanges", "expected"), CASES.values(), ids=CASES.keys())
def test_target(exchanges: list[Exchange], expected: str) -> None:
    assert exchange.target("m", "b", exchanges) == expected

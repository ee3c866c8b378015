import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import drain_status
from policy.drain_status import MOST, DrainStatus, Stage

READ = {
    "draining 7/12": DrainStatus(Stage.DRAINING, 7, 12),
    "waiting 0/999999": DrainStatus(Stage.WAITING, 0, MOST),
    "drained": DrainStatus(Stage.DRAINED),
    "draining": DrainStatus(Stage.DRAINING),
    "draining 7": DrainStatus(Stage.DRAINING),
    "draining 7/": DrainStatus(Stage.DRAINING),
    "draining /12": DrainStatus(Stage.DRAINING),
    "draining -7/12": DrainStatus(Stage.DRAINING),
    "draining 7/1000000": DrainStatus(Stage.DRAINING),
    "draining 7/\u0661\u0662": DrainStatus(Stage.DRAINING),
    "draining 7/12/3": DrainStatus(Stage.DRAINING),
    "": None,
    "Draining 7/12": None,
    "done 7/12": None,
    " draining 7/12": None,
}


@pytest.mark.parametrize(("text", "expected"), READ.items(), ids=map(repr, READ))
def test_what_a_node_says(text: str, expected: DrainStatus | None) -> None:
    assert drain_status.read(text) == expected


COUNTS = st.integers(0, MOST)


@given(st.sampled_from([Stage.WAITING, Stage.DRAINING]), COUNTS, COUNTS)
def test_what_is_written_is_read(stage: Stage, done: int, total: int) -> None:
    assert drain_status.read(str(DrainStatus(stage, done, total))) == DrainStatus(stage, done, total)


def test_a_drained_node_counts_nothing() -> None:
    assert str(DrainStatus(Stage.DRAINED, 12, 12)) == "drained"


@given(st.text())
def test_whatever_stands_there_can_be_looked_at(text: str) -> None:
    found = drain_status.read(text)
    assert found is None or text.startswith(found.stage)

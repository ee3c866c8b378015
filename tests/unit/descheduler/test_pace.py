"""When the next turn is due, in seconds after a turn that took 1 s and ended at 0."""

import pytest

from descheduler.pace import COALESCE_SECONDS, REST_FACTOR, Pace


def after_a_turn(*, again: float | None = None, took: float = 1.0) -> Pace:
    pace = Pace()
    pace.want(urgent=False)
    pace.took(-took, 0.0, again)
    return pace


def test_the_first_change_is_looked_at_at_once() -> None:
    pace = Pace()
    assert pace.wait(0.0) is None
    assert not pace.due(0.0)
    pace.want(urgent=False)
    assert pace.wait(0.0) == 0.0
    assert pace.due(0.0)


CASES = {
    "nothing has changed": ((), None, 1.0, None),
    "nothing has changed, but it asked": ((), 30.0, 1.0, 30.0),
    "it asked for less than is good": ((), 0.0, 1.0, COALESCE_SECONDS),
    "a change waits for the rest": ((False,), None, 1.0, REST_FACTOR),
    "a change after a short turn": ((False,), None, 0.001, COALESCE_SECONDS),
    "an urgent change does not wait": ((True,), None, 1.0, COALESCE_SECONDS),
    "urgent among others": ((False, True, False), None, 1.0, COALESCE_SECONDS),
    "what it asked for comes first": ((False,), 0.5, 1.0, 0.5),
}


@pytest.mark.parametrize(("changes", "again", "took", "wait"), CASES.values(), ids=CASES.keys())
def test_the_wait_after_a_turn(
    changes: tuple[bool, ...], again: float | None, took: float, wait: float | None
) -> None:
    pace = after_a_turn(again=again, took=took)
    for urgent in changes:
        pace.want(urgent=urgent)
    assert pace.wait(0.0) == wait
    if wait is not None:
        assert not pace.due(wait - 0.001)
        assert pace.due(wait)


def test_a_turn_answers_all_changes_before_it() -> None:
    pace = after_a_turn()
    pace.want(urgent=True)
    pace.took(5.0, 6.0, None)
    assert pace.wait(6.0) is None

"""The token bucket, on a clock of our own."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.ratelimit import Bucket, RateLimit


class Clock:
    """Time passes only by sleeping or by hand."""

    def __init__(self) -> None:
        self.at = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def bucket(clock: Clock, per_second: float, burst: int) -> Bucket:
    return Bucket(RateLimit(per_second, burst), now=clock.now, sleep=clock.sleep)


def test_a_burst_passes_and_then_the_rate_holds() -> None:
    clock = Clock()
    limited = bucket(clock, 10, 3)
    assert [round(limited.take(), 6) for _ in range(6)] == [0, 0, 0, 0.1, 0.1, 0.1]


def test_quiet_time_earns_no_more_than_a_burst() -> None:
    clock = Clock()
    limited = bucket(clock, 10, 2)
    clock.at += 3600
    assert [round(limited.take(), 6) for _ in range(3)] == [0, 0, 0.1]


def test_a_clock_that_goes_back_earns_nothing() -> None:
    clock = Clock()
    limited = bucket(clock, 10, 1)
    limited.take()
    clock.at -= 50
    assert limited.take() == pytest.approx(0.1)


@given(
    per_second=st.floats(0.5, 500),
    burst=st.integers(1, 50),
    gaps=st.lists(st.floats(0, 3), min_size=1, max_size=60),
)
def test_never_more_than_burst_plus_rate(per_second: float, burst: int, gaps: list[float]) -> None:
    clock = Clock()
    limited = bucket(clock, per_second, burst)
    passed = []
    for gap in gaps:
        clock.at += gap
        limited.take()
        passed.append(clock.at)
    for first, start in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + (passed[last] - start) * per_second + 1e-6


def test_threads_share_the_tokens() -> None:
    frozen = Clock()
    waits: list[float] = []
    limited = Bucket(RateLimit(10, 5), now=frozen.now, sleep=waits.append)
    threads = [threading.Thread(target=lambda: [limited.take() for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(round(wait, 6) for wait in waits) == [round(n / 10, 6) for n in range(1, 36)]


@pytest.mark.parametrize(
    ("per_second", "burst"), [pytest.param(0, 1, id="no-rate"), pytest.param(1, 0, id="no-burst")]
)
def test_a_limit_that_lets_nothing_through_is_refused(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match="rate limit"):
        RateLimit(per_second, burst)

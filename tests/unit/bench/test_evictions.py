"""How many evictions there were each second."""

from datetime import UTC, datetime, timedelta

from bench import evictions

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def test_from_the_first_to_the_last_and_in_the_best_second() -> None:
    found = evictions.rate([BEGAN + timedelta(seconds=it) for it in (10, 0, 0.5, 0.9, 1.2, 5)])
    assert found == {"evictions": 6, "seconds": 10.0, "evictions per second": 0.5, "in the best second": 3}

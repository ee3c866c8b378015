"""Lengths of time, as kubectl writes them."""

from datetime import UTC, datetime, timedelta

import pytest

from console import ages

LENGTHS = {
    "nothing": (0, "0s"),
    "to come": (-5, "0s"),
    "seconds": (119, "119s"),
    "minutes": (120, "2m"),
    "both": (192, "3m12s"),
    "many minutes": (3600, "60m"),
    "hours": (5 * 3600, "5h"),
    "days": (50 * 3600, "2d"),
}


@pytest.mark.parametrize(("seconds", "wanted"), LENGTHS.values(), ids=LENGTHS.keys())
def test_lengths(seconds: int, wanted: str) -> None:
    assert ages.length(timedelta(seconds=seconds)) == wanted


def test_what_is_not_known() -> None:
    assert ages.between(None, datetime.now(UTC)) == "-"
    assert ages.stamp(None) is None

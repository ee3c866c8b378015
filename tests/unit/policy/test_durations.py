from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import durations, values
from policy.reasons import Malformed

# Answers of Go's time.ParseDuration, in nanoseconds; None where it refuses.
GO = {
    "30s": 30_000_000_000,
    "1h30m": 5_400_000_000_000,
    "1h30m0s": 5_400_000_000_000,
    "500ms": 500_000_000,
    "1.5h": 5_400_000_000_000,
    ".5s": 500_000_000,
    "1.s": 1_000_000_000,
    "0": 0,
    "+0": 0,
    "-0": 0,
    "+5s": 5_000_000_000,
    "-5s": -5_000_000_000,
    "1µs": 1_000,
    "1μs": 1_000,
    "1us2ns": 1_002,
    "1m1m": 120_000_000_000,
    "0.3333333333333333333h": 1_200_000_000_000,
    "9223372036854775807ns": 9_223_372_036_854_775_807,
    "-9223372036854775808ns": -9_223_372_036_854_775_808,
    "2562047h47m16.854775807s": 9_223_372_036_854_775_807,
    "9223372036854775808ns": None,
    "3000000h": None,
    "99999999999999999999ns": None,
    "00": None,
    "": None,
    "+": None,
    ".": None,
    "s": None,
    ".s": None,
    "30": None,
    "30 s": None,
    " 30s": None,
    "30s\n": None,
    "1d": None,
    "1w": None,
    "30S": None,
    "1e3s": None,
    "1.1.1s": None,
    "--5s": None,
    "\uff11s": None,
}


@pytest.mark.parametrize(("text", "expected"), GO.items(), ids=[repr(text) for text in GO])
def test_as_go_reads_it(text: str, expected: int | None) -> None:
    answer = durations.nanoseconds(text)
    assert (None if isinstance(answer, Malformed) else answer) == expected


def test_refusal_names_the_format() -> None:
    assert durations.parse("30") == Malformed("", "30", "a duration such as 30s, 5m or 1h30m")


def test_negative_only_where_allowed() -> None:
    assert durations.parse("-5s", negative=True) == timedelta(seconds=-5)
    assert isinstance(durations.parse("-5s"), Malformed)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=30), "30s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(milliseconds=500), "500ms"),
        (timedelta(days=2, microseconds=7), "48h7us"),
        (timedelta(seconds=-90), "-1m30s"),
    ],
    ids=str,
)
def test_text(length: timedelta, text: str) -> None:
    assert durations.text_of(length) == text


@pytest.mark.parametrize("count", [2**63 - 1, 99_999_999_999, -(2**63)])
def test_a_number_of_seconds_that_is_too_large_can_be_reckoned_with(count: int) -> None:
    length = durations.of_seconds(count)
    assert abs(length) > timedelta(days=365)
    assert values.EARLIEST + length < values.LATEST + length


def test_a_number_of_seconds_is_what_it_says() -> None:
    assert durations.of_seconds(values.INT32_MAX) == timedelta(seconds=values.INT32_MAX)


@given(st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)))
def test_text_reads_back(length: timedelta) -> None:
    assert durations.parse(durations.text_of(length), negative=True) == length


@given(st.text("0123456789.+-nsumµμh ", max_size=20))
def test_never_raises(text: str) -> None:
    assert isinstance(durations.nanoseconds(text), int | Malformed)


@pytest.mark.parametrize(
    "text", ["ms" * 90 + "!", "1ms" * 60 + "x", "1m" * 5000, "." * 199], ids=lambda text: text[:6]
)
def test_hostile_text_is_refused_at_once(text: str) -> None:
    """Found in review: text that could be read in many ways took time that doubled with every two letters."""
    assert isinstance(durations.nanoseconds(text), Malformed)

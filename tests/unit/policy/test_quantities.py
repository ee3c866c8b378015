from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import quantities

MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "milli", "value"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("100m", 100, 1, id="milli rounds up to whole"),
        pytest.param("2", 2000, 2, id="plain"),
        pytest.param("1.5", 1500, 2, id="decimal"),
        pytest.param("0.1", 100, 1, id="tenth"),
        pytest.param(".5", 500, 1, id="no leading zero"),
        pytest.param("1.", 1000, 1, id="trailing point"),
        pytest.param("128Mi", 128 * 2**20 * 1000, 128 * 2**20, id="mebi"),
        pytest.param("1.5Gi", 3 * 2**29 * 1000, 3 * 2**29, id="decimal gibi"),
        pytest.param("1k", 10**6, 1000, id="kilo"),
        pytest.param("1M", 10**9, 10**6, id="mega"),
        pytest.param("129e6", 129 * 10**9, 129 * 10**6, id="exponent"),
        pytest.param("129E6", 129 * 10**9, 129 * 10**6, id="capital exponent"),
        pytest.param("1e-3", 1, 1, id="negative exponent"),
        pytest.param("1u", 1, 1, id="micro rounds up"),
        pytest.param("1n", 1, 1, id="nano rounds up"),
        pytest.param("0.1n", 1, 1, id="less than a nano is a nano"),
        pytest.param("-1500m", -1500, -2, id="negative rounds away from zero"),
        pytest.param("+1", 1000, 1, id="plus"),
        pytest.param("007", 7000, 7, id="leading zeros"),
        pytest.param("1E", 0, 10**18, id="exa has no milli"),
        pytest.param("16Ei", -1000, MAX, id="binary capped"),
        pytest.param("10E", 0, 0, id="decimal overflow is zero"),
        pytest.param("+", 0, 0, id="lone sign"),
        pytest.param("m", 0, 0, id="lone suffix"),
        pytest.param("1e4294967297", 10_000, 10, id="exponent wraps at 32 bits"),
        pytest.param("1e-999999999", 1, 1, id="tiny, without computing the power"),
        pytest.param("12345678901234567890e999999999", 0, 0, id="huge, without computing the power"),
        pytest.param("0" * 10_000 + "7", 7000, 7, id="more digits than Python reads at once"),
    ],
)
def test_as_kubernetes_counts(text: str, milli: int, value: int) -> None:
    assert (quantities.milli(text), quantities.value(text)) == (milli, value)


@pytest.mark.parametrize(
    "text",
    ["", " ", "1 ", " 1", "1 Mi", "abc", "1K", "1mi", "1MiB", "1e", "1e+", "1ee3", "1e1.5", "--1", "1-1",
    "1.2.3", "0x1", "1_0", "1,5", "Ei", "Pi", "NaN", "inf", "\uff11", "\u0663m", "1\n",
    "1e99999999999999999999"],
    ids=repr,
)  # fmt: skip
def test_refused(text: str) -> None:
    for read in (quantities.milli, quantities.value):
        with pytest.raises(quantities.InvalidQuantity, match="is not a Kubernetes quantity"):
            read(text)


FACTORS = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "Ki": Fraction(2**10), "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
}  # fmt: skip


@given(
    st.integers(0, 10**6),
    st.none() | st.text("0123456789", min_size=1, max_size=6),
    st.sampled_from(sorted(FACTORS)),
)
def test_in_the_ordinary_range_it_is_exact_and_rounds_up(whole: int, fraction: str | None, suffix: str) -> None:
    number = f"{whole}" if fraction is None else f"{whole}.{fraction}"
    exact = Fraction(number) * FACTORS[suffix]
    assert quantities.value(number + suffix) == ceil(exact)
    assert quantities.milli(number + suffix) == ceil(ceil(exact * 10**9) / Fraction(10**6))


@given(st.text("0123456789.+-eEnumkKMGTPi", max_size=12) | st.text(max_size=8))
def test_answers_or_refuses_and_stays_within_64_bits(text: str) -> None:
    try:
        answers = (quantities.milli(text), quantities.value(text))
    except quantities.InvalidQuantity:
        return
    assert all(-(2**63) <= answer <= MAX for answer in answers)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import documents


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", None),
        ("a: 1", {"a": 1}),
        ("a: 80.0", {"a": 80.0}),
        ("a: 0.00010006654969435563", {"a": 0.00010006654969435563}),
        ("a: [x, true, null, ~]", {"a": ["x", True, None, None]}),
        ("a:", {"a": None}),
        ("a: 22:00", {"a": "22:00"}),
        ("a: on", {"a": "on"}),
        ("a: yes", {"a": "yes"}),
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: 0x1f", {"a": "0x1f"}),
        ("a: .nan", {"a": ".nan"}),
        ("a: nullable", {"a": "nullable"}),
        ("a: '10'", {"a": "10"}),
        ("on: 1", {"on": 1}),
    ],
    ids=repr,
)
def test_plain_values(text: str, plain: documents.Plain) -> None:
    assert documents.read(text) == (plain, ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("a: [1, 2", "line 1, column 9", id="syntax"),
        pytest.param("a: 1\n  b: 2\n", "line 2", id="indentation"),
        pytest.param("a: 1\n---\nb: 2\n", "line 2, column 1 (expected a single document", id="two documents"),
        pytest.param("a: 1\nb: [2,\nc: 3\nd: 4\n", "flow sequence that begins on line 2)", id="where it began"),
        pytest.param("a: 1\nb: 2\na: 3\n", "a: a second value on line 3", id="duplicate"),
        pytest.param("x:\n  a: 1\n  a: 1\n", "x.a: a second value on line 3", id="nested duplicate"),
        pytest.param("a: &x 1\nb: *x\n", "line 1, column 4: an anchor or alias", id="alias"),
        pytest.param("a: !!python/object:os.system x", "the tag python/object:os.system", id="python tag"),
        pytest.param("a: !secret x", "the tag !secret", id="own tag"),
        pytest.param("? [1, 2]\n: x\n", "keys that are words", id="key that is a list"),
        pytest.param("[" * 50 + "]" * 50, "this nesting", id="nesting"),
        pytest.param("a: " + "x" * documents.LIMIT_BYTES, "at most 262144 bytes", id="size"),
        pytest.param("a: \x00", "UTF-8", id="control character"),
        pytest.param("a: 1.0e999", "a smaller number", id="infinite"),
    ],
)
def test_refused(text: str, told: str) -> None:
    _, mistakes = documents.read(text)
    assert len(mistakes) == 1
    assert told in str(mistakes[0])


def test_aliases_that_would_unfold_without_end_are_refused_at_once() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert "alias" in str(documents.read(bomb)[1][0])


SCALARS = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.floats(-1e60, 1e60) | st.text(max_size=12)
TRICKY = st.sampled_from(
    ("1.5e3", "08", "+1", "1e3", "no", "~", "", "22:00", "2026-01-01", "=", "<<", "0.", "-", "null")
)
PLAIN: st.SearchStrategy[documents.Plain] = st.recursive(
    SCALARS | TRICKY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TRICKY | st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_written_text_reads_back(plain: documents.Plain) -> None:
    assert documents.read(documents.write(plain)) == (plain, ())


@given(st.text(max_size=60) | st.text("ab:-[]{}&*!'\"|> \n\t#%@,?0.", max_size=40))
def test_never_raises(text: str) -> None:
    _, mistakes = documents.read(text)
    assert all(str(mistake) for mistake in mistakes)

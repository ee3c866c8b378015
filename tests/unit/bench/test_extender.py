"""The report of the extender's benchmark, and the questions it measures."""

from bench.extender.__main__ import Figures, report


def test_median_and_range() -> None:
    made = Figures(pods_per_second={"dead": [30.0, 10.0, 20.0]}, percent_on_spot={"by score, weight 1": [55.5]})
    lines = report(made).splitlines()
    assert "| dead | 20 | 10 to 30 |" in lines
    assert "| by score, weight 1 | 55.5 | 55.5 to 55.5 |" in lines

"""The benchmark runs and forms its ratios; how fast this machine is today is not asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import decode, pods


def test_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "figures.json"
    assert decode.main(["--smoke", "--json", str(report)]) == 0
    figures = json.loads(report.read_text())
    for name in ("times faster", "times faster, gc off", "times smaller", "microseconds per event"):
        assert 0 < figures[name]["least"] <= figures[name]["middle"] <= figures[name]["most"]
    assert figures["fleet pods"]["middle"] == 1000
    assert figures["fleet templates"]["middle"] == 20
    printed = capsys.readouterr().out
    assert all(f"target {target.figure}" in printed for target in decode.TARGETS)


@pytest.mark.parametrize(
    ("target", "value", "met"),
    [
        pytest.param(decode.Target("x", 20, at_least=True), 20.0, True, id="reached"),
        pytest.param(decode.Target("x", 20, at_least=True), 19.9, False, id="not-reached"),
        pytest.param(decode.Target("x", 200), 199.0, True, id="below"),
        pytest.param(decode.Target("x", 200), 200.0, False, id="not-below"),
    ],
)
def test_targets(target: decode.Target, value: float, met: bool) -> None:
    assert target.met(decode.spread([value])) is met


def test_spread() -> None:
    assert decode.spread([3.0, 1.0, 2.0]) == decode.Spread(1.0, 2.0, 3.0)


def test_pods_are_of_the_size_of_real_ones() -> None:
    body = pods.body(200, templates=4)
    assert 5_500 < len(body) / 200 < 6_500
    assert b"".join(pods.pages(200, templates=4, page_size=200)) == body

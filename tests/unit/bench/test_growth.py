"""Two small sizes are told, known and planned for; how fast this machine is today is not asserted."""

import json
from pathlib import Path

import pytest

from bench import growth


def test_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "figures.json"
    assert growth.main(["--smoke", "--json", str(report)]) == 0
    found = json.loads(report.read_text())
    assert {nodes: it["pods"] for nodes, it in found["sizes"].items()} == {"20": 600, "60": 1800}
    assert all(figures[name] > 0 for figures in found["sizes"].values() for name in growth.COSTS)
    assert set(found["exponents"]) == set(found["filled exponents"]) == set(growth.COSTS)
    assert {int(pods): it["pods"] for pods, it in found["filled"].items()} == {200: 200, 600: 600}
    assert "| 60 | 1800 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        pytest.param((2.0, 200.0), 1.0, id="in proportion"),
        pytest.param((2.0, 20.0), 0.5, id="with the root"),
        pytest.param((2.0, 2.0), 0.0, id="not at all"),
    ],
)
def test_exponent(costs: tuple[float, float], expected: float) -> None:
    found = {nodes: {"pods": nodes, "x": cost} for nodes, cost in zip((10.0, 1000.0), costs, strict=True)}
    assert growth.exponent({int(it): value for it, value in found.items()}, "x") == pytest.approx(expected)

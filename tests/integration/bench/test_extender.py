"""The benchmark of the extender runs; its parts are shown one by one in tests/integration/extender."""

import json
from pathlib import Path

import pytest

from bench.extender import __main__ as command


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--smoke", "--json", str(tmp_path / "figures.json")]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert set(figures["pods_per_second"]) == set(command.VARIANTS)
    assert figures["percent_on_target"]["by filter, weight 1"] == [100.0]
    assert figures["percent_on_spot"]["by filter, weight 1"] == [100.0]
    assert "| by filter, weight 1 | 100 |" in capsys.readouterr().out

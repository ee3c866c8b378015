"""The benchmark of planning runs on a real apiserver; how fast this machine is today is not asserted."""

import json
from pathlib import Path

import pytest

from bench import plan
from bench.seed import Sizes
from testbed import binaries


def test_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str], control_plane_binaries: binaries.Binaries) -> None:
    report = tmp_path / "figures.json"
    assert plan.main(["--smoke", "--json", str(report)]) == 0
    ((title, figures),) = json.loads(report.read_text()).items()
    assert title == "20 nodes, 200 pods"
    assert (figures["nodes"], figures["pods"]) == (20, 200), "what was copied into etcd is what the watches see"
    assert 0 < figures["event to plan ms"] <= figures["slowest event ms"]
    assert 0 < figures["MiB resident"] <= figures["MiB peak"]
    assert title in capsys.readouterr().out


VERDICTS = {
    "met": (plan.SMALL, {"MiB resident": 119.0, "times faster": 20.0}, ["met", "met"]),
    "missed": (plan.SMALL, {"MiB resident": 121.0, "event to plan ms": 251.0}, ["missed", "missed"]),
    "a limit of its own": (plan.LARGE, {"MiB resident": 249.0}, ["met"]),
    "no limit for this size": (Sizes(1, 1), {"MiB resident": 1.0}, []),
}


@pytest.mark.parametrize(("sizes", "figures", "expected"), VERDICTS.values(), ids=VERDICTS.keys())
def test_verdicts(sizes: Sizes, figures: dict[str, float], expected: list[str]) -> None:
    assert sorted(line.rpartition(": ")[2] for line in plan.verdicts(sizes, figures)) == expected

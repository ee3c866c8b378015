"""Moves are good moves: a small scene is played on a real control plane with the product from its manifests."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.quality import __main__ as quality
from bench.quality import scene
from bench.quality.__main__ import FULL, GUIDED, SMOKE, Result
from testbed import binaries


def test_a_full_node_is_relieved_by_the_fewest_moves_and_nothing_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], control_plane_binaries: binaries.Binaries
) -> None:
    report = tmp_path / "results.json"
    quality.main(["--smoke", "--json", str(report)])
    (found,) = json.loads(report.read_text())
    assert found["highest_before"] >= 90
    assert found["highest_after"] <= found["line"]
    assert found["evictions"] <= 1.1 * found["fewest"]
    assert (found["bounced"], found["moved_again"], found["hit_again"], found["too_many_down"]) == (0, 0, 0, 0)
    assert found["evictions"] - found["on_target"] <= 1, found["beside"]
    assert "| on target |" in capsys.readouterr().out


@pytest.mark.parametrize("seed", quality.SEEDS)
@pytest.mark.parametrize("sizes", [pytest.param(FULL, id="full"), pytest.param(SMOKE, id="smoke")])
def test_scenes_are_what_they_are_said_to_be(sizes: scene.Sizes, seed: int) -> None:
    held: dict[str, dict[str, tuple[int, int]]] = {name: {} for name in scene.names(sizes)}
    made = scene.make(sizes, seed)
    for workload in made.workloads:
        for number, node in enumerate(workload.nodes):
            held[node][f"{workload.name}-{number}"] = (workload.cpu, workload.memory)
    loads = {name: scene.load(pods) for name, pods in held.items()}
    assert len(made.hot) == sizes.hot
    assert all(loads[name] >= scene.FULL_PERCENT for name in made.hot)
    assert all(load <= scene.COLD_PERCENT for name, load in loads.items() if name not in made.hot)
    assert made.pods >= 0.9 * sizes.pods
    assert len({workload.cpu for workload in made.workloads}) > 3
    assert scene.make(sizes, seed) == made


def test_the_bound_is_what_is_known() -> None:
    """The mean is 20 %, the node at 80 % goes down to 25 %: three of its pods of 20 % have to leave."""
    full = {f"p{number}": (1600, 100) for number in range(4)}
    held: dict[str, scene.Holding] = {"a": full, "b": {}, "c": {}, "d": {}}
    assert scene.fewest(held) == 3
    assert scene.fewest(dict.fromkeys(held, full)) == 0


GOOD = Result(GUIDED, 1, 300, 100, 100, 100, 0, 0, 0, 0, 97.0, 50.0, 51.0, 20.0)
VERDICTS: dict[str, tuple[Mapping[str, Any], list[str]]] = {
    "all kept": ({}, []),
    "one in a hundred beside": ({"on_target": 99}, []),
    "two in a hundred beside": ({"on_target": 98}, ["99 percent on target"]),
    "still too full": ({"highest_after": 51.1}, ["every cluster is balanced"]),
    "back again": ({"bounced": 1}, ["nothing goes back onto a full node"]),
    "too many moves": ({"evictions": 111, "on_target": 111}, ["at most 1.1 times the fewest moves"]),
    "twice": ({"moved_again": 1}, ["nothing is moved twice"]),
    "too many down": ({"too_many_down": 1}, ["never more down than allowed"]),
}


@pytest.mark.parametrize(("change", "expected"), VERDICTS.values(), ids=VERDICTS.keys())
def test_promises(change: Mapping[str, Any], expected: list[str]) -> None:
    assert quality.misses([replace(GOOD, **change)]) == expected

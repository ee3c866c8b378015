"""The simulated cluster is told whole, in order and at its rate, and the listener sees all of it."""

import json
from collections import Counter
from pathlib import Path

import pytest

from bench import fleet
from bench.scale import __main__ as scale
from bench.scale import rates
from bench.scale.story import PODS, PROBES_PER_SECOND, Living, Story

NODES, PODS_IN_ALL = 20, 600


def story() -> Story:
    placed = [Living(number % 12, number, fleet.node_name(number % NODES)) for number in range(PODS_IN_ALL)]
    return Story(NODES, placed, rates.Rates(node_status=2, replaced=1, flaps=1, rollout=20))


def test_the_largest_cluster_makes_as_many_events_as_were_derived() -> None:
    found = rates.of(5_000, 150_000)
    assert (round(found.node_status), found.replaced, found.rollout) == (17, 20, 250)
    assert 500 < found.events < 600
    assert sum(kind != PODS for _, kind, _ in story().lines(30)) > 30 * 2, "others change beside pods"


def test_lines_are_in_the_order_of_time_and_of_versions() -> None:
    lines = list(story().lines(30))
    times = [at for at, _, _ in lines]
    assert times == sorted(times)
    versions = [int(json.loads(line)["object"]["metadata"]["resourceVersion"]) for _, _, line in lines]
    assert versions == list(range(2, len(lines) + 2))


def test_every_pod_that_goes_makes_way_for_one_on_the_same_node() -> None:
    told = [json.loads(line) for _, kind, line in story().lines(30) if kind == PODS]
    assert Counter(it["type"] for it in told)["ADDED"] == Counter(it["type"] for it in told)["DELETED"] >= 40
    probes = [it for it in told if it["object"]["metadata"]["namespace"] == "bench"]
    assert len(probes) == 30 * PROBES_PER_SECOND
    gone = Counter(it["object"]["spec"]["nodeName"] for it in told if it["type"] == "DELETED")
    last = {it["object"]["metadata"]["name"]: it["object"] for it in told if it["type"] != "DELETED"}
    new = {it["object"]["metadata"]["name"] for it in told if it["type"] == "ADDED"}
    assert Counter(last[name]["spec"]["nodeName"] for name in new) == gone


def test_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "figures.json"
    assert scale.main(["--smoke", "--json", str(report)]) == 0
    found = json.loads(report.read_text())
    assert found["probes"] >= 3 * PROBES_PER_SECOND - 1, "every change of the probe was seen"
    assert 0 < found["lag p50 ms"] <= found["lag p99 ms"] <= found["lag p100 ms"]
    assert found["moves"] == 0
    assert found["flood events per second"] > 0
    assert "target lag p99" in capsys.readouterr().out

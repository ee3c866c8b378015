"""One report of all benchmarks: rows and verdicts from their figures, plots, and failures that are named."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import __main__ as command
from bench.report import page, plots, rows, svg
from bench.report.machine import Machine
from bench.report.page import Run

ROOT = Path(__file__).parents[3]


def a_move(variant: str, evictions: int, *, bounced: int = 0) -> dict[str, Any]:
    fixed = {
        "fewest": 100,
        "moved_again": 0,
        "hit_again": 0,
        "highest_after": 50.0,
        "line": 51.0,
        "seconds": 20.0,
        "lost": 7.0,
    }
    return {"variant": variant, "evictions": evictions, "bounced": bounced, **fixed}


def spread(middle: float) -> dict[str, float]:
    return {"least": middle, "middle": middle, "most": middle}


PLAN = {
    "steady plan ms": 10.0,
    "MiB resident": 100.0,
    "sync over LIST": 1.2,
    "list seconds": 10.0,
    "sync seconds": 12.0,
    "event to plan ms": 90.0,
    "nodes": 5000,
    "pods": 150_000,
}
PEER = {"peer cycle ms": 250.0, "peer MiB resident": 900.0, "times faster": 25.0, "times smaller": 9.0}
SCALE = {"nodes": 5000, "pods": 150_000, "told events per second": 340.0, "seconds": 600.0, "lag p99 ms": 251.0}
LOST = {"first_eviction": 0.2, "all_ready": 8.0}
CREATED = {"no webhook": 200.0, "lean Go": 100.0, "spotshift": 110.0}
GROWTH = {"steady plan ms": 1.0, "event to plan ms": 2.0, "MiB resident": 50.0}
FIGURES: dict[str, Any] = {
    "decode": {
        "times faster": spread(60),
        "our seconds": spread(0.1),
        "official seconds": spread(6.0),
        "times faster, gc off": spread(19),
        "our seconds, gc off": spread(0.1),
        "official seconds, gc off": spread(1.9),
        "times smaller": spread(7.9),
        "our MiB kept": spread(10),
        "official MiB kept": spread(79),
        "microseconds per event": spread(30),
        "fleet MiB resident": spread(150),
        "fleet pods": spread(150_000),
    },
    "plan": {"5000 nodes, 150000 pods": PLAN | PEER},
    "growth": {
        "sizes": {"100": GROWTH | {"pods": 3000}, "5000": GROWTH | {"pods": 150_000}},
        "exponents": dict.fromkeys(GROWTH, 0.4),
        "filled exponents": dict.fromkeys(GROWTH, 0.1),
    },
    "scale": SCALE | {"flood events per second": 9000.0, "plan p50 ms": 3.0},
    "evictions": {"evictions": 300, "evictions per second": 21.0, "in the best second": 30},
    "quality": [a_move("guided", 104), a_move("guided", 111), a_move("sigs descheduler", 1200, bounced=900)],
    "thrash": [
        {"variant": "spotshift", "evictions": 0, "per_hour": 0.0},
        {"variant": "sigs descheduler", "evictions": 600, "per_hour": 7200.0},
    ],
    "interruption": [
        {"variant": "spotshift", "lost": 90.0, **LOST},
        {"variant": "nothing", "lost": 900.0, "first_eviction": None, "all_ready": 140.0},
    ],
    "webhook": {
        "compared": dict.fromkeys(
            (
                "requests/s beside lean Go",
                "requests/s beside lean Go, every pod new",
                "requests/s beside controller-runtime",
                "p99 beside lean Go",
                "p99 ms at 500 requests/s",
                "added p99 beside lean Go",
                "added p99 beside controller-runtime",
            ),
            spread(1.1),
        ),
        "rounds": [{"floods": {"spotshift, every pod new, 16 connections": {"requests/s": 2000.0}}}],
    },
    "throughput": {"rounds": [CREATED], "ours over": {"no webhook": spread(0.55), "lean Go": spread(1.1)}},
    "extender": {"pods_per_second": {"no extender": [200.0], "asked by names": [150.0]}},
    "stopping": {"spotshift-descheduler": [0.5, 1.9], "spotshift-certs": [0.3, 2.0]},
}
MISSED = {
    "decoding pods: times faster, gc off",
    "decoding pods: times smaller",
    "5000 nodes, 150000 pods: memory",
    "5000 nodes, 150000 pods, 340 events/s, 10 min: lag p99",
    "moves over the fewest after which nobody is too full, median",
    "webhook: p99",
    "SIGTERM to exit, nobody connected: spotshift-certs, worst",
}


def written(folder: Path, **changed: Any) -> str:
    for name, figures in {**FIGURES, **changed}.items():
        (folder / f"{name}.json").write_text(figures if isinstance(figures, str) else json.dumps(figures))
    machine = Machine(
        "2026-01-02T03:04:05Z", "a processor", 2, 16, "6.1", 0.1, "3.11.7", "abc", {"kubernetes": "1.36"}
    )
    runs = {name: Run(f"python -m bench.{name}", 0, 60.0, machine) for name in FIGURES}
    page.write(folder, runs, command="python -m bench")
    return (folder / page.PAGE).read_text()


def test_every_benchmark_has_rows_and_a_module() -> None:
    assert set(rows.BY_NAME) == set(FIGURES) == {it.name for it in command.BENCHMARKS}
    for name in rows.BY_NAME:
        module = ROOT / "bench" / name
        assert module.with_suffix(".py").exists() or (module / "__main__.py").exists()


def test_verdicts() -> None:
    every = [row for name, figures in FIGURES.items() for row in rows.BY_NAME[name](figures)]
    assert {row.figure for row in every if row.met is False} == MISSED
    assert sum(row.met is True for row in every) == 18


def test_the_page_tells_figures_verdicts_and_where_they_come_from(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert "18 of 25 targets met." in text
    assert (
        "| thrash | evictions per hour when nothing fits on spot | 0 | sigs descheduler 7200 |  | 0 | met |" in text
    )
    assert "| scale | `python -m bench.scale` | 2026-01-02T03:04:05Z | 60 s | 0.1 | abc |" in text
    assert text.count("Machine: 2 cores (a processor), 16 GiB, Linux 6.1. Python 3.11.7, kubernetes 1.36.") == 1
    for plot in tmp_path.glob("*.svg"):
        assert f"({plot.name})" in text
        ElementTree.fromstring(plot.read_text())  # noqa: S314 - we wrote it
    assert {path.stem.partition("-")[0] for path in tmp_path.glob("*.svg")} == set(plots.BY_NAME)


def test_figures_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    text = written(tmp_path, thrash="{", growth={"sizes": {}})
    assert "**growth** left figures that cannot be read." in text
    assert "**thrash** left figures that cannot be read." in text
    assert "| thrash |" not in text


def test_names_in_plots_are_not_taken_for_markup() -> None:
    drawn = svg.bars("<b>", {"<script>": 1.0}, "&") + svg.lines("x", {"<i>": [(1, 1), (10, 5)]}, across="", up="")
    assert "<script>" not in drawn
    assert "<i>" not in drawn
    assert "&lt;script&gt;" in drawn


def test_a_benchmark_that_fails_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scale.json").write_text(json.dumps(FIGURES["scale"]))
    broken = command.Benchmark("scale", large=("--nonsense",))
    monkeypatch.setattr(command, "BENCHMARKS", (broken, command.Benchmark("growth")))
    assert command.main(["--large", "--only", "scale", "--out", str(tmp_path)]) == 1
    assert command.main(["--smoke", "--only", "growth", "--out", str(tmp_path)]) == 0
    text = (tmp_path / page.PAGE).read_text()
    assert "**scale ended with 2** (`python -m bench.scale --nonsense`)" in text
    assert "unrecognized arguments: --nonsense" in text
    assert "| scale |" not in text, "figures of an earlier run are not shown as this one's"
    assert "| growth | growth by nodes: MiB resident |" in text
    assert "failed: scale" in capsys.readouterr().out


def test_small_sizes_do_not_get_into_the_results() -> None:
    with pytest.raises(SystemExit):
        command.main(["--smoke"])


def test_who_was_stopped_before_it_was_balanced_has_no_time_until_then() -> None:
    theirs = [{**a_move("sigs descheduler", 500), "highest_after": 60.0}, a_move("sigs descheduler", 500)]
    for played, told in ((theirs, "sigs descheduler 20"), (theirs[:1], "sigs descheduler not within 20")):
        found = {row.figure: row for row in rows.quality([a_move("guided", 100), *played])}
        assert found["seconds until balanced, median"].peer == told

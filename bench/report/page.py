"""The page: what was met and missed, the table, the plots, and where each figure comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.report import plots, rows
from bench.report.machine import Machine
from bench.report.rows import Row

RUNS, PAGE = "runs.json", "README.md"
WORDS = {True: "met", False: "**missed**", None: ""}
NOT_SHOWN = """\
## What these figures do not show

Everything ran on one machine: apiserver, etcd and both contenders share its cores, so absolute figures are those of
this machine and only ratios within one benchmark travel. Nodes and pods are simulated (kwok): images are not pulled,
containers do not start, and nothing serves traffic. [docs/not-shown.md](../../docs/not-shown.md) lists what no run
here can show.
"""


class Run(msgspec.Struct, frozen=True):
    """How one benchmark was last run."""

    command: str
    code: int
    seconds: float
    machine: Machine
    told: str = ""
    """Its last lines, if it failed."""


Runs = dict[str, Run]


def read(folder: Path) -> Runs:
    """What is known of earlier runs."""
    path = folder / RUNS
    return msgspec.json.decode(path.read_bytes(), type=Runs) if path.exists() else {}


def write(folder: Path, runs: Mapping[str, Run], *, command: str) -> list[str]:
    """Runs, page and plots; the benchmarks of which nothing could be made."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUNS).write_bytes(msgspec.json.format(msgspec.json.encode(dict(runs))))
    found, broken = _figures(folder)
    drawn = [
        plot for name, figures in found.items() if name in plots.BY_NAME for plot in plots.BY_NAME[name](figures)
    ]
    for name, _, text in drawn:
        (folder / f"{name}.svg").write_text(text)
    table = {name: list(rows.BY_NAME[name](figures)) for name, figures in found.items()}
    shown = [(name, title) for name, title, _ in drawn]
    (folder / PAGE).write_text("\n".join(_page(table, shown, runs, broken, command)) + "\n")
    return broken


def _figures(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """By benchmark; and those whose figures cannot be read."""
    found: dict[str, Any] = {}
    broken = []
    for name in rows.BY_NAME:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        try:
            figures = msgspec.json.decode(path.read_bytes())
            list(rows.BY_NAME[name](figures))
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, IndexError):
            broken.append(name)
        else:
            found[name] = figures
    return found, broken


def _page(
    table: Mapping[str, Sequence[Row]],
    shown: Sequence[tuple[str, str]],
    runs: Mapping[str, Run],
    broken: Sequence[str],
    command: str,
) -> Iterator[str]:
    every = [row for found in table.values() for row in found]
    judged = [row for row in every if row.met is not None]
    yield "# Benchmarks\n"
    yield f"Last written by `{command}`; each has its command below, and its figures in the JSON file of its name.\n"
    yield f"{sum(row.met is True for row in judged)} of {len(judged)} targets met.\n"
    yield from _failures(table, runs, broken)
    yield "| | figure | ours | peer | ratio | target | |"
    yield "|---|---|---|---|---|---|---|"
    for name, found in table.items():
        for row in found:
            cells = (row.figure, row.ours, row.peer, row.ratio, row.target, WORDS[row.met])
            yield f"| {name} | {' | '.join(cells)} |"
    yield "\nRatios are ours to the peer's, or how many times better, as the target says; median over the rounds.\n"
    for file, title in shown:
        yield f"![{title}]({file}.svg)\n"
    yield from _origins(table, runs)
    yield NOT_SHOWN.rstrip()


def _failures(table: Mapping[str, object], runs: Mapping[str, Run], broken: Sequence[str]) -> Iterator[str]:
    for name, run in runs.items():
        if run.code:
            yield f"**{name} ended with {run.code}** (`{run.command}`):\n\n```\n{run.told}\n```\n"
    for name in broken:
        yield f"**{name}** left figures that cannot be read.\n"
    missing = [name for name in rows.BY_NAME if name not in table and name not in broken]
    if missing:
        yield f"Not run here: {', '.join(missing)}.\n"


def _origins(table: Mapping[str, object], runs: Mapping[str, Run]) -> Iterator[str]:
    yield "## Where the figures come from\n"
    yield "| | command | when | took | load per core before | commit |"
    yield "|---|---|---|---|---|---|"
    for name in table:
        run = runs.get(name)
        if run is None:
            yield f"| {name} | not recorded | | | | |"
            continue
        machine = run.machine
        cells = (f"`{run.command}`", machine.at, f"{run.seconds:.0f} s", f"{machine.load:g}", machine.commit)
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    for told in dict.fromkeys(_surroundings(run.machine) for run in runs.values()):
        yield f"{told}\n"


def _surroundings(machine: Machine) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    return f"Machine: {machine.hardware}. Python {machine.python}, {versions}."

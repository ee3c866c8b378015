"""How fast and how small: our decoding of pods beside the official client's, on the same bytes.

    python -m bench.decode [--pods 10000] [--fleet 150000] [--repeat 3] [--smoke] [--json FILE]

Every figure comes from a fresh process; seconds are processor time. Ratios are formed run by run and reported as
minimum, median and maximum, because a shared machine is noisy.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from bench import apiserver, pods
from bench.measured import Figures

PODS_PER_TEMPLATE = 50
"""As in 150,000 pods of 3,000 templates."""


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over all runs."""

    least: float
    middle: float
    most: float

    def __str__(self) -> str:
        return f"{self.middle:.4g} ({self.least:.4g} to {self.most:.4g})"


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should reach, judged by its median."""

    figure: str
    limit: float
    at_least: bool = False

    def met(self, spread: Spread) -> bool:
        """Whether it does."""
        return spread.middle >= self.limit if self.at_least else spread.middle < self.limit


TARGETS = (
    Target("times faster", 20, at_least=True),
    Target("times faster, gc off", 20, at_least=True),
    Target("times smaller", 8, at_least=True),
    Target("fleet MiB resident", 200),
    Target("microseconds per event", 40),
)


def spread(values: Sequence[float]) -> Spread:
    """Minimum, median and maximum."""
    return Spread(min(values), median(values), max(values))


def run(name: str, source: object, *options: str) -> Figures:
    """One measurement in a process of its own."""
    command = [sys.executable, "-m", "bench.measured", name, str(source), *options]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return msgspec.json.decode(output, type=Figures)


def compare(count: int, repeat: int, folder: Path) -> dict[str, Spread]:
    """Both decoders on one list."""
    body = folder / "list.json"
    body.write_bytes(pods.body(count, templates=max(1, count // PODS_PER_TEMPLATE)))
    pairs = [(run("official", body), run("ours", body)) for _ in range(repeat)]
    quiet = [(run("official", body, "--no-gc"), run("ours", body, "--no-gc")) for _ in range(repeat)]
    theirs, mine = zip(*pairs, strict=True)
    return {
        "bytes per pod": spread([body.stat().st_size / count]),
        "official seconds": spread([one["seconds"] for one in theirs]),
        "our seconds": spread([one["seconds"] for one in mine]),
        "times faster": _ratio(pairs, "seconds"),
        "times faster, gc off": _ratio(quiet, "seconds"),
        "official seconds, gc off": spread([one["seconds"] for one, _ in quiet]),
        "our seconds, gc off": spread([one["seconds"] for _, one in quiet]),
        "official MiB kept": spread([one["kept_mib"] for one in theirs]),
        "our MiB kept": spread([one["kept_mib"] for one in mine]),
        "times smaller": _ratio(pairs, "kept_mib"),
        "official MiB peak": spread([one["peak_mib"] for one in theirs]),
        "our MiB peak": spread([one["peak_mib"] for one in mine]),
        "official gc pause ms": spread([one["gc_ms"] for one in theirs]),
        "our gc pause ms": spread([one["gc_ms"] for one in mine]),
    }


def _ratio(pairs: Sequence[tuple[Figures, Figures]], figure: str) -> Spread:
    """Theirs over ours, from runs that followed each other."""
    return spread([theirs[figure] / max(ours[figure], 0.001) for theirs, ours in pairs])


def fleet(count: int, repeat: int) -> dict[str, Spread]:
    """A large cluster through the client."""
    with apiserver.running(count, max(1, count // PODS_PER_TEMPLATE)) as server:
        runs = [run("fleet", server) for _ in range(repeat)]
    return {
        "fleet pods": spread([one["pods"] for one in runs]),
        "fleet templates": spread([one["specs"] for one in runs]),
        "fleet MiB before": spread([one["before_mib"] for one in runs]),
        "fleet MiB resident": spread([one["resident_mib"] for one in runs]),
        "fleet MiB peak": spread([one["peak_mib"] for one in runs]),
        "fleet seconds": spread([one["seconds"] for one in runs]),
    }


def events(count: int, repeat: int, folder: Path) -> dict[str, Spread]:
    """Single watch events."""
    listed = msgspec.json.decode(pods.body(count, templates=max(1, count // PODS_PER_TEMPLATE), seed=2))
    lines = folder / "events.jsonl"
    encode = msgspec.json.encode
    lines.write_bytes(b"\n".join(encode({"type": "MODIFIED", "object": pod}) for pod in listed["items"]))
    runs = [run("events", lines) for _ in range(repeat)]
    return {
        "bytes per event": spread([one["bytes"] for one in runs]),
        "microseconds per event": spread([one["microseconds"] for one in runs]),
    }


def measure(*, pods_compared: int, fleet_size: int, repeat: int) -> dict[str, Spread]:
    """Everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            **compare(pods_compared, repeat, folder),
            **events(min(pods_compared, 2000), repeat, folder),
            **fleet(fleet_size, repeat),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say which targets were met."""
    parser = argparse.ArgumentParser(prog="python -m bench.decode", description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="pods both clients decode")
    parser.add_argument("--fleet", type=int, default=150_000, help="pods kept by us alone")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="a small run that shows it works")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args(arguments)
    sizes = (100, 1000, 1) if asked.smoke else (asked.pods, asked.fleet, asked.repeat)
    found = measure(pods_compared=sizes[0], fleet_size=sizes[1], repeat=sizes[2])
    for figure, value in found.items():
        print(f"{figure:32} {value}")
    for target in TARGETS:
        verdict = "met" if target.met(found[target.figure]) else "missed"
        print(f"target {target.figure} {'>=' if target.at_least else '<'} {target.limit:g}: {verdict}")
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

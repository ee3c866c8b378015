"""Our admission webhook beside two in Go, on this machine, in one run.

    python -m bench.webhook [--seconds 5] [--repeat 3] [--smoke] [--json FILE] [--markdown FILE]

Each webhook runs on one core and the load on another, one webhook after the other and that several times. A machine
that does other work shows in the column `starved`; ratios within one round are less disturbed by it than figures.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench.webhook import contenders, creations, load, report, review, usage
from bench.webhook.contenders import OURS, Contender
from bench.webhook.figures import JUDGED_AT, NEW, RATE, Flooded, Round
from testbed import bed, binaries, objects, progress
from testbed.bed import ControlPlane
from testbed.waiting import eventually

RESULTS = Path(__file__).parents[1] / "results"
CONNECTIONS = (1, 4, 16, 64)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say which targets were met."""
    parser = argparse.ArgumentParser(prog="python -m bench.webhook", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="a small run that shows it works")
    parser.add_argument("--json", type=Path, default=RESULTS / "webhook.json", help="where the figures go")
    parser.add_argument("--markdown", type=Path, default=RESULTS / "webhook.md", help="where the tables go")
    asked = parser.parse_args(arguments)
    seconds, repeat, counts = (1, 1, (JUDGED_AT,)) if asked.smoke else (asked.seconds, asked.repeat, CONNECTIONS)
    try:
        load.find_wrk()
    except load.Missing as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        rounds = on_a_bed_of_its_own(Path(name), seconds=seconds, repeat=repeat, counts=counts)
    if not report.covers(rounds):
        print("error: some requests failed, so the figures say nothing", file=sys.stderr)
        return 1
    about = _about(seconds, repeat)
    print(report.markdown(rounds, about))
    for path, content in (
        (asked.json, report.as_json(rounds, about)),
        (asked.markdown, report.markdown(rounds, about)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return 0


def on_a_bed_of_its_own(folder: Path, *, seconds: float, repeat: int, counts: Sequence[int]) -> list[Round]:
    """Start a control plane for it, and take it down again."""
    found = binaries.ensure(os.environ, report=progress.BuildProgress(Console(stderr=True)))
    home = folder / "bed"
    plane = bed.up(home, found, nodes=1, owner=os.getpid())
    try:
        bed.add_nodes(plane.api(), [objects.node("tainted", spot=True, taints=[review.TAINT])])
        return measure(plane, folder, seconds=seconds, repeat=repeat, counts=counts)
    finally:
        bed.down(home)


def measure(plane: ControlPlane, folder: Path, *, seconds: float, repeat: int, counts: Sequence[int]) -> list[Round]:
    """All rounds."""
    first, last = _cores()
    for pid in filter(None, plane.status().values()):
        subprocess.run(["taskset", "-a", "-p", "-c", str(first), str(pid)], check=True, capture_output=True)
    body = folder / "review.json"
    body.write_bytes(review.body("default"))
    with contenders.running(plane, folder, namespace="default", core=last) as running:
        return [
            _round(plane, folder, _turned(running, number), body, seconds=seconds, counts=counts, core=first)
            for number in range(repeat)
        ]


def _round(
    plane: ControlPlane,
    folder: Path,
    running: Sequence[Contender],
    body: Path,
    *,
    seconds: float,
    counts: Sequence[int],
    core: int,
) -> Round:
    found = Round()
    program = contenders.programs() / "load"
    for count in counts:
        for each in running:
            found.floods[each.name, count] = _flood(each, body, count, seconds, core=core)
            if each.name == OURS:
                found.floods[NEW, count] = _flood(each, body, count, seconds, core=core, new=True)
    for each in running:
        options = (f"-rate={RATE}", "-connections=8", f"-seconds={seconds:g}")
        found.paced |= load.turns(program, {each.name: each.url}, body, *options, core=core)
        found.resident[each.name] = usage.resident_mib(each.pid)
    with creations.registered(plane, running) as namespaces:
        for each in running:
            eventually(
                lambda each=each: creations.is_called(plane, namespaces[each.name]),  # type: ignore[misc]
                what=f"a pod changed by {each.name}",
            )
        found.creations |= creations.measure(plane, namespaces, program, folder, seconds=seconds * 4, core=core)
    return found


def _flood(each: Contender, body: Path, count: int, seconds: float, *, core: int, new: bool = False) -> Flooded:
    before = usage.of(each.pid)
    flood = load.flood(each.url, body, connections=count, seconds=seconds, new=new, core=core)
    return Flooded(flood, usage.of(each.pid) - before)


def _turned(running: Sequence[Contender], number: int) -> list[Contender]:
    """Another one begins in each round."""
    at = number % len(running)
    return [*running[at:], *running[:at]]


def _cores() -> tuple[int, int]:
    """One for the load and the control plane, one for the webhook; the same where there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


def _about(seconds: float, repeat: int) -> str:
    size = len(review.body("default"))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}; reviews of "
        f"{size} bytes over TLS, {seconds:g} s each, {repeat} rounds; median (least to most). Load per core: "
        f"{os.getloadavg()[0] / (os.cpu_count() or 1):.1f}."
    )


if __name__ == "__main__":
    sys.exit(main())

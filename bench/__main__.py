"""`python -m bench`: every benchmark, one after the other, and one report of all of them.

Each runs in a process of its own and leaves its figures in a JSON file. With --only the others keep the figures they
had; the report says of each when and with which command it was measured. Ends with 1 if a benchmark failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.report import machine, page
from bench.report.page import Run

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
TOLD_LINES = 15


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A module to be run."""

    name: str
    large: tuple[str, ...] = ()
    """Options for the largest clusters."""
    markdown: bool = False
    """Whether it writes a page of its own, too."""

    def command(self, folder: Path, *, smoke: bool, large: bool) -> list[str]:
        """What to run, without Python."""
        options = ["--smoke"] if smoke else list(self.large if large else ())
        own = [f"--markdown={folder / f'{self.name}.md'}"] if self.markdown else []
        return ["-m", f"bench.{self.name}", *options, f"--json={folder / f'{self.name}.json'}", *own]


BENCHMARKS = (
    # Short ones first: what is broken shows early.
    Benchmark("decode"),
    Benchmark("growth"),
    Benchmark("stopping"),
    Benchmark("throughput"),
    Benchmark("plan", large=("--large",)),
    Benchmark("webhook", markdown=True),
    Benchmark("thrash"),
    Benchmark("evictions"),
    Benchmark("scale"),
    Benchmark("extender"),
    Benchmark("interruption"),
    Benchmark("quality"),
)


def run(benchmark: Benchmark, folder: Path, *, smoke: bool, large: bool) -> Run:
    """Run one, pass on what it says, and remember how it ended."""
    here, began = machine.here(), time.monotonic()
    command = benchmark.command(folder, smoke=smoke, large=large)
    (folder / f"{benchmark.name}.json").unlink(missing_ok=True)  # figures of another run are not this one's
    said: deque[str] = deque(maxlen=TOLD_LINES)
    with subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line.rstrip())
    code = process.returncode
    told = "\n".join(said) if code else ""
    return Run(_shown(command), code, round(time.monotonic() - began, 1), here, told)


def _shown(command: Sequence[str]) -> str:
    """As a reader would type it: where this folder is says nothing."""
    return " ".join(["python", *(it for it in command if not it.startswith(("--json", "--markdown")))])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and report."""
    names = [it.name for it in BENCHMARKS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", choices=names, metavar="NAME", help=f"some of: {', '.join(names)}; or none"
    )
    parser.add_argument("--smoke", action="store_true", help="small sizes that only show that it works; needs --out")
    parser.add_argument("--large", action="store_true", help="also 5,000 nodes with 150,000 pods (12 GB of memory)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the report goes instead of bench/results")
    asked = parser.parse_args(arguments)
    if asked.smoke and asked.out is None:
        parser.error("--smoke: figures of small sizes do not belong into bench/results, use --out DIR")
    folder: Path = asked.out or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    wanted = names if asked.only is None else asked.only
    runs, failed = page.read(folder), []
    flags = [*(["--large"] if asked.large else []), *(["--smoke"] if asked.smoke else [])]
    chosen = [*(["--only", *asked.only] if asked.only is not None else [])]
    command = " ".join(["python -m bench", *chosen, *flags])
    for benchmark in BENCHMARKS:
        if benchmark.name not in wanted:
            continue
        print(f"== {benchmark.name} ==", flush=True)
        runs[benchmark.name] = run(benchmark, folder, smoke=asked.smoke, large=asked.large)
        page.write(folder, runs, command=command)  # after each: the run may be long
        if runs[benchmark.name].code:
            failed.append(benchmark.name)
    failed += page.write(folder, runs, command=command)
    print(f"{folder / page.PAGE}: {len(wanted)} run" + (f", failed: {', '.join(failed)}" if failed else ""))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

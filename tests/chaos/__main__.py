"""The whole product under random misfortune: `python -m tests.chaos --minutes 40 --seed 1`.

The same seed does the same things at the same times. A failure prints the seed and what led to it.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import run, scenes
from tests.chaos.schedule import Author
from tests.chaos.stage import SETTLE_SECONDS
from tests.chaos.timeline import Timeline


def main(arguments: Sequence[str]) -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=float, default=run.ROUND_SECONDS, help="seconds between two quiet points")
    parser.add_argument("--scene", choices=sorted(scenes.SCENES), help="one scene over and over, in place of all")
    parser.add_argument("--settle", type=float, default=SETTLE_SECONDS, help="seconds until all must be at rest")
    parser.add_argument("--schedule", action="store_true", help="only print what would be done")
    parser.add_argument("--log", type=Path, help="a file for the whole timeline")
    parser.add_argument("--logs", type=Path, help="a folder for what every process has said, if something was wrong")
    options = parser.parse_args(arguments)
    if options.schedule:
        author = Author(options.seed)
        for act in [*author.opening(), *author.round(options.round)]:
            print(f"{act.at:8.3f}  {act}")
        return 0
    timeline = Timeline(echo=lambda line: print(line, file=sys.stderr, flush=True))
    with tempfile.TemporaryDirectory() as folder, run.stage(Path(folder) / "bed", timeline) as on:
        on.settle_seconds = options.settle
        if options.scene:
            scenes.play(on, scenes.SCENES[options.scene], seed=options.seed, seconds=options.minutes * 60)
        else:
            run.rounds(on, Author(options.seed), seconds=options.minutes * 60, of=options.round)
        if options.log:
            options.log.write_text("\n".join(map(str, timeline.lines)) + "\n")
        if options.logs and on.violations:
            shutil.copytree(on.product.running.layout.logs, options.logs, dirs_exist_ok=True)
        print(run.summary(on, options.seed))
    return 1 if on.violations else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

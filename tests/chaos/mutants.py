"""Builds that are broken on purpose, each of which has to be caught: `python -m tests.chaos.mutants`.

Each is a copy of the tree with one safeguard taken out. The scene that it is shown to passes on the sound build
first, or being caught would say nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LEFT_OUT: Final = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")
MOST_SECONDS: Final = 900.0
SETTLE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Change:
    """One place in the product; the text must stand there exactly once."""

    file: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A safeguard that is missing."""

    scene: str
    caught_by: str
    """What the violation says: another one would be chance."""
    changes: Sequence[Change]


MUTANTS: Final[dict[str, Mutant]] = {
    "no UID precondition": Mutant(
        "namesake",
        "was evicted, and no PodMigration had announced that for this very pod",
        (
            Change(
                "descheduler/migration/executor.py",
                "uid=action.uid,\n            resource_version=action.version,",
                "uid=None,\n            resource_version=None,",
            ),
        ),
    ),
    "no PDB ledger": Mutant(
        "crowd",
        "moves stand at it",
        (
            Change(
                "descheduler/budgets.py",
                "self._booked[key] = self._booked.get(key, 0) + 1",
                "self._booked[key] = 0",
            ),
        ),
    ),
    "no roll-back": Mutant(
        "called-off",
        "replicas, its user wants",
        (
            Change(
                "descheduler/migration/surge_back.py",
                "    target = turn.target\n    unmarked = _unmarked(turn)",
                '    return Ending(str(turn.intent["ending"]), str(turn.intent["why"]))\n'
                "    target = turn.target\n    unmarked = _unmarked(turn)",
            ),
        ),
    ),
    "no intent write": Mutant(
        "unannounced",
        "was evicted, and no PodMigration had announced that for this very pod",
        (
            Change(
                "descheduler/migration/machine.py",
                'return Write({"step": "Evict", "holder": world.holder, "intent": _to_evict(source, world, now)})',
                "return Evict(source.metadata.name, source.metadata.uid, source.metadata.resource_version)",
            ),
            Change("descheduler/migration/machine.py", "    Done,\n    MarkW", "    Done,\n    Evict,\n    MarkW"),
        ),
    ),
}


class DoesNotApply(Exception):
    """The product has changed, so that a mutant is not what it says any more."""


def apply(mutant: Mutant, tree: Path) -> None:
    """Break the tree."""
    for change in mutant.changes:
        path = tree / change.file
        text = path.read_text()
        if text.count(change.before) != 1:
            raise DoesNotApply(f"{change.file} holds {text.count(change.before)} times: {change.before!r}")
        path.write_text(text.replace(change.before, change.after))


def copied(target: Path) -> Path:
    """The tree as it is."""
    shutil.copytree(ROOT, target, ignore=LEFT_OUT)
    return target


def shown(tree: Path, scene: str, *, seed: int, minutes: float) -> subprocess.CompletedProcess[str]:
    """The scene, played on that tree."""
    command = [sys.executable, "-m", "tests.chaos", "--scene", scene, "--seed", str(seed), "--minutes", str(minutes)]
    return subprocess.run(
        [*command, "--settle", str(SETTLE_SECONDS)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
        timeout=MOST_SECONDS,
    )


def verdict(done: subprocess.CompletedProcess[str]) -> str:
    """The first violation; empty if there was none. Anything else that ended the run is not a verdict, nor is a
    mutant that fails by itself: nobody had to notice what it did.
    """
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode == 1 and last.startswith("VIOLATION") and "INTERNAL_ERROR" not in last:
        return last
    if done.returncode == 0:
        return ""
    raise RuntimeError(f"the run ended with {done.returncode}: {last or done.stderr[-3000:]}")


def main(arguments: Sequence[str]) -> int:
    """Every mutant, or those named."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="MUTANT", help=f"of {', '.join(MUTANTS)}; all if none is named")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=4.0, help="at most so long for each mutant")
    options = parser.parse_args(arguments)
    missed = 0
    for name in options.names or MUTANTS:
        mutant, began = MUTANTS[name], time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            sound = copied(Path(folder) / "sound")
            before = verdict(shown(sound, mutant.scene, seed=options.seed, minutes=0.0))
            broken = copied(Path(folder) / "broken")
            apply(mutant, broken)
            after = verdict(shown(broken, mutant.scene, seed=options.seed, minutes=options.minutes))
        caught = mutant.caught_by in after and not before
        missed += not caught
        told = f"{name}: {'caught' if caught else 'NOT CAUGHT'} after {time.monotonic() - began:.0f} s"
        sys.stdout.write(f"{told}; sound build: {before or 'well'}; broken build: {after or 'well'}\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

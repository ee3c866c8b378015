"""Each mutant still changes the place that it was made for, and leaves a module that can be run."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import mutants, scenes


@pytest.mark.parametrize("mutant", mutants.MUTANTS.values(), ids=mutants.MUTANTS.keys())
def test_a_mutant_applies_once(mutant: mutants.Mutant, tmp_path: Path) -> None:
    assert mutant.scene in scenes.SCENES
    for change in mutant.changes:
        (tmp_path / change.file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(mutants.ROOT / change.file, tmp_path / change.file)
    mutants.apply(mutant, tmp_path)
    for change in mutant.changes:
        ast.parse((tmp_path / change.file).read_text())
    unknown = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821", str(tmp_path)]
    done = subprocess.run(unknown, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    with pytest.raises(mutants.DoesNotApply):
        mutants.apply(mutants.Mutant("", "", (mutants.Change(mutant.changes[0].file, "not there", ""),)), tmp_path)


def test_a_build_that_fails_by_itself_is_not_caught() -> None:
    said = 'VIOLATION (seed 1): {"level":"error","event":"INTERNAL_ERROR","error":"NameError"}'
    with pytest.raises(RuntimeError, match="NameError"):
        mutants.verdict(subprocess.CompletedProcess([], 1, f"acts 3\n{said}\n", ""))

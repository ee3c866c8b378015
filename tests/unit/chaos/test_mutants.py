"""Each mutant still changes the place that it was made for, and leaves a module that can be read."""

import ast
import shutil
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
    with pytest.raises(mutants.DoesNotApply):
        mutants.apply(mutants.Mutant("", (mutants.Change(mutant.changes[0].file, "not there", ""),)), tmp_path)

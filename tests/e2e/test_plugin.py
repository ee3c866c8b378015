"""Both ways in which `kubectl spotshift` gets onto a PATH."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ("kubectl-spotshift", "kubectl_complete-spotshift")


def run(program: Path, *words: str, **environ: str) -> str:
    env = {**os.environ, **environ}
    done = subprocess.run([str(program), *words], cwd="/", env=env, capture_output=True, text=True, check=True)
    return done.stdout


def both(folder: Path, **environ: str) -> None:
    plugin, complete = (folder / name for name in PROGRAMS)
    assert "kubectl spotshift maintenance start" in run(plugin, "--help", **environ)
    assert run(complete, "mainten", **environ).splitlines()[0].startswith("maintenance\t")


def test_pip_install(tmp_path: Path) -> None:
    """From a copy: building leaves its traces beside the sources."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for name in ("pyproject.toml", "requirements.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in ROOT.glob("*/__init__.py"):
        made = source / package.parent.name
        shutil.copytree(package.parent, made, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, "--target", str(target), str(source)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    both(target / "bin", PYTHONPATH=str(target))
    (found,) = Distribution.discover(name="spotshift", path=[str(target)])
    wanted = [line for line in (ROOT / "requirements.in").read_text().splitlines() if not line.startswith("#")]
    assert sorted(found.requires or ()) == sorted(wanted)
    assert not (target / "testbed").exists(), "what only tests need stays here"


def test_make_plugin(tmp_path: Path) -> None:
    command = ["make", "-o", ".venv/.ready", "plugin", f"BIN={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"put {tmp_path} on your PATH" in done.stdout
    both(tmp_path)

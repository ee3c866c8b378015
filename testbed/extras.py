"""Programs that only some tests need, and that are therefore fetched only for them: helm, promtool and prometheus.

One on PATH is taken if it is of a version that will do. Else helm is built from the pinned module in
`extras_module/`, which has the same libraries in the same versions as the control plane, so that little is left to
compile; the other two are taken from the Debian archive.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from testbed import binaries, debian, pins

MODULE = pins.MODULE / "extras_module"
VERSION_ARGS = {"helm": ("version", "--short"), "promtool": ("--version",), "prometheus": ("--version",)}
ACCEPTED = {"helm": r"\bv3\.", "promtool": r"version [23]\.", "prometheus": r"version [23]\."}
"""What a program on PATH must say of itself. The syntax of rules and their tests is the same in both majors."""


def find(name: str, environ: Mapping[str, str], *, tell: Callable[[str], None] = lambda _: None) -> Path:
    """The program of this name; building helm the first time takes a minute."""
    on_path = shutil.which(name, path=environ.get("PATH", ""))
    if on_path and re.search(ACCEPTED[name], _printed(on_path, name)):
        return Path(on_path)
    if name != "helm":
        return debian.unpacked(["prometheus"], environ) / "usr" / "bin" / name
    return binaries.built_module(MODULE, environ, packages=("tool",), tell=tell) / name


def _printed(path: str, name: str) -> str:
    asked = subprocess.run([path, *VERSION_ARGS[name]], capture_output=True, text=True, check=False)
    return asked.stdout + asked.stderr

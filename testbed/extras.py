"""Programs that only some tests need, and that are therefore built only for them: helm and promtool.

One on PATH is taken if it is of the same major version; else it is built from the pinned module in `extras_module/`.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from testbed import binaries, pins

MODULE = pins.MODULE / "extras_module"
TAGS = "remove_all_sd"
"""Without the clients of all clouds: promtool only checks rules here."""
VERSION_ARGS = {"helm": ("version", "--short"), "promtool": ("--version",)}
ACCEPTED = {"helm": r"\bv3\.", "promtool": r"version [23]\."}
"""What a program on PATH must say of itself. The syntax of rules and their tests is the same in both majors."""


def find(name: str, environ: Mapping[str, str], *, tell: Callable[[str], None] = lambda _: None) -> Path:
    """The program of this name; building it the first time takes minutes."""
    on_path = shutil.which(name, path=environ.get("PATH", ""))
    if on_path and re.search(ACCEPTED[name], _printed(on_path, name)):
        return Path(on_path)
    return binaries.built_module(MODULE, environ, packages=("tool",), tags=TAGS, tell=tell) / name


def _printed(path: str, name: str) -> str:
    asked = subprocess.run([path, *VERSION_ARGS[name]], capture_output=True, text=True, check=False)
    return asked.stdout + asked.stderr

"""bash and zsh with the plugin on their PATH, in a terminal, with nothing of their user's own configuration."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.integration.console import terminal
from tests.integration.console.terminal import ROOT, Window

PROMPT: Final = "ready> "
PACKAGES: Final = ("zsh", "zsh-common")


def zsh() -> tuple[Path, dict[str, str]]:
    """The one on the PATH; else the one of the Debian archive, unpacked into the cache and not installed."""
    found = shutil.which("zsh")
    if found:
        return Path(found), {}
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spotshift" / "zsh"
    if not (base / "bin" / "zsh").exists():
        _unpack(base)
    modules = next((base / "usr" / "lib").glob("*/zsh/*"))
    functions = ":".join(str(path) for path in sorted((base / "usr" / "share" / "zsh" / "functions").rglob("*/")))
    return base / "bin" / "zsh", {"SPOTSHIFT_ZSH_MODULES": str(modules), "FPATH": functions}


def _unpack(base: Path) -> None:
    fresh = base.with_name(f"zsh.{os.getpid()}")
    fresh.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["apt-get", "download", *PACKAGES], cwd=fresh, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"zsh is needed to test its completion: install the package zsh\n{done.stderr}"
    for package in fresh.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(fresh)], check=True)
        package.unlink()
    if not base.exists():
        fresh.rename(base)


def launchers(folder: Path) -> Path:
    """Both programs of the plugin, as an installation makes them."""
    folder.mkdir(exist_ok=True)
    for name, more in (("kubectl-spotshift", ""), ("kubectl_complete-spotshift", " __complete")):
        path = folder / name
        path.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m console{more} "$@"\n')
        path.chmod(0o755)
    return folder


@contextmanager
def shell(name: str, kubeconfig: Path, folder: Path) -> Iterator[Window]:
    """At its prompt."""
    path = f"{launchers(folder / 'bin')}:{os.environ['PATH']}"
    env = terminal.environ(kubeconfig, PATH=path, HOME=str(folder), PS1=PROMPT, ZDOTDIR=str(folder))
    if name == "bash":
        words = ["/bin/bash", "--noprofile", "--norc", "-i"]
        setup = "bind 'set enable-bracketed-paste off'; bind 'set bell-style none'"
    else:
        program, more = zsh()
        env |= more
        words = [str(program), "-f", "-i"]
        modules = more.get("SPOTSHIFT_ZSH_MODULES")
        setup = f"module_path=({modules}); " if modules else ""
        setup += (
            "autoload -Uz compinit && compinit -u -D; unset zle_bracketed_paste; unsetopt beep list_beep prompt_sp"
        )
    with terminal.window(words, env) as window:
        window.wait_for(PROMPT)
        window.type(f"{setup}; echo set-$((40+2))\r")
        window.wait_for(r"set-42\s")
        yield window

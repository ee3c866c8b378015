"""bash and zsh with the plugin on their PATH, in a terminal, with nothing of their user's own configuration."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from testbed import debian
from tests.integration.console import terminal
from tests.integration.console.terminal import ROOT, Window

PROMPT: Final = "ready> "


def zsh() -> tuple[Path, dict[str, str]]:
    """The one on the PATH; else the one of the Debian archive, unpacked into the cache and not installed."""
    found = shutil.which("zsh")
    if found:
        return Path(found), {}
    base = debian.unpacked(["zsh", "zsh-common"], os.environ)
    modules = next((base / "usr" / "lib").glob("*/zsh/*"))
    functions = ":".join(str(path) for path in sorted((base / "usr" / "share" / "zsh" / "functions").rglob("*/")))
    return base / "bin" / "zsh", {"SPOTSHIFT_ZSH_MODULES": str(modules), "FPATH": functions}


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

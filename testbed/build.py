"""Run Go's build of the control plane and tell how far it is."""

import collections
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from testbed import pins

_OWN_VERSION = "sigs.k8s.io/metrics-server/cmd/metrics-server"
"""Prints the version stamped into Kubernetes' libraries as its own, so it is linked with a stamp of its own."""


class BuildFailed(Exception):
    """Go gave up; the message holds the end of what it printed."""


class Report(Protocol):
    """Who is told about progress."""

    def waiting(self) -> None:
        """Another process is building the same thing."""

    def downloading(self, module: str, done: int, total: int) -> None:
        """One more module is being fetched; `total` is an upper bound."""

    def compiling(self, package: str, done: int, total: int) -> None:
        """One more package is being compiled."""

    def finished(self) -> None:
        """Everything is built."""


def install(go: Path, target: Path, environ: Mapping[str, str], *, report: Report) -> None:
    """Build every `tool` of the module and every program of our own into `target`."""
    env = _environment(environ, target)
    done, todo = _packages(go, env, report=report)
    total = done + todo
    for packages, version in _groups(go, env):
        command = [str(go), "install", "-v", *_flags(), "-ldflags", pins.ldflags(version), *packages]
        for line in _run(command, env):
            done = min(done + 1, total)
            report.compiling(line, done, total)
    report.finished()


def _groups(go: Path, env: Mapping[str, str]) -> Sequence[tuple[Sequence[str], str]]:
    listed = subprocess.run(
        [go, "list", "-mod=readonly", "tool"],
        cwd=pins.MODULE,
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    versions = pins.versions()
    tools = [line for line in listed.stdout.split() if line != _OWN_VERSION]
    return ((tools, versions["kubernetes"]), ([_OWN_VERSION], versions["metrics-server"]))


def _packages(go: Path, env: Mapping[str, str], *, report: Report) -> tuple[int, int]:
    """Packages (already compiled, still to compile). Fetches the modules on the way."""
    command = [str(go), "list", *_flags(), "-deps", "-f", "{{.Stale}}", "tool"]
    modules = sum(" v" in line for line in (pins.MODULE / "go.mod").read_text().splitlines())
    fetched = 0
    states: collections.Counter[str] = collections.Counter()
    for line in _run(command, env):
        if line.startswith("go: downloading "):
            fetched = min(fetched + 1, modules)
            report.downloading(line.removeprefix("go: downloading "), fetched, modules)
        else:
            states[line] += 1
    return states["false"], states["true"]


def _flags() -> tuple[str, ...]:
    return ("-mod=readonly", "-trimpath", "-buildvcs=false", "-tags", pins.TAGS)


def _environment(environ: Mapping[str, str], target: Path) -> dict[str, str]:
    """The caller's environment (proxies and caches are his) with what the result depends on fixed."""
    fixed = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "GOBIN": str(target)}
    return {**environ, **fixed}


def install_module(
    go: Path,
    module: Path,
    target: Path,
    environ: Mapping[str, str],
    *,
    packages: Sequence[str] = ("./...",),
    tell: Callable[[str], None],
) -> None:
    """Build programs of a module of its own into `target`, exactly as its go.sum says; `tool` are those it names."""
    command = [
        str(go),
        "install",
        "-v",
        *_flags(),
        "-ldflags",
        "-s -w",
        *packages,
    ]
    for line in _run(command, _environment(environ, target), module):
        tell(line)


def _run(command: Sequence[str], env: Mapping[str, str], module: Path = pins.MODULE) -> collections.abc.Iterator[str]:
    """Lines the command prints, as it prints them; stops it when the reader is interrupted."""
    tail: collections.deque[str] = collections.deque(maxlen=20)
    with subprocess.Popen(
        command, cwd=module, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None  # noqa: S101 - says so to the type checker
        try:
            for line in process.stdout:
                tail.append(line.rstrip())
                yield tail[-1]
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise BuildFailed(f"go {command[1]} ended with {process.returncode}:{os.linesep}" + os.linesep.join(tail))

"""Run Go's build of the control plane and tell how far it is."""

import collections
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from testbed import pins

_OWN_VERSION = "sigs.k8s.io/metrics-server/cmd/metrics-server"
"""Prints the version stamped into Kubernetes' libraries as its own, so it is linked with a stamp of its own."""


END_SECONDS = 10.0
"""For Go to remove its temporary files."""


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
    with _environment(environ, target) as env:
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


@contextmanager
def _environment(environ: Mapping[str, str], target: Path) -> Iterator[dict[str, str]]:
    """The caller's environment (proxies and caches are his) with what the result depends on fixed. Go's own
    temporary files are hundreds of megabytes, and stay where it is killed: they are beside the target, whose builder
    holds a lock.
    """
    temporary = target.with_suffix(".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True, exist_ok=True)  # a build that was killed may still write there
    fixed = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "GOBIN": str(target)}
    try:
        yield {**environ, **fixed, "GOTMPDIR": str(temporary)}
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
    with _environment(environ, target) as env:
        for line in _run(command, env, module):
            tell(line)


def _run(command: Sequence[str], env: Mapping[str, str], module: Path = pins.MODULE) -> Iterator[str]:
    """Lines the command prints, as it prints them; stops it when the reader is interrupted."""
    tail: collections.deque[str] = collections.deque(maxlen=20)
    with subprocess.Popen(
        command,
        cwd=module,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    ) as process:
        assert process.stdout is not None  # noqa: S101 - says so to the type checker
        try:
            for line in process.stdout:
                tail.append(line.rstrip())
                yield tail[-1]
        except BaseException:
            _end(process)
            raise
    if process.returncode != 0:
        raise BuildFailed(f"go {command[1]} ended with {process.returncode}:{os.linesep}" + os.linesep.join(tail))


def _end(process: subprocess.Popen[str]) -> None:
    """Go and its compilers, which it leaves at work when it ends; they have a process group of their own."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)

"""The control plane's binaries: taken as found when their version matches, else built once into a cache."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import build, cache, golang, pins


@dataclass(frozen=True, slots=True)
class Component:
    """One program of the control plane."""

    name: str
    project: str
    """Whose version it carries: a key of `pins.versions()`."""
    version_args: tuple[str, ...] = ("--version",)


COMPONENTS = (
    Component("etcd", "etcd"),
    Component("kube-apiserver", "kubernetes"),
    Component("kube-controller-manager", "kubernetes"),
    Component("kube-scheduler", "kubernetes"),
    Component("kubectl", "kubernetes", ("version", "--client")),
    Component("kwok", "kwok"),
    Component("metrics-server", "metrics-server"),
)

Binaries = Mapping[str, Path]


def ensure(environ: Mapping[str, str], *, report: build.Report) -> Binaries:
    """Every binary of the control plane by name: as found where the version matches, else as built."""
    found = dict(_found(environ))
    missing = [component.name for component in COMPONENTS if component.name not in found]
    if missing:
        built = built_tools(environ, report=report)
        found |= {name: built / name for name in missing}
    return found


def passed_over(environ: Mapping[str, str]) -> Iterator[str]:
    """Why programs in KUBEBUILDER_ASSETS are not used; whoever names it wants to know."""
    named = environ.get("KUBEBUILDER_ASSETS", "")
    wanted = pins.versions()
    there = {it: path for it in COMPONENTS if (path := shutil.which(it.name, path=named))} if named else {}
    if named and not there:
        yield f"KUBEBUILDER_ASSETS: there is no program of the control plane in {named}"
    for component, path in there.items():
        printed = _printed_version(path, component)
        if not matches(printed, wanted[component.project]):
            said = printed.strip().partition("\n")[0][:80] or "nothing"
            minor = ".".join(wanted[component.project].split(".")[:2])
            yield f"KUBEBUILDER_ASSETS: {path} is not used: a v{minor} is needed, and it says {said!r}"


def built_tools(environ: Mapping[str, str], *, report: build.Report) -> Path:
    """The folder with everything built from our module. Two callers at once build it once."""
    cached = pins.cache_dir(environ) / f"bin-{pins.cache_key()}"
    if not _is_complete(cached):
        with cache.locked(cached.with_suffix(".lock"), on_wait=report.waiting):
            if not _is_complete(cached):
                cache.sweep(cached)
                _build(cached, environ, report=report)
    return cached


def built_module(
    module: Path,
    environ: Mapping[str, str],
    *,
    packages: Sequence[str] = ("./...",),
    tell: Callable[[str], None] = lambda _: None,
) -> Path:
    """The folder with the programs of another Go module, built once for what its files say now."""
    cached = pins.cache_dir(environ) / f"{module.name}-{pins.cache_key(module)}"
    if not os.path.isdir(cached):  # noqa: PTH112 - see `_is_complete`
        with cache.locked(cached.with_suffix(".lock"), on_wait=lambda: tell("another process builds it")):
            if not cached.is_dir():
                cache.sweep(cached)
                staging = cached.with_suffix(".partial")
                build.install_module(golang.find(environ), module, staging, environ, packages=packages, tell=tell)
                staging.rename(cached)
    return cached


def _is_complete(folder: Path) -> bool:
    """Asked of `os.path`, to which a folder that may not be read is one that is not there; `cache.locked` says so."""
    return all(os.path.exists(folder / component.name) for component in COMPONENTS)  # noqa: PTH110


def matches(printed: str, wanted: str) -> bool:
    """Same major and minor version: patches of one minor serve the same API."""
    found = re.search(r"\bv?(\d+)\.(\d+)\.\d+", printed)
    return found is not None and [found[1], found[2]] == wanted.split(".")[:2]


def _found(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    wanted = pins.versions()
    places = [environ.get("KUBEBUILDER_ASSETS", ""), environ.get("PATH", "")]
    for component in COMPONENTS:
        for place in filter(None, places):
            path = shutil.which(component.name, path=place)
            if path and matches(_printed_version(path, component), wanted[component.project]):
                yield component.name, Path(path).absolute()
                break


def _printed_version(path: str, component: Component) -> str:
    try:
        asked = subprocess.run(
            [path, *component.version_args], capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout


def _build(target: Path, environ: Mapping[str, str], *, report: build.Report) -> None:
    """Build into a folder beside the target and rename it last: the target is complete or absent.

    Compiled packages stay in Go's own cache, so an interrupted build goes on where it was.
    """
    staging = target.with_suffix(".partial")
    staging.mkdir(parents=True, exist_ok=True)
    build.install(golang.find(environ), staging, environ, report=report)
    (staging / "server").replace(staging / "etcd")  # the main package of etcd's server module
    shutil.rmtree(target, ignore_errors=True)  # one that lost a binary
    staging.rename(target)

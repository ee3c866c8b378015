"""Which versions the test bed consists of: `go.mod` is the only place that says so."""

import hashlib
import platform
import re
from collections.abc import Mapping
from pathlib import Path

MODULE = Path(__file__).parent
"""The Go module whose `tool` lines name every binary."""

TAGS = "selinux,notest,grpcnotrace"
"""Build tags: what Kubernetes' own release build uses, less what only its tests need."""

_MODULES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kubernetes": "k8s.io/kubernetes",
    "kwok": "sigs.k8s.io/kwok",
    "metrics-server": "sigs.k8s.io/metrics-server",
}


def versions() -> dict[str, str]:
    """Version of each upstream project, without the leading `v`."""
    text = (MODULE / "go.mod").read_text()
    return {name: _required(text, module) for name, module in _MODULES.items()}


def go_version() -> str:
    """The oldest Go that builds the module."""
    return _first(r"^go (\S+)$", (MODULE / "go.mod").read_text())


def product() -> str:
    """Version of what is tested here."""
    return _first(r'^version = "(.+)"$', (MODULE.parent / "pyproject.toml").read_text())


def cache_key(module: Path = MODULE) -> str:
    """Changes with anything that could change a binary: pins, sums, sources, tags, machine."""
    digest = hashlib.sha256(f"{TAGS} {platform.system()} {platform.machine()}".encode())
    for path in (module / "go.mod", module / "go.sum", *sorted(module.rglob("*.go"))):
        digest.update(path.relative_to(module).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_dir(environ: Mapping[str, str]) -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/spotshift`; a relative XDG path is ignored, as its specification asks."""
    configured = Path(environ.get("XDG_CACHE_HOME", ""))
    base = configured if configured.is_absolute() else Path(environ.get("HOME") or Path.home()) / ".cache"
    return base / "spotshift"


def ldflags(version: str) -> str:
    """Stamp the version into the binaries: without it `kubectl version` cannot be parsed."""
    major, minor, _ = version.split(".", 2)
    stamp = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "unknown",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamps = (f"-X {package}.{name}={value}" for package in packages for name, value in stamp.items())
    return " ".join(("-s -w", *stamps))


def _required(text: str, module: str) -> str:
    return _first(rf"^\s*{re.escape(module)} v(\S+)$", text)


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise LookupError(f"the file has no line that matches {pattern!r}")
    return found.group(1)

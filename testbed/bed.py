"""Bring a control plane up in a folder, find it again, repair a part of it, and take it down without a trace."""

import base64
import collections
import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import urllib3
import yaml

from testbed import api, folder, layout, objects, ports, process, remains, waiting
from testbed.binaries import Binaries
from testbed.folder import Refused
from testbed.waiting import NeverCame, eventually

READY_TIMEOUT_SECONDS = 90.0
"""Ready takes about 6 s on an idle machine; a busy one with two cores needs patience."""
STOP_GRACE_SECONDS = 1.0
"""The apiserver drains its watches far longer than anybody wants to wait for a test bed."""
TAIL_LINES = 30
ATTEMPTS = 3


class DidNotStart(Exception):
    """A component ended or did not answer in time; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane."""

    home: Path
    ports: Mapping[str, int]
    binaries: Binaries

    @property
    def layout(self) -> layout.Layout:
        return layout.Layout(self.home)

    @property
    def kubeconfig(self) -> Path:
        return self.layout.kubeconfig

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    def api(self) -> api.Api:
        """Log in as cluster administrator."""
        return api.connect(self.kubeconfig)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run the real kubectl as cluster administrator and return what it printed."""
        command = [str(self.binaries["kubectl"]), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={"HOME": str(self.home), "KUBECACHEDIR": str(self.home / "kubectl")},
        )
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def status(self) -> dict[str, int | None]:
        """The pid of every component; None for one that does not run."""
        found = {name: proc.pid for name, proc in process.mains(self.home).items()}
        wanted = dict.fromkeys(layout.commands(self.layout, self.ports, self.binaries))
        return {**wanted, **found}

    def stop(self, name: str, *, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        """Stop one component; with no grace it is killed at once."""
        process.stop(
            [proc for found, proc in process.running(self.home) if found == name], grace_seconds=grace_seconds
        )

    def start(self, name: str) -> None:
        """Start one component again, as it was started first."""
        command = layout.commands(self.layout, self.ports, self.binaries)[name]
        started = process.start(name, command, home=self.home, log=self.layout.log(name), env=_sparing())
        _wait_healthy(self, name, started)

    def restart(self, name: str, *, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        self.stop(name, grace_seconds=grace_seconds)
        self.start(name)

    def tail(self, name: str, lines: int = TAIL_LINES) -> str:
        """The end of a component's log."""
        path = self.layout.log(name)
        if not path.exists():
            return ""
        with path.open(errors="replace") as log:
            return "".join(collections.deque(log, maxlen=lines))


def up(home: Path, binaries: Binaries, *, nodes: int = 0, spot: int = 0, owner: int | None = None) -> ControlPlane:
    """Start a control plane in `home` and return when it serves and its nodes are Ready.

    With `owner`, the control plane goes down by itself when that process ends, however it ends.
    """
    home = folder.resolved(home)
    with folder.claimed(home):
        _clear_leftovers(home)
        try:
            if owner is not None:
                _start_guard(home, owner)
            bed = _start_on_free_ports(home, binaries)
            _register_metrics(bed)
            add_nodes(bed.api(), objects.pool("", on_demand=nodes, spot=spot))
            _remember(bed, ready=True)
        except BaseException as failure:
            over = folder.is_over(home)
            _stop_all(home)
            folder.erase(home)
            if over and isinstance(failure, Exception):
                raise DidNotStart(f"somebody else took the control plane in {home} down while it started") from None
            if isinstance(failure, NeverCame | OSError | urllib3.exceptions.HTTPError | api.ApiError):
                raise DidNotStart(f"the control plane in {home} did not become usable: {failure}") from failure
            raise
        return bed


def attach(home: Path) -> ControlPlane:
    """The control plane in `home`, as it was started."""
    home = folder.resolved(home)
    state = _state(home)
    if state is None:
        raise Refused(f"no test bed in {home}; start one with `make up`, elsewhere with `make up DIR=...`")
    paths = {name: Path(path) for name, path in state["binaries"].items()}
    return ControlPlane(home, state["ports"], paths)


def is_running(home: Path) -> ControlPlane | None:
    """The control plane in `home` if it is ready and every part of it lives."""
    state = _state(home)
    if not state or not state["ready"]:
        return None
    bed = attach(home)
    return bed if all(bed.status().values()) else None


def ended(home: Path) -> list[str]:
    """Parts of a control plane that was ready and has lost them since; none if it is whole, or there is none."""
    state = _state(home)
    found = attach(home).status() if state and state["ready"] else {}
    return [name for name, pid in found.items() if pid is None]


def down(home: Path) -> list[str]:
    """Stop everything that belongs to the test bed in `home` and remove its files; returns what was stopped."""
    home = folder.resolved(home)
    stopped: list[str] = []
    folder.say_over(home)
    while found := _stop_all(home):  # again: one may have been on its way while the others were looked for
        stopped += found
    remains.note(home, os.environ)
    folder.remove(home)
    return stopped


def add_nodes(client: api.Api, nodes: Sequence[api.Object]) -> None:
    """Create nodes and wait until the scheduler may use them."""
    for node in nodes:
        client.create("nodes", node)
    names = {node["metadata"]["name"] for node in nodes}
    eventually(
        lambda: names - {node["metadata"]["name"] for node in client.list("nodes") if _is_usable(node)},
        until=lambda missing: not missing,
        timeout=READY_TIMEOUT_SECONDS,
        what="nodes without Ready condition or with the not-ready taint",
    )


def _is_usable(node: api.Object) -> bool:
    taints = {taint["key"] for taint in node["spec"].get("taints", ())}
    return objects.is_ready(node) and "node.kubernetes.io/not-ready" not in taints


def _start_guard(home: Path, owner: int) -> None:
    """First of all, so that nothing is ever without it."""
    logs = layout.Layout(home).logs
    logs.mkdir()
    guard = [sys.executable, "-m", "testbed", "guard", "--dir", str(home), "--owner", str(owner)]
    process.start("guard", guard, home=home, log=logs / "guard.log", env=importable(os.environ))


def _start_on_free_ports(home: Path, binaries: Binaries) -> ControlPlane:
    for attempt in range(1, ATTEMPTS + 1):
        bed = ControlPlane(home, ports.free(layout.PORTS), binaries)
        layout.prepare(bed.layout, bed.ports)
        _remember(bed, ready=False)
        try:
            _start_all(bed)
        except DidNotStart as failure:
            # Between choosing a port and binding it somebody else may take it.
            if "address already in use" not in str(failure) or attempt == ATTEMPTS:
                raise
            _stop_all(home, spare="guard")
        else:
            return bed
    raise AssertionError("unreachable")


def _start_all(bed: ControlPlane) -> None:
    commands = layout.commands(bed.layout, bed.ports, bed.binaries)
    started = {}
    for name, command in commands.items():
        started[name] = process.start(name, command, home=bed.home, log=bed.layout.log(name), env=_sparing())
        if name in ("etcd", "kube-apiserver"):  # the rest gives up when it finds no apiserver
            _wait_healthy(bed, name, started[name])
    for name, child in started.items():
        _wait_healthy(bed, name, child)
    for name, child in started.items():
        _check_alive(bed, name, child)  # the answer may have come from a stranger on its port
    default_account = functools.partial(bed.api().get, "serviceaccounts", "default", "default")
    eventually(default_account, timeout=READY_TIMEOUT_SECONDS, what="the default ServiceAccount")


def _wait_healthy(bed: ControlPlane, name: str, child: psutil.Process) -> None:
    """Return when the component answers; a component that ended is told at once, with its last words."""
    healthy = _health_check(bed, name)
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while not healthy():
        _check_alive(bed, name, child)
        if time.monotonic() > deadline:
            raise DidNotStart(f"{name} was not healthy after {READY_TIMEOUT_SECONDS:g} s:\n{bed.tail(name)}")
        time.sleep(0.05)


def _check_alive(bed: ControlPlane, name: str, child: psutil.Process) -> None:
    if process.has_ended(child):
        raise DidNotStart(f"{name} ended:\n{bed.tail(name)}")


def _health_check(bed: ControlPlane, name: str) -> Callable[[], bool]:
    if name == "kube-apiserver":
        client = bed.api()
        return lambda: _answers(lambda: client.request("GET", "/readyz", timeout=2))
    scheme = "http" if name in ("etcd", "kwok") else "https"
    path = {"etcd": "/health", "metrics-server": "/livez"}.get(name, "/healthz")
    url = f"{scheme}://127.0.0.1:{bed.ports[name]}{path}"
    pool = urllib3.PoolManager(ca_certs=str(bed.layout.ca.pair.cert))
    return lambda: _answers(lambda: pool.request("GET", url, retries=False, timeout=2).status == 200)


def _answers(ask: Callable[[], object]) -> bool:
    try:
        return bool(ask())
    except (urllib3.exceptions.HTTPError, api.ApiError):
        return False


def _register_metrics(bed: ControlPlane) -> None:
    client = bed.api()
    text = (layout.CONFIG / "metrics.yaml").read_text()
    text = text.replace("@PORT@", str(bed.ports["metrics-server"]))
    service, announcement = yaml.safe_load_all(
        text.replace("@CA@", base64.b64encode(bed.layout.ca.bundle()).decode())
    )
    client.create("services", service, "kube-system")
    client.create("apiservices", announcement)
    eventually(
        lambda: client.get("apiservices", announcement["metadata"]["name"]).get("status", {}).get("conditions"),
        until=lambda conditions: conditions and conditions[0]["status"] == "True",
        timeout=READY_TIMEOUT_SECONDS,
        what="the metrics API",
    )


def _clear_leftovers(home: Path) -> None:
    """Refuse a folder whose control plane runs; clean one that was killed."""
    running = is_running(home)
    if running:
        raise Refused(
            f"a test bed is already running in {home} (apiserver pid {running.status()['kube-apiserver']}); "
            "stop it with `make down` (the same DIR=), or choose another --dir (DIR=)"
        )
    _stop_all(home)
    folder.empty(home)


def _stop_all(home: Path, *, spare: str = "") -> list[str]:
    found = [(name, proc) for name, proc in process.running(home) if name != spare]
    process.stop([proc for _, proc in found], grace_seconds=STOP_GRACE_SECONDS)
    return sorted({name for name, _ in found})


def _state(home: Path) -> dict[str, Any] | None:
    """What is remembered of the control plane in `home`, if it is one that we know how to run."""
    state = folder.read_state(folder.resolved(home))
    return state if state and set(layout.PORTS) <= set(state["ports"]) else None


def _remember(bed: ControlPlane, *, ready: bool) -> None:
    binaries = {name: str(path) for name, path in bed.binaries.items()}
    folder.write_state(bed.home, {"ready": ready, "ports": dict(bed.ports), "binaries": binaries})


def _sparing() -> dict[str, str]:
    """Components of a small cluster spend a quarter of their time on collecting garbage of a few megabytes.

    With 150,000 pods an API server that collects as seldom takes 21 GB where 8 are enough, so there is a bound.
    Where several control planes share the processors, a second thread of each finds nothing to run on: without it
    the tests of moves, drains and spot took an eighth less in the one pair of runs that was made.
    """
    alone = {"GOMAXPROCS": "1"} if waiting.PATIENCE > 1 else {}
    return {"GOGC": "400", "GOMEMLIMIT": "8GiB", **alone, **os.environ}


def importable(environ: Mapping[str, str]) -> dict[str, str]:
    """So that `python -m testbed` is found whatever the working directory is."""
    return {**environ, "PYTHONPATH": str(Path(__file__).parent.parent)}

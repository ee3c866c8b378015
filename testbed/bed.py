"""Bring a control plane up in a folder, find it again, repair a part of it, and take it down without a trace."""

import base64
import collections
import fcntl
import functools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import urllib3
import yaml

from testbed import api, layout, objects, ports, process
from testbed.binaries import Binaries
from testbed.waiting import eventually

READY_TIMEOUT_SECONDS = 90.0
"""Ready takes about 6 s on an idle machine; a busy one with two cores needs patience."""
STOP_GRACE_SECONDS = 5.0
"""The apiserver drains its watches far longer than anybody wants to wait for a test bed."""
TAIL_LINES = 30
ATTEMPTS = 3
_OURS = ("pki", "logs", "etcd", "kubeconfig", "scheduler.yaml", "state.json", "lock.up")


class Refused(Exception):
    """The folder cannot be used as asked; the message says why and what to do."""


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
            command, input=stdin, capture_output=True, text=True, check=False, env={"HOME": str(self.home)}
        )
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def status(self) -> dict[str, int | None]:
        """The pid of every component; None for one that does not run."""
        found = {name: proc.pid for name, proc in process.running(self.home)}
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
        started = process.start(name, command, home=self.home, log=self.layout.log(name))
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
    home = home.absolute()
    with _exclusive(home):
        _clear_leftovers(home)
        try:
            bed = _start_on_free_ports(home, binaries)
            if owner is not None:
                guard = [sys.executable, "-m", "testbed", "guard", "--dir", str(home), "--owner", str(owner)]
                process.start("guard", guard, home=home, log=bed.layout.log("guard"), env=_importable(os.environ))
            _register_metrics(bed)
            add_nodes(bed.api(), objects.pool("", on_demand=nodes, spot=spot))
        except BaseException:
            _remove(home)
            raise
        _write_state(bed, ready=True)
        return bed


def attach(home: Path) -> ControlPlane:
    """The control plane that runs in `home`."""
    home = home.absolute()
    state = _read_state(home)
    if state is None:
        raise Refused(f"no test bed in {home}; start one with `python -m testbed up --dir {home}`")
    paths = {name: Path(path) for name, path in state["binaries"].items()}
    return ControlPlane(home, state["ports"], paths)


def down(home: Path) -> list[str]:
    """Stop everything that belongs to the test bed in `home` and remove its files; returns what was stopped."""
    return _remove(home.absolute())


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


def _start_on_free_ports(home: Path, binaries: Binaries) -> ControlPlane:
    for attempt in range(1, ATTEMPTS + 1):
        bed = ControlPlane(home, ports.free(layout.PORTS), binaries)
        layout.prepare(bed.layout, bed.ports)
        _write_state(bed, ready=False)
        try:
            _start_all(bed)
        except DidNotStart as failure:
            # Between choosing a port and binding it somebody else may take it.
            if "address already in use" not in str(failure) or attempt == ATTEMPTS:
                raise
            process.stop([proc for _, proc in process.running(home)], grace_seconds=0)
        else:
            return bed
    raise AssertionError("unreachable")


def _start_all(bed: ControlPlane) -> None:
    commands = layout.commands(bed.layout, bed.ports, bed.binaries)
    started = {}
    for name, command in commands.items():
        started[name] = process.start(name, command, home=bed.home, log=bed.layout.log(name))
        if name in ("etcd", "kube-apiserver"):  # the rest gives up when it finds no apiserver
            _wait_healthy(bed, name, started[name])
    for name, child in started.items():
        _wait_healthy(bed, name, child)
    default_account = functools.partial(bed.api().get, "serviceaccounts", "default", "default")
    eventually(default_account, timeout=READY_TIMEOUT_SECONDS, what="the default ServiceAccount")


def _wait_healthy(bed: ControlPlane, name: str, child: psutil.Process) -> None:
    """Return when the component answers; a component that ended is told at once, with its last words."""
    healthy = _health_check(bed, name)
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while not healthy():
        if process.has_ended(child):
            raise DidNotStart(f"{name} ended:\n{bed.tail(name)}")
        if time.monotonic() > deadline:
            raise DidNotStart(f"{name} was not healthy after {READY_TIMEOUT_SECONDS:g} s:\n{bed.tail(name)}")
        time.sleep(0.05)


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


@contextmanager
def _exclusive(home: Path) -> Iterator[None]:
    """Let one `up` at a time work in a folder; the kernel ends the claim with the process."""
    if home.exists() and any(home.iterdir()) and not (home / "lock.up").exists():
        raise Refused(f"{home} is not empty and is not a test bed; choose another --dir")
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock.up").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another `up` is at work in {home}") from None
        yield


def _clear_leftovers(home: Path) -> None:
    """Refuse a folder whose control plane runs; clean one that was killed."""
    state = _read_state(home)
    if state and state["ready"]:
        status = attach(home).status()
        if all(status.values()):
            raise Refused(
                f"a test bed is already running in {home} (apiserver pid {status['kube-apiserver']}); "
                f"stop it with `python -m testbed down --dir {home}` or choose another --dir"
            )
    _remove(home, keep=("lock.up",))


def _remove(home: Path, *, keep: Sequence[str] = ()) -> list[str]:
    found = process.running(home)
    process.stop([proc for _, proc in found], grace_seconds=STOP_GRACE_SECONDS)
    for name in _OURS:
        path = home / name
        if name in keep:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if home.is_dir() and not any(home.iterdir()):
        home.rmdir()
    return sorted(name for name, _ in found)


def _write_state(bed: ControlPlane, *, ready: bool) -> None:
    binaries = {name: str(path) for name, path in bed.binaries.items()}
    state = {"ready": ready, "ports": dict(bed.ports), "binaries": binaries}
    staging = bed.home / "state.json.new"
    staging.write_text(json.dumps(state))
    staging.replace(bed.home / "state.json")


def _read_state(home: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads((home / "state.json").read_text()))
    except FileNotFoundError:
        return None


def _importable(environ: Mapping[str, str]) -> dict[str, str]:
    """So that `python -m testbed` is found whatever the working directory is."""
    return {**environ, "PYTHONPATH": str(Path(__file__).parent.parent)}

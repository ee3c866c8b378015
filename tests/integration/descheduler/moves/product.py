"""The real descheduler on a control plane of its own: several processes, each with its own way to the apiserver.

They run as their own ServiceAccount, with the shipped manifests in force. Each goes through a fault proxy, so that a
test can stop time at any one of its requests; the test itself looks at the cluster by another way.
"""

import contextlib
import itertools
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import psutil
import yaml

from policy import settings_load
from testbed import access, bed, definitions, install, pki, ports, process
from testbed.api import Api, ApiError, Object
from testbed.bed import ControlPlane
from testbed.proxy import FaultProxy
from testbed.waiting import eventually

SYSTEM: Final = "spotshift-system"
ACCOUNT: Final = "spotshift-descheduler"
LEASE_SECONDS: Final = 3
TAKE_OVER_SECONDS: Final = 60.0
"""Far more than a lease: two cores may be shared with everything else."""
SETTINGS: Final[Mapping[str, Any]] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    # Only what a test asks for is moved, and at once.
    "enabledStrategies": ["NodeMaintenance"],
    "reschedulingInterval": "2s",
    "migrations": {"hintPropagation": "0s"},
}


@dataclass(slots=True)
class Member:
    """One process after the other under one name, all through the same proxy."""

    name: str
    proxy: FaultProxy
    process: psutil.Process | None = None
    identity: str = ""


@dataclass(slots=True)
class Product:
    """The descheduler's processes; use it as a context manager."""

    bed: ControlPlane
    folder: Path
    lease_seconds: int = LEASE_SECONDS
    members: list[Member] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _kube: Api | None = None

    @property
    def kube(self) -> Api:
        """Everything a test may do and see, past all proxies."""
        self._kube = self._kube or self.bed.api()
        return self._kube

    @property
    def settings_file(self) -> Path:
        return self.folder / "settings.yaml"

    # ---- setting up

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        apply_manifests(self.bed)
        self.configure()
        for name in ("a", "b"):
            self.members.append(Member(name, FaultProxy(self.bed).start()))
        for member in self.members:
            self.start(member)
        self.leader()
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            self.kill(member)
            member.proxy.stop()

    def configure(self, **changed: Any) -> None:
        """Other settings from now on; the running processes follow the file. Bad ones would be refused silently."""
        text = yaml.safe_dump({**SETTINGS, **changed})
        settings_load.load(text)
        fresh = self.settings_file.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.settings_file)

    # ---- processes

    def start(self, member: Member) -> None:
        """Start it anew, under a new identity."""
        member.identity = f"{member.name}-{next(self._numbers)}"
        token = access.token(self.kube, ACCOUNT, SYSTEM)
        kubeconfig = pki.kubeconfig(
            self.folder / f"{member.name}.kubeconfig",
            server=member.proxy.server,
            ca=self.bed.layout.ca.bundle(),
            user={"token": token},
        )
        command: list[str | Path] = [
            *(sys.executable, "-m", "descheduler", "run"),
            *("--kubeconfig", kubeconfig, "--settings", self.settings_file, "--identity", member.identity),
            *("--lease-seconds", str(self.lease_seconds)),
            *("--probes", f"127.0.0.1:{ports.free(['probes'])['probes']}"),
        ]
        log = self.folder / f"{member.identity}.log"
        env = bed.importable({})
        name = f"descheduler-{member.name}"
        member.process = process.start(name, command, home=self.bed.home, log=log, env=env)

    def kill(self, member: Member) -> None:
        """Without a word, as a node that loses power."""
        if member.process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            member.process.send_signal(signal.SIGCONT)
            member.process.kill()
            member.process.wait(10)
        member.process = None

    def end(self, member: Member) -> float:
        """As a kubelet does it; how many seconds it took."""
        assert member.process is not None
        began = time.monotonic()
        member.process.terminate()
        member.process.wait(20)
        member.process = None
        return time.monotonic() - began

    def pause(self, member: Member) -> None:
        """It stands still, and does not know."""
        assert member.process is not None
        member.process.suspend()

    def resume(self, member: Member) -> None:
        """It goes on as if nothing had happened."""
        assert member.process is not None
        member.process.resume()

    def leader(self, *, but: Member | None = None) -> Member:
        """Who leads now, waiting until somebody does; `but` is told to be dead or standing still."""

        def found() -> Member | None:
            holder = self.kube.get("leases", ACCOUNT, SYSTEM)["spec"].get("holderIdentity", "")
            return next((it for it in self.members if it.identity == holder and it is not but), None)

        led = eventually(found, timeout=TAKE_OVER_SECONDS, what=f"a leader\n{self.tails()}")
        assert led is not None
        return led

    def log(self, member: Member) -> str:
        """What its present process has said."""
        return (self.folder / f"{member.identity}.log").read_text()

    def said(self) -> str:
        """What all present processes have said."""
        return "".join(map(self.log, self.members))

    def tails(self) -> str:
        """The last words of all processes."""
        lines = []
        for path in sorted(self.folder.glob("*.log")):
            lines += [f"--- {path.stem}", *path.read_text().splitlines()[-5:]]
        return "\n".join(lines)


def apply_manifests(running: ControlPlane) -> None:
    """The shipped ones, less what runs in pods: the processes are the test's own."""
    base = install.MANIFESTS
    for part in ("namespace.yaml", "descheduler/rbac.yaml", "webhook/settings.yaml"):
        running.kubectl("apply", "-f", str(base / part))
    running.kubectl("apply", "-k", str(base / "migrations"))
    definitions.established(running.api(), "podmigrations.spotshift.dev")
    for part in ("rbac.yaml", "policy.yaml"):
        running.kubectl("apply", "-f", str(base.parent / "components" / "recreate" / part))


def migrations(kube: Api, namespace: str) -> list[Object]:
    """All PodMigrations of a namespace, by name."""
    return sorted(kube.list("podmigrations", namespace), key=lambda it: str(it["metadata"]["name"]))


def ask_for(kube: Api, namespace: str, pod: str, *, target: str = "", mode: str = "Evict") -> str:
    """Ask for a move as a user would; the name of the PodMigration. Without a mode it follows from the workload."""
    body: Object = {
        "apiVersion": "spotshift.dev/v1alpha1",
        "kind": "PodMigration",
        "metadata": {"generateName": "by-hand-"},
        "spec": {"podRef": {"name": pod}, "mode": mode, **({"targetNode": target} if target else {})},
    }
    return str(kube.create("podmigrations", body, namespace)["metadata"]["name"])


def running_pods(kube: Api, namespace: str, app: str = "") -> list[Object]:
    """Pods that are not on their way out."""
    labels = f"app={app}" if app else ""
    return [it for it in kube.list("pods", namespace, labels=labels) if "deletionTimestamp" not in it["metadata"]]


def patch_each(kube: Api, resource: str, names: Sequence[str], body: Object) -> None:
    """The same change to several objects of the cluster; one that is gone is left out."""
    for name in names:
        with contextlib.suppress(ApiError):
            kube.patch(resource, name, body)

"""The whole product on a control plane of its own, as its manifests say, each process with its own way to the API.

Started, killed, stopped and started again as kubelets and their nodes would do it.
"""

import contextlib
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import psutil

from testbed import install, kubelet, objects, process
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.pods import Pod, Process
from testbed.proxy import FaultProxy
from testbed.sources import Kustomization
from testbed.waiting import eventually
from tests.chaos.settings import DOCUMENTS
from tests.e2e import draining

SYSTEM: Final = "spotshift-system"
DESCHEDULER, WEBHOOK, CERTS = "spotshift-descheduler", "spotshift-webhook", "spotshift-certs"
PODS: Final = (f"{DESCHEDULER}-0", f"{DESCHEDULER}-1", f"{WEBHOOK}-0", f"{WEBHOOK}-1", f"{CERTS}-0")
LEASE_SECONDS: Final = 5
"""Take-overs are what we want to see; fifteen seconds each would be most of the run."""
PAUSE_SECONDS: Final = 1.5
"""Until a kubelet starts again what has ended."""
LOOK_SECONDS: Final = 0.5
CHECK_SECONDS: Final = 2.0
DEFECT: Final = re.compile(r'"event":"(INTERNAL_ERROR|HANDLER_FAILED|LOG_REFUSED|OBJECT_UNREADABLE)"|^Traceback')
"""Lines that no bad luck excuses."""
OWN_NODE: Final = "own"
"""Where the pods of the product are counted; nothing happens to it."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """Those that a control plane of one's own gets, with what this run needs besides."""

    folder: Kustomization = field(
        default_factory=lambda: Kustomization(install.ROOT / "manifests" / "overlays" / "testbed")
    )

    def render(self, running: ControlPlane) -> list[Object]:
        documents = self.folder.render(running)
        for it in documents:
            named = (it["kind"], it["metadata"]["name"])
            if named == ("Deployment", DESCHEDULER):
                it["spec"]["template"]["spec"]["containers"][0]["args"].append(f"--lease-seconds={LEASE_SECONDS}")
            elif named == ("ConfigMap", "spotshift-settings"):
                it["data"]["settings.yaml"] = DOCUMENTS["usual"]
            elif it["kind"] == "MutatingWebhookConfiguration":
                # Here everything shares two processors: a slow answer is not a missing one.
                it["webhooks"][0]["timeoutSeconds"] = 15
        return documents

    def apply(self, running: ControlPlane, documents: Sequence[Object]) -> str:
        return self.folder.apply(running, documents)


@dataclass(slots=True)
class Product:
    """Its processes; use it as a context manager on a control plane without nodes."""

    running: ControlPlane
    kube: Api
    proxies: dict[str, FaultProxy] = field(default_factory=dict)
    """By pod."""
    down: dict[str, float] = field(default_factory=dict)
    """Killed by us and not Ready again: the process, and since when."""
    stopped: str = ""
    """The process that stands still."""
    resumed: dict[str, float] = field(default_factory=dict)
    """When a process went on, by pod."""
    excused: list[tuple[float, float]] = field(default_factory=list)
    """When admission may have been missed: from, to."""
    revived: Counter[str] = field(default_factory=Counter)
    """How often a part of the control plane had ended by itself."""
    _seen: float = 0.0
    _checked: float = 0.0

    def __enter__(self) -> Self:
        self.running.api().create("nodes", objects.node(OWN_NODE, cpu="8"))
        for name in PODS:
            self.proxies[name] = FaultProxy(self.running).start()
            kubelet.lead(self.running, name, self.proxies[name].server)
        install.install(self.running, Manifests(), tell=lambda _line: None)
        eventually(
            lambda: [it["spec"].get("nodeName") for it in self.kube.list("pods", SYSTEM)],
            until=lambda found: found and all(found),
            what="a node for the product",
        )
        self.kube.patch("nodes", OWN_NODE, {"spec": {"unschedulable": True}})
        eventually(self.leader, timeout=60, what="a leader")
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        for proxy in self.proxies.values():
            proxy.stop()

    # ---- who is who

    def members(self, deployment: str = "") -> Iterator[tuple[Pod, Process]]:
        """The pods of a Deployment, or of all, each with its one process."""
        for pod in kubelet.remembered(self.running):
            if deployment in ("", pod.deployment):
                yield pod, pod.processes[0]

    def leader(self) -> str:
        """The process that says it leads; empty if none does."""
        found = draining.leaders(self.running)
        return found[0][1] if found else ""

    # ---- what is done to them

    def kill(self, *names: str) -> None:
        """Without a word, all at once."""
        for found, child in process.running(self.running.home):
            if found in names:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        self.down.update(dict.fromkeys(names, time.time()))
        if self.stopped in names:
            self.stopped = ""

    def stop(self, name: str) -> None:
        """It stands still, and does not know."""
        self._signal(name, signal.SIGSTOP)
        self.stopped = name

    def resume(self) -> None:
        """Who stood still goes on as if nothing had happened."""
        if self.stopped:
            self._signal(self.stopped, signal.SIGCONT)
            self.resumed[self.stopped.partition(".")[0]] = time.time()
            self.stopped = ""

    def _signal(self, name: str, number: signal.Signals) -> None:
        for found, child in process.running(self.running.home):
            if found == name:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.send_signal(number)

    # ---- what kubelets do

    def keep(self, now: float) -> list[str]:
        """Start again what has ended; those that ended by themselves."""
        if now < self._seen + LOOK_SECONDS:
            return []
        self._seen = now
        alive, surprising = process.mains(self.running.home), []
        for pod, one in self.members():
            if one.name not in alive:
                if one.name not in self.down:
                    surprising.append(one.name)
                self.down.setdefault(one.name, now)
                if now > self.down[one.name] + PAUSE_SECONDS:
                    self.down[one.name] = now  # it may end again at once
                    install.start(self.running, pod)
            elif one.name in self.down and kubelet.is_ready(one.probe):
                del self.down[one.name]
        if all(one.name in self.down for _, one in self.members(WEBHOOK)):
            self.excuse(now, LOOK_SECONDS)
        return surprising

    def revive(self, now: float) -> list[str]:
        """Start again parts of the control plane that have ended, as the kubelets of its machines do.

        A scheduler whose binding was cut off by the end of the apiserver may find the pod on another node than it
        remembers, and then ends on purpose.
        """
        if now < self._checked + CHECK_SECONDS:
            return []
        self._checked = now
        ended = [name for name, pid in self.running.status().items() if pid is None]
        for name in ended:
            self.running.start(name)
        self.revived.update(ended)
        return ended

    def excuse(self, now: float, seconds: float) -> None:
        """Admission may be missed until then, and just before: what was under way is lost."""
        self.excused.append((now - LOOK_SECONDS, now + seconds))

    def defects(self) -> list[str]:
        """What processes have said about themselves that should never be."""
        logs = [self.running.layout.log(one.name) for _, one in self.members()]
        lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
        return [line for line in lines if DEFECT.search(line)]

"""One workload that is moved, somebody who counts its Ready pods all the time, and the descheduler itself."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import urllib3
import yaml

from policy import keys
from testbed import access, definitions, objects
from testbed.api import Api, ApiError, Object
from testbed.bed import ControlPlane
from testbed.proxy import FaultProxy
from testbed.waiting import Hopeless, eventually
from tests.integration.descheduler import logged

ROOT: Final = Path(__file__).parents[4]
SYSTEM: Final = "spotshift-system"
READY_TIMEOUT_SECONDS: Final = 12
SETTINGS: Final[Mapping[str, Any]] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "enabledStrategies": ["NodeMaintenance"],
    "migrations": {"hintPropagation": "0s", "readyTimeout": f"{READY_TIMEOUT_SECONDS}s"},
}
ENDED: Final = frozenset({"Completed", "Failed", "Cancelled"})
OURS: Final = keys.under()
APP: Final = "web"
END_SECONDS: Final = 90.0
"""Far more than a move takes: two cores may be shared with everything else."""


@dataclass(slots=True)
class Process:
    """`python -m descheduler run` as its own ServiceAccount, with the shipped manifests in force."""

    bed: ControlPlane
    folder: Path
    proxy: FaultProxy
    """Its way to the apiserver; a test looks and meddles by another one."""
    running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        base = ROOT / "manifests" / "base"
        for part in ("namespace.yaml", "descheduler/rbac.yaml", "webhook/settings.yaml"):
            self.bed.kubectl("apply", "-f", str(base / part))
        self.bed.kubectl("apply", "-k", str(base / "migrations"))
        definitions.established(self.bed.api(), "podmigrations.spotshift.dev")
        for part in ("rbac.yaml", "policy.yaml"):
            self.bed.kubectl("apply", "-f", str(ROOT / "manifests" / "components" / "recreate" / part))
        (self.folder / "settings.yaml").write_text(yaml.safe_dump(dict(SETTINGS)))
        self.again()

    def again(self) -> None:
        """Start the process, the first time or after its death."""
        kubeconfig = access.kubeconfig(self.bed, "spotshift-descheduler", SYSTEM, server=self.proxy.server)
        command = [sys.executable, "-m", "descheduler", "run", "--probes", "127.0.0.1:0", "--lease-seconds", "3"]
        command += ["--log-level", "debug"]
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(
                [*command, "--kubeconfig", str(kubeconfig), "--settings", str(self.folder / "settings.yaml")],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """As a node that loses power would."""
        if self.running is not None:
            self.running.kill()
            self.running.wait()

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-30:])

    def nodes_known(self) -> int:
        """How many nodes it knew of when it last planned."""
        told = logged.lines(self.log.read_text(), event="LISTENING")[-1]["address"]
        text = urllib3.request("GET", f"http://{told}/metrics", retries=False, timeout=5).data.decode()
        counts = [it.split()[-1] for it in text.splitlines() if it.startswith("spotshift_nodes{")]
        return sum(int(float(it)) for it in counts)


@dataclass(slots=True)
class Scene:
    """A namespace with two nodes. Use it as a context manager: Ready pods are counted inside."""

    process: Process
    kube: Api
    namespace: str
    fewest: int | None = None
    """Ready pods of the workload at the worst moment, since the first was Ready."""
    _ready: dict[str, bool] = field(default_factory=dict)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()

    def _count(self) -> None:
        with suppress(ApiError, OSError, ValueError):
            for event in self.kube.watch("pods", self.namespace, seconds=240):
                if self._stopped.is_set():
                    return
                self._saw(event)

    def _saw(self, event: Object) -> None:
        pod = event["object"]
        going = event["type"] == "DELETED" or "deletionTimestamp" in pod["metadata"]
        self._ready[pod["metadata"]["name"]] = objects.is_ready(pod) and not going
        serving = sum(self._ready.values())
        if self.fewest is not None or serving:
            self.fewest = serving if self.fewest is None else min(self.fewest, serving)

    # ---- the workload

    def deploy(self, replicas: int = 1, *, spec: Mapping[str, Any] | None = None, **options: Any) -> list[str]:
        """A Deployment whose pods are Ready; their names."""
        body = objects.deployment(APP, replicas=replicas, **options)
        body["spec"] |= dict(spec or {})
        self.kube.create("deployments", body, self.namespace)
        return [it["metadata"]["name"] for it in self.wait_ready(replicas)]

    def wait_ready(self, count: int) -> list[Object]:
        return eventually(
            self.pods, until=lambda found: sum(map(objects.is_ready, found)) >= count, what="pods", timeout=60
        )

    def pods(self) -> list[Object]:
        found = self.kube.list("pods", self.namespace)
        return [it for it in found if "deletionTimestamp" not in it["metadata"]]

    def names(self) -> list[str]:
        return sorted(it["metadata"]["name"] for it in self.pods())

    def deployment(self) -> Object:
        return self.kube.get("deployments", APP, self.namespace)

    def scale(self, replicas: int) -> None:
        self.kube.patch("deployments", APP, {"spec": {"replicas": replicas}}, self.namespace)

    def annotate(self, pod: str, **annotations: str | None) -> None:
        marks = {f"{objects.PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.kube.patch("pods", pod, {"metadata": {"annotations": marks}}, self.namespace)

    def delete_node(self, name: str) -> None:
        """Wait until the descheduler knows: it hears of nodes and of pods in no common order."""

        def is_told(count: int) -> None:
            eventually(self.process.nodes_known, until=lambda known: known == count, what=f"{count} nodes known")

        before = len(self.kube.list("nodes"))
        is_told(before)
        self.kube.delete("nodes", name)
        is_told(before - 1)

    # ---- the move

    def ask(self, pod: str, **spec: Any) -> str:
        body = {
            "apiVersion": "spotshift.dev/v1alpha1",
            "kind": "PodMigration",
            "metadata": {"generateName": "move-"},
            "spec": {"podRef": {"name": pod}, **spec},
        }
        return str(self.kube.create("podmigrations", body, self.namespace)["metadata"]["name"])

    def status(self, name: str) -> Object:
        found: Object = self.kube.get("podmigrations", name, self.namespace).get("status", {})
        return found

    def reach(self, name: str, step: str) -> Object:
        """Wait until the move is in this step."""

        def there(status: Object) -> bool:
            if status.get("phase") in ENDED:
                raise Hopeless(f"{step} was passed over: {status}")
            return status.get("step") == step

        return eventually(lambda: self.status(name), until=there, timeout=END_SECONDS, interval=0.05, what=step)

    def end(self, name: str) -> Object:
        """Wait until the move has ended and let go of everything."""

        def over() -> Object | None:
            found = self.kube.get("podmigrations", name, self.namespace)
            released = not found["metadata"].get("finalizers")
            return found["status"] if released and found.get("status", {}).get("phase") in ENDED else None

        try:
            found = eventually(over, timeout=END_SECONDS, what="the end")
        except AssertionError as never:
            raise AssertionError(f"{never}\n{self.status(name)}\n{self.process.tail()}") from None
        assert found is not None
        return found

    def told(self, name: str, *expected: logged.Line) -> None:
        """The log of the move holds these lines and no other."""
        logged.tells(logged.story(self.process.log.read_text, name), *expected)

    def left(self) -> list[str]:
        """Whatever a move should have taken back."""
        marks = [key for it in self.pods() for key in it["metadata"].get("annotations", {}) if key in COSTS]
        return [*marks, *(key for key in self.deployment()["metadata"].get("labels", {}) if key == OURS.moving)]


COSTS: Final = frozenset({keys.POD_DELETION_COST})


def every(seconds: float, call: Callable[[], object]) -> Iterator[None]:
    """Somebody who does the same thing again and again, until the caller goes on."""
    stopped = threading.Event()

    def again() -> None:
        while not stopped.wait(seconds):
            call()

    thread = threading.Thread(target=again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()

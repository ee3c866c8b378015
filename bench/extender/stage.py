"""The extender and a kube-scheduler that asks it, beside the scheduler of the test bed.

Both are the real commands. The scheduler serves only pods that name it, so every test can have one with a
configuration of its own on the control plane that all share.
"""

import contextlib
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import urllib3
import yaml

from testbed import definitions, objects, ports, process, scheduling
from testbed.api import Api, ApiError, Object
from testbed.bed import ControlPlane
from testbed.pki import Pair
from testbed.waiting import eventually

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
AT_ONCE = 8
"""Requests of ours at a time."""
SAMPLE = MANIFESTS / "examples" / "scheduler-extender.yaml"


@dataclass(slots=True)
class Extender:
    """One `python -m extender serve`."""

    process: psutil.Process
    port: int
    probes: int
    log: Path

    def get(self, path: str) -> tuple[int, str]:
        try:
            answer = urllib3.request("GET", f"http://127.0.0.1:{self.probes}{path}", retries=False, timeout=5)
        except urllib3.exceptions.HTTPError as failure:
            return 0, str(failure)
        return answer.status, answer.data.decode()

    def post(self, path: str, body: object) -> Any:
        """Ask it as a scheduler does."""
        answer = urllib3.request("POST", f"http://127.0.0.1:{self.port}{path}", json=body, retries=False, timeout=5)
        assert answer.status == 200, answer.data
        return answer.json()

    def counted(self, metric: str) -> float:
        """The value of one series, such as `spotshift_extender_nodes_out_total`; 0 before it exists."""
        lines = self.get("/metrics")[1].splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{metric} "))

    def freeze(self) -> None:
        """It takes connections and says no more."""
        for one in (self.process, *self.process.children(recursive=True)):
            one.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        for one in (*self.process.children(recursive=True), self.process):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()


@contextlib.contextmanager
def extender(
    bed: ControlPlane, kubeconfig: Path, folder: Path, *, settings: str = "", pair: Pair | None = None
) -> Iterator[Extender]:
    """Ready, with the rights of that login."""
    folder.mkdir()
    file = folder / "settings.yaml"
    file.write_text(f"apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n{settings}\n")
    taken = ports.free(("listen", "probes"))
    command = [
        *(sys.executable, "-m", "extender", "serve"),
        f"--kubeconfig={kubeconfig}",
        f"--listen=127.0.0.1:{taken['listen']}",
        f"--probes=127.0.0.1:{taken['probes']}",
        f"--settings={file}",
        *((f"--cert={pair.cert}", f"--key={pair.key}") if pair else ()),
    ]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    started = process.start(f"extender-{taken['listen']}", command, home=bed.home, log=folder / "log", env=env)
    made = Extender(started, taken["listen"], taken["probes"], folder / "log")
    try:
        eventually(
            lambda: (made.get("/readyz"), made.log.read_text()), until=lambda it: it[0][0] == 200, what="readiness"
        )
        yield made
    finally:
        made.kill()


def scheduler(
    bed: ControlPlane, name: str, folder: Path, port: int | None, **changed: Any
) -> contextlib.AbstractContextManager[str]:
    """A kube-scheduler for pods that name it, with the shipped sample; `changed` are fields of its extender.

    Without a port it asks nobody.
    """
    given = yaml.safe_load(SAMPLE.read_text())
    (sample,) = given["extenders"]
    asked = [{**sample, "urlPrefix": f"http://127.0.0.1:{port}", **changed}] if port else []
    return scheduling.beside(bed, name, folder, {**given, "extenders": asked})


def placed(kube: Api, namespace: str, count: int, *, timeout: float = 60.0) -> dict[str, str]:
    """The node of each pod, once so many pods have one."""

    def found() -> dict[str, str]:
        pods = [pod for pod in kube.list("pods", namespace) if not pod["metadata"].get("deletionTimestamp")]
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

    return eventually(found, until=lambda it: len(it) == count, timeout=timeout, what=f"{count} placed pods")


def replica_set(name: str, *, replicas: int, scheduler_name: str, **options: Any) -> Object:
    made = objects.deployment(name, replicas=replicas, schedulerName=scheduler_name, **options)
    return {**made, "kind": "ReplicaSet"}


def define_moves(bed: ControlPlane) -> None:
    """The definition of PodMigrations, without which no move can be open."""
    bed.kubectl("apply", "-f", str(MANIFESTS / "base" / "migrations" / "podmigrations.yaml"))
    definitions.established(bed.api(), "podmigrations.spotshift.dev")


def open_move(kube: Api, namespace: str, pod: Object, target: str) -> None:
    """As the migrator leaves a move before the eviction."""
    name = f"m-{pod['metadata']['name']}"
    body = {
        "apiVersion": "spotshift.dev/v1alpha1",
        "kind": "PodMigration",
        "metadata": {"name": name},
        "spec": {"podRef": {"name": pod["metadata"]["name"]}},
    }
    kube.create("podmigrations", body, namespace)
    (owner,) = pod["metadata"]["ownerReferences"]
    status = {
        "phase": "InProgress",
        "startedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "resolved": {
            "owner": {key: owner[key] for key in ("apiVersion", "kind", "name", "uid", "controller")},
            "podUid": pod["metadata"]["uid"],
            "sourceNode": pod["spec"]["nodeName"],
            "targetNode": target,
        },
    }
    kube.patch("podmigrations", name, {"status": status}, namespace, subresource="status")


def knows(it: Extender, pod: Object, namespace: str) -> bool:
    """Whether the extender has seen a move of this pod's owner; asked about a node that is nobody's target."""
    series = 'spotshift_extender_targets_total{result="unreachable"}'
    before = it.counted(series)
    stranger = {"metadata": {"namespace": namespace, "ownerReferences": pod["metadata"]["ownerReferences"]}}
    it.post("/filter", {"Pod": stranger, "NodeNames": ["nowhere"]})
    return it.counted(series) > before


def clear(kube: Api, namespace: str) -> None:
    """Remove all pods and their owners, several at a time, which is much quicker than one by one."""
    for owner in kube.list("replicasets", namespace):
        kube.delete("replicasets", owner["metadata"]["name"], namespace, propagationPolicy="Orphan")
    _delete(kube, namespace, kube.list("pods", namespace))


def _delete(kube: Api, namespace: str, pods: Sequence[Object]) -> None:
    def delete(pod: Object) -> None:
        with contextlib.suppress(ApiError):  # gone meanwhile
            kube.delete("pods", pod["metadata"]["name"], namespace, gracePeriodSeconds=0)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(delete, pods))


def _nobody(namespace: str) -> Object:
    """A pod that does not exist, of an owner that does not either."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "nobody", "uid": f"{namespace}-nobody"}
    metadata = {"name": "nobody", "uid": "nobody", "ownerReferences": [{**owner, "controller": True}]}
    return {"metadata": metadata, "spec": {"nodeName": "nowhere"}}


def move_all(kube: Api, namespace: str, it: Extender, names: Sequence[str], rng: random.Random) -> int:
    """Move every pod of the namespace to a node drawn by lot, all at once; how many replacements are on a target.

    Targets are chosen without regard to capacity, spread or load, so that nothing else leads there.
    """
    moved = kube.list("pods", namespace)
    targets = [rng.choice([name for name in names if name != pod["spec"]["nodeName"]]) for pod in moved]
    wanted = Counter((pod["metadata"]["labels"]["app"], target) for pod, target in zip(moved, targets, strict=True))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda pod, target: open_move(kube, namespace, pod, target), moved, targets))
    last = _nobody(namespace)
    open_move(kube, namespace, last, "nowhere-else")
    eventually(lambda: knows(it, last, namespace), what="the last move in the view, and so all before it")
    _delete(kube, namespace, moved)
    gone = {pod["metadata"]["uid"] for pod in moved}
    placed(kube, namespace, len(moved))
    new = [pod for pod in kube.list("pods", namespace) if pod["metadata"]["uid"] not in gone]
    landed = Counter((pod["metadata"]["labels"]["app"], pod["spec"]["nodeName"]) for pod in new)
    return (landed & wanted).total()

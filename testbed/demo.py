"""`make demo`: a control plane, the product in it, and a live picture of what it does to new pods, to full nodes, to
nodes that are to be emptied and to the pods of nodes that are taken away.

It always works on a control plane of its own and never looks at a KUBECONFIG of yours.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.table import Table

from testbed import bed, chart, emptying, install, kubelet, levelling, losing, objects, picture, summary
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.objects import CAPACITY
from testbed.picture import NODE_CPU_MILLIS, POD_CPU_MILLIS
from testbed.watching import watch

BEFORE, WEB, REPLICAS = "before", "web", 12
NODES, SPOT = 3, 3
DASHBOARD = "spotshift-console"
PAUSE_SECONDS = 5.0
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def run(binaries: Binaries, *, console: Console, pause_seconds: float | None = None) -> int:
    """Play the demo; 0 when it showed what it is there to show. Leaves nothing running, however it ends."""
    if pause_seconds is None:
        pause_seconds = PAUSE_SECONDS if console.is_terminal else 0.0
    home = Path(tempfile.mkdtemp(prefix="spotshift-demo-"))
    try:
        return _play(home, binaries, console, pause_seconds)
    finally:
        bed.down(home)
        with suppress(OSError):  # one that was never begun; what is not empty is none of ours
            home.rmdir()
        console.print("The control plane is stopped and removed.")


def _play(home: Path, binaries: Binaries, console: Console, pause_seconds: float) -> int:
    began = time.monotonic()
    console.print("Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, metrics-server ...")
    running = bed.up(home, binaries, owner=os.getpid())
    client = running.api()
    bed.add_nodes(client, objects.pool("", on_demand=NODES, spot=SPOT, cpu=f"{NODE_CPU_MILLIS}m"))
    console.print(f"A real control plane with {NODES + SPOT} nodes is up after {time.monotonic() - began:.1f} s.")
    _create(client, console, BEFORE)
    _watch_until_ready(client, console, REPLICAS, keep=False)
    _install(running, console)
    _create(client, console, WEB)
    pods = _watch_until_ready(client, console, 2 * REPLICAS, keep=True)
    console.print(injected(client.get("deployments", WEB, "default"), picture.of(WEB, pods)[0]))
    time.sleep(pause_seconds)
    console.print(f"{picture.ready(pods)} of {2 * REPLICAS} pods are Running and Ready.")
    failed = (
        _conclude(client.list("nodes"), pods, console)
        or levelling.play(client, console)
        or emptying.play(client, console)
        or losing.play(client, console, WEB)
    )
    _sum_up(client, console, time.monotonic() - began)
    time.sleep(pause_seconds)
    return failed


def _install(running: ControlPlane, console: Console) -> None:
    """The product and its dashboard, each as its own ServiceAccount."""
    console.print("Installing spotshift from its manifests ...")
    began = time.monotonic()
    manifests = running.home / "manifests"
    manifests.mkdir()
    chart.combine(manifests, [install.MANIFESTS], [install.MANIFESTS.parent / "components" / "console"])
    install.install(running, manifests, tell=lambda line: _tell(console, line))
    console.print(f"It is ready after {time.monotonic() - began:.1f} s.")
    (port,) = (
        one.ports["http"]
        for pod in kubelet.remembered(running)
        for one in pod.processes
        if pod.deployment == DASHBOARD
    )
    console.print(f"Watch it in a browser as well: http://127.0.0.1:{port}/")


def _sum_up(client: Api, console: Console, seconds: float) -> None:
    """What happened, in figures."""
    found, pods = summary.moves(client), client.list("pods", "default")
    console.print(summary.table(found))
    ready = f"{picture.ready(pods)} of {len(pods)} pods are Ready"
    console.print(f"{ready} after {len(found)} moves; {summary.doubled(found)} of them had the new pod first.")
    console.print(f"The whole story took {seconds:.0f} s.")


def _tell(console: Console, line: str) -> None:
    if " is ready: " in line:
        console.print(f"  {line}")


def _create(client: Api, console: Console, name: str) -> None:
    client.create("deployments", objects.deployment(name, replicas=REPLICAS, cpu=f"{POD_CPU_MILLIS}m"), "default")
    console.print(f"Created deployment/{name} with {REPLICAS} replicas; the default scheduler places them.")


def _conclude(nodes: Sequence[Object], pods: Sequence[Object], console: Console) -> int:
    spot = {node["metadata"]["name"] for node in nodes if node["metadata"]["labels"][CAPACITY] == "spot"}
    placed = {name: [pod["spec"].get("nodeName") for pod in picture.of(name, pods)] for name in (BEFORE, WEB)}
    before, after = (sum(node in spot for node in placed[name]) for name in (BEFORE, WEB))
    console.print(f"On spot: {before} of {REPLICAS} pods of deployment/{BEFORE}, which came before the installation,")
    console.print(f"         {after} of {REPLICAS} pods of deployment/{WEB}, which came after it.")
    return 0 if after > before and picture.ready(pods) == 2 * REPLICAS else 1


def _watch_until_ready(client: Api, console: Console, wanted: int, *, keep: bool) -> Sequence[Object]:
    apps = (BEFORE, WEB)
    seen = watch(client, console, apps, lambda pods: picture.ready(pods) >= wanted, keep=keep)
    return seen.pods


def injected(deployment: Object, pod: Object) -> Table:
    """What a pod has that its template does not say."""
    table = Table(title=f"what admission added to pod/{pod['metadata']['name']}", title_justify="left")
    table.add_column("field")
    table.add_column("value")
    for field, value in _additions(deployment["spec"]["template"], pod):
        table.add_row(field, value)
    return table


def _additions(template: Object, pod: Object) -> Iterator[tuple[str, str]]:
    known = {*template["metadata"]["labels"], "pod-template-hash"}
    for label, value in pod["metadata"]["labels"].items():
        if label not in known and not label.startswith("topology.kubernetes.io/"):  # the scheduler's
            yield "label", f"{label}={value}"
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    for term in affinity.get(PREFERRED, ()):
        for rule in term["preference"]["matchExpressions"]:
            values = ", ".join(rule.get("values", ()))
            yield "preferred node", f"{rule['key']} {rule['operator']} ({values}), weight {term['weight']}"

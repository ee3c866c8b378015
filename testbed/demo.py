"""`make demo`: a control plane, the product in it, and a live picture of what admission does to new pods.

It always works on a control plane of its own and never looks at a KUBECONFIG of yours.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from testbed import bed, install, objects
from testbed.api import Api, Object
from testbed.binaries import Binaries
from testbed.objects import CAPACITY, ZONE

BEFORE, WEB, REPLICAS = "before", "web", 12
NODES, SPOT = 3, 3
POD_CPU_MILLIS, NODE_CPU_MILLIS = 250, 4000
READY_TIMEOUT_SECONDS = 60.0
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
        console.print("The control plane is stopped and removed.")


def _play(home: Path, binaries: Binaries, console: Console, pause_seconds: float) -> int:
    began = time.monotonic()
    console.print("Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, metrics-server ...")
    running = bed.up(home, binaries, owner=os.getpid())
    client = running.api()
    bed.add_nodes(client, objects.pool("", on_demand=NODES, spot=SPOT, cpu=f"{NODE_CPU_MILLIS}m"))
    console.print(f"A real control plane with {NODES + SPOT} nodes is up after {time.monotonic() - began:.1f} s.")
    _create(client, console, BEFORE)
    _watch_until_ready(client, console, REPLICAS, picture_at_end=False)
    console.print("Installing spotshift from its manifests ...")
    began = time.monotonic()
    install.install(running, tell=lambda line: _tell(console, line))
    console.print(f"It is ready after {time.monotonic() - began:.1f} s.")
    _create(client, console, WEB)
    ready = _watch_until_ready(client, console, 2 * REPLICAS, picture_at_end=True)
    pods = client.list("pods", "default")
    console.print(injected(client.get("deployments", WEB, "default"), _of(WEB, pods)[0]))
    time.sleep(pause_seconds)
    console.print(f"{ready} of {2 * REPLICAS} pods are Running and Ready.")
    return _conclude(client.list("nodes"), pods, console)


def _tell(console: Console, line: str) -> None:
    if " is ready: " in line:
        console.print(f"  {line}")


def _create(client: Api, console: Console, name: str) -> None:
    client.create("deployments", objects.deployment(name, replicas=REPLICAS, cpu=f"{POD_CPU_MILLIS}m"), "default")
    console.print(f"Created deployment/{name} with {REPLICAS} replicas; the default scheduler places them.")


def _conclude(nodes: Sequence[Object], pods: Sequence[Object], console: Console) -> int:
    spot = {node["metadata"]["name"] for node in nodes if node["metadata"]["labels"][CAPACITY] == "spot"}
    before, after = (sum(pod["spec"].get("nodeName") in spot for pod in _of(name, pods)) for name in (BEFORE, WEB))
    console.print(f"On spot: {before} of {REPLICAS} pods of deployment/{BEFORE}, which came before the installation,")
    console.print(f"         {after} of {REPLICAS} pods of deployment/{WEB}, which came after it.")
    return 0 if after > before and _ready(pods) == 2 * REPLICAS else 1


def _watch_until_ready(client: Api, console: Console, wanted: int, *, picture_at_end: bool) -> int:
    """Redraw until so many pods are Ready or the deadline passed; without a terminal only the end is shown."""
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    pods: list[Object] = []
    if not console.is_terminal:
        while time.monotonic() < deadline and _ready(pods := client.list("pods", "default")) < wanted:
            time.sleep(0.2)
        if picture_at_end:
            console.print(picture(client.list("nodes"), pods))
        return _ready(pods)
    with Live(console=console, refresh_per_second=8, transient=not picture_at_end) as live:
        while time.monotonic() < deadline and _ready(pods) < wanted:
            pods = client.list("pods", "default")
            live.update(picture(client.list("nodes"), pods))
            time.sleep(0.1)
    return _ready(pods)


def picture(nodes: Sequence[Object], pods: Sequence[Object]) -> Group:
    """Nodes with their load and pods: ● is Ready, ○ is on its way."""
    table = Table(title="nodes and their pods", title_justify="left")
    for heading in ("node", "capacity", "zone", "cpu requested", BEFORE, WEB):
        table.add_column(heading, no_wrap=True)
    for node in nodes:
        labels: Mapping[str, str] = node["metadata"]["labels"]
        name = node["metadata"]["name"]
        here = [pod for pod in pods if pod["spec"].get("nodeName") == name]
        used = len(here) * POD_CPU_MILLIS
        bar = ProgressBar(total=NODE_CPU_MILLIS, completed=used, width=20)
        load = Table.grid(padding=(0, 1))
        load.add_row(bar, f"{used * 100 // NODE_CPU_MILLIS:>3} %")
        style = "yellow" if labels[CAPACITY] == "spot" else "cyan"
        capacity = Text(labels[CAPACITY], style=style)
        table.add_row(name, capacity, labels[ZONE], load, *(_dots(_of(app, here)) for app in (BEFORE, WEB)))
    pending = sum(not pod["spec"].get("nodeName") for pod in pods)
    return Group(table, Text(f"{_ready(pods)} Ready, {pending} not yet scheduled"))


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


def _dots(pods: Sequence[Object]) -> str:
    return f"{''.join('●' if objects.is_ready(pod) else '○' for pod in pods)} {len(pods)}".lstrip()


def _of(app: str, pods: Sequence[Object]) -> list[Object]:
    return [pod for pod in pods if pod["metadata"]["labels"]["app"] == app]


def _ready(pods: Sequence[Object]) -> int:
    return sum(objects.is_ready(pod) for pod in pods)

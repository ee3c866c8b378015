"""`make demo`: a control plane, nodes, a workload, and a live picture of where its pods are.

It always works on a control plane of its own and never looks at a KUBECONFIG of yours.
"""

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from testbed import bed, objects
from testbed.api import Api, Object
from testbed.binaries import Binaries
from testbed.objects import CAPACITY, ZONE

NAME, REPLICAS = "web", 18
NODES, SPOT = 3, 3
POD_CPU_MILLIS, NODE_CPU_MILLIS = 500, 4000
READY_TIMEOUT_SECONDS = 60.0
PAUSE_SECONDS = 5.0


def run(binaries: Binaries, *, console: Console, pause_seconds: float | None = None) -> int:
    """Play the demo; 0 when every pod became Ready. Leaves nothing running, however it ends."""
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
    bed.add_nodes(running.api(), objects.pool("", on_demand=NODES, spot=SPOT, cpu=f"{NODE_CPU_MILLIS}m"))
    console.print(f"A real control plane with {NODES + SPOT} nodes is up after {time.monotonic() - began:.1f} s.")
    client = running.api()
    workload = objects.deployment(NAME, replicas=REPLICAS, cpu=f"{POD_CPU_MILLIS}m")
    client.create("deployments", workload, "default")
    console.print(f"Created deployment/{NAME} with {REPLICAS} replicas; the default scheduler places them:")
    ready = _watch_until_ready(client, console)
    time.sleep(pause_seconds)
    console.print(f"{ready} of {REPLICAS} pods are Running and Ready.")
    return 0 if ready == REPLICAS else 1


def _watch_until_ready(client: Api, console: Console) -> int:
    """Redraw until every pod is Ready or the deadline passed; without a terminal only the last picture is shown."""
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    pods: list[Object] = []
    if not console.is_terminal:
        while time.monotonic() < deadline and _ready(pods := client.list("pods", "default")) < REPLICAS:
            time.sleep(0.2)
        console.print(picture(client.list("nodes"), pods))
        return _ready(pods)
    with Live(console=console, refresh_per_second=8) as live:
        while time.monotonic() < deadline and _ready(pods) < REPLICAS:
            pods = client.list("pods", "default")
            live.update(picture(client.list("nodes"), pods))
            time.sleep(0.1)
    return _ready(pods)


def picture(nodes: Sequence[Object], pods: Sequence[Object]) -> Group:
    """Nodes with their load and pods: ● is Ready, ○ is on its way."""
    table = Table(title="nodes and their pods", title_justify="left")
    for heading in ("node", "capacity", "zone", "cpu requested", "pods"):
        table.add_column(heading, no_wrap=True)
    for node in nodes:
        labels: Mapping[str, str] = node["metadata"]["labels"]
        name = node["metadata"]["name"]
        here = [pod for pod in pods if pod["spec"].get("nodeName") == name]
        used = len(here) * POD_CPU_MILLIS
        dots = "".join("●" if objects.is_ready(pod) else "○" for pod in here)
        bar = ProgressBar(total=NODE_CPU_MILLIS, completed=used, width=20)
        load = Table.grid(padding=(0, 1))
        load.add_row(bar, f"{used * 100 // NODE_CPU_MILLIS:>3} %")
        style = "yellow" if labels[CAPACITY] == "spot" else "cyan"
        table.add_row(name, Text(labels[CAPACITY], style=style), labels[ZONE], load, f"{dots} {len(here)}")
    pending = sum(not pod["spec"].get("nodeName") for pod in pods)
    return Group(table, Text(f"{_ready(pods)} Ready, {pending} not yet scheduled"))


def _ready(pods: Sequence[Object]) -> int:
    return sum(objects.is_ready(pod) for pod in pods)

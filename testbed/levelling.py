"""The second half of `make demo`: a workload comes up on one node, and the product levels it, live."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext

from rich.console import Console
from rich.live import Live

from testbed import objects, picture
from testbed.api import Api, Object
from testbed.picture import POD_CPU_MILLIS
from testbed.waiting import eventually

PILE, REPLICAS = "pile", 10
SYSTEM, SETTINGS = "spotshift-system", "spotshift-settings"
POLICY = """\
apiVersion: spotshift.dev/v1alpha1
kind: Policy
reschedulingInterval: 1s      # 30s by default
limits: {minPodAge: 0s}       # 5m by default
enabledStrategies: [LoadBalancing]
"""
OVER_MEAN = 1.2
"""What the product calls too full by default."""
TIMEOUT_SECONDS = 180.0
ENDED = ("Completed", "Failed", "Cancelled")


def play(client: Api, console: Console) -> int:
    """0 if the full node was relieved and all pods are Ready."""
    nodes = client.list("nodes")
    full, *others = (node["metadata"]["name"] for node in nodes)
    everything = len(client.list("pods", "default")) + REPLICAS
    _cordon(client, others, cordoned=True)
    client.create("deployments", objects.deployment(PILE, replicas=REPLICAS, cpu=f"{POD_CPU_MILLIS}m"), "default")
    pods = eventually(
        lambda: client.list("pods", "default"),
        until=lambda found: picture.ready(found) == everything,
        timeout=TIMEOUT_SECONDS,
        what="the pods of the pile",
    )
    _cordon(client, others, cordoned=False)
    before = _counts(nodes, pods)
    console.print(f"Created deployment/{PILE} while all nodes but {full} were cordoned; now they are not.")
    if not console.is_terminal:
        console.print(picture.draw(nodes, pods, (PILE,)))
    client.patch("configmaps", SETTINGS, {"data": {"settings.yaml": POLICY}}, SYSTEM)
    console.print("The descheduler may move young pods from now on, and looks every second.")
    began = time.monotonic()
    after = _watch(client, console, nodes, full, everything)
    moves = [it.get("status", {}) for it in client.list("podmigrations", "default")]
    on_target = sum(bool(it.get("onTarget")) for it in moves)
    console.print(
        f"{full} went from {picture.percent(before[full])} % to {picture.percent(after[full])} % in "
        f"{time.monotonic() - began:.1f} s: {len(moves)} moves, {on_target} of them to the node that was planned."
    )
    return 0 if _relieved(after, full) and on_target else 1


def _watch(client: Api, console: Console, nodes: Sequence[Object], full: str, everything: int) -> Counter[str]:
    """Redraw until it is level; without a terminal only the end is shown."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    show = Live(console=console, refresh_per_second=8) if console.is_terminal else nullcontext()
    with show as live:
        while True:
            pods = client.list("pods", "default")
            if live is not None:
                live.update(picture.draw(nodes, pods, (PILE,)))
            if _done(client, nodes, pods, full, everything) or time.monotonic() > deadline:
                break
            time.sleep(0.2)
    if live is None:
        console.print(picture.draw(nodes, pods, (PILE,)))
    return _counts(nodes, pods)


def _done(client: Api, nodes: Sequence[Object], pods: Sequence[Object], full: str, everything: int) -> bool:
    if len(pods) != everything or picture.ready(pods) != everything or not _relieved(_counts(nodes, pods), full):
        return False
    return all(it.get("status", {}).get("phase") in ENDED for it in client.list("podmigrations", "default"))


def _relieved(counts: Counter[str], full: str) -> bool:
    """The others are as the scheduler made them; a spot node among them may stay fuller, for its pods prefer spot."""
    return counts[full] <= OVER_MEAN * counts.total() / len(counts)


def _counts(nodes: Sequence[Object], pods: Sequence[Object]) -> Counter[str]:
    found = Counter({node["metadata"]["name"]: 0 for node in nodes})
    found.update(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
    return found


def _cordon(client: Api, names: Sequence[str], *, cordoned: bool) -> None:
    for name in names:
        client.patch("nodes", name, {"spec": {"unschedulable": cordoned or None}})

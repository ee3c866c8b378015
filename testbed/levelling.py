"""The second act of `make demo`: a workload comes up on one node, and the product levels it, live."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from testbed import cordons, objects, picture, settings, summary
from testbed.api import Api, Object
from testbed.picture import POD_CPU_MILLIS
from testbed.waiting import eventually
from testbed.watching import TIMEOUT_SECONDS, all_ready, watch

PILE, REPLICAS = "pile", 10
OVER_MEAN = 1.2
"""What the product calls too full by default."""


def play(client: Api, console: Console) -> int:
    """0 if the full node was relieved and all pods are Ready."""
    nodes = client.list("nodes")
    full, *others = (node["metadata"]["name"] for node in nodes)
    everything = len(client.list("pods", "default")) + REPLICAS
    cordons.cordon(client, others)
    client.create("deployments", objects.deployment(PILE, replicas=REPLICAS, cpu=f"{POD_CPU_MILLIS}m"), "default")
    pods = eventually(
        lambda: client.list("pods", "default"),
        until=lambda found: picture.ready(found) == everything,
        timeout=TIMEOUT_SECONDS,
        what="the pods of the pile",
    )
    cordons.uncordon(client, others)
    before = _counts(nodes, pods)
    console.print(f"Created deployment/{PILE} while all nodes but {full} were cordoned; now they are not.")
    if not console.is_terminal:
        console.print(picture.draw(nodes, pods, (PILE,), console.width))
    settings.apply(client, enabledStrategies=["LoadBalancing"])
    console.print("The descheduler may move young pods from now on, and looks every second.")
    seen = watch(client, console, (PILE,), lambda pods: _done(client, nodes, pods, full, everything))
    after = _counts(nodes, seen.pods)
    moves = summary.moves(client)
    on_target = sum(it.on_target for it in moves)
    console.print(
        f"{full} went from {picture.percent(before[full])} % to {picture.percent(after[full])} % in "
        f"{seen.seconds:.1f} s: {len(moves)} moves, {on_target} of them to the node that was planned."
    )
    return 0 if seen.reached and on_target else 1


def _done(client: Api, nodes: Sequence[Object], pods: Sequence[Object], full: str, everything: int) -> bool:
    if not all_ready(pods, everything) or not _relieved(_counts(nodes, pods), full):
        return False
    return all(it.ended for it in summary.moves(client))


def _relieved(counts: Counter[str], full: str) -> bool:
    """The others are as the scheduler made them; a spot node among them may stay fuller, for its pods prefer spot."""
    return counts[full] <= OVER_MEAN * counts.total() / len(counts)


def _counts(nodes: Sequence[Object], pods: Sequence[Object]) -> Counter[str]:
    found = Counter({node["metadata"]["name"]: 0 for node in nodes})
    found.update(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
    return found

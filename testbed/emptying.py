"""The third act of `make demo`: a node is to be emptied, and the only replica of a service on it stays up."""

from collections.abc import Sequence

from rich.console import Console

from testbed import objects, picture, settings
from testbed.api import Api, Object
from testbed.picture import POD_CPU_MILLIS
from testbed.waiting import eventually
from testbed.watching import TIMEOUT_SECONDS, all_ready, on, watch

SOLO = "solo"
PREFIX = "scheduler.alpha.kubernetes.io/"
LABEL, STATUS = f"{PREFIX}maintenance", f"{PREFIX}maintenance-status"


def play(client: Api, console: Console) -> int:
    """0 if the node was emptied and given back, and the only replica was never missed."""
    settings.apply(client, enabledStrategies=["NodeMaintenance"])
    wanted = len(client.list("pods", "default")) + 1
    node = _alone(client, wanted)
    leaving = len(on([node], client.list("pods")))
    console.print(f"Created deployment/{SOLO} with one replica, which avoids spot; it runs on {node}.")
    console.print(f"Label {LABEL}=true on {node}: its {leaving} pods leave.")
    client.patch("nodes", node, {"metadata": {"labels": {LABEL: "true"}}})
    looks: list[int] = []

    def emptied(pods: Sequence[Object]) -> bool:
        looks.append(picture.ready(picture.of(SOLO, pods)))
        return all_ready(pods, wanted) and not on([node], pods) and _status(client, node) == "drained"

    seen = watch(client, console, (SOLO,), emptied)
    client.patch("nodes", node, {"metadata": {"labels": {LABEL: None}}})
    eventually(lambda: _given_back(client, node), timeout=TIMEOUT_SECONDS, what=f"{node} to be given back")
    if seen.reached and min(looks):
        console.print(f"{node} was empty after {seen.seconds:.1f} s, and takes pods again without the label.")
        console.print(f"At each of {len(looks)} looks deployment/{SOLO} had a Ready pod: the new one came first.")
    else:
        console.print(f"{node} was not emptied in time, or deployment/{SOLO} was missed.")
    return 0 if seen.reached and min(looks) else 1


def _alone(client: Api, wanted: int) -> str:
    """Create the service, and tell where its only pod is."""
    body = objects.deployment(SOLO, cpu=f"{POD_CPU_MILLIS}m", annotations={f"{PREFIX}spot": "avoid"})
    client.create("deployments", body, "default")
    pods = eventually(
        lambda: client.list("pods", "default"),
        until=lambda found: all_ready(found, wanted),
        timeout=TIMEOUT_SECONDS,
        what=f"the pod of {SOLO}",
    )
    return str(picture.of(SOLO, pods)[0]["spec"]["nodeName"])


def _status(client: Api, node: str) -> str:
    return str(client.get("nodes", node)["metadata"]["annotations"].get(STATUS, ""))


def _given_back(client: Api, node: str) -> bool:
    return not client.get("nodes", node)["spec"].get("unschedulable") and not _status(client, node)

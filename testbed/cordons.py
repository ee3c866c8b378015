"""Nodes that take no new pods.

The scheduler hears of a cordon in its own time and uses the node until then. Whoever counts on it waits for that:
once the scheduler knows, it refuses a pod that may go to these nodes only.
"""

import contextlib
import secrets
from collections.abc import Collection, Iterator
from typing import Any

from testbed import objects
from testbed.api import Api, Object
from testbed.waiting import eventually

NAMESPACE = "kube-system"
"""Where no webhook of a test or of the product changes a pod."""


def cordon(client: Api, names: Collection[str]) -> None:
    """Close them; the scheduler knows when this returns."""
    _patch(client, names, unschedulable=True)
    if names:
        eventually(lambda: _avoided(client, names), what=f"the scheduler to know that {', '.join(names)} are closed")


def uncordon(client: Api, names: Collection[str]) -> None:
    """Open them again, which the scheduler knows soon."""
    _patch(client, names, unschedulable=None)


@contextlib.contextmanager
def cordoned(client: Api, names: Collection[str]) -> Iterator[None]:
    """For the time of the block, and longer if it fails: a failure shows what there was."""
    cordon(client, names)
    yield
    uncordon(client, names)


def _patch(client: Api, names: Collection[str], *, unschedulable: bool | None) -> None:
    for name in names:
        client.patch("nodes", name, {"spec": {"unschedulable": unschedulable}})


def _avoided(client: Api, names: Collection[str]) -> bool:
    """What the scheduler says of a pod that may go nowhere else."""
    asking = f"asks-the-scheduler-{secrets.token_hex(4)}"
    pod = objects.pod(asking, cpu="0", memory="0", affinity=_only(names))  # a full node is no reason to refuse it
    client.create("pods", pod, NAMESPACE)
    try:
        answered = eventually(
            lambda: client.get("pods", asking, NAMESPACE), until=_is_judged, what="a word of the scheduler"
        )
    finally:
        client.delete("pods", asking, NAMESPACE, gracePeriodSeconds=0)
    return "nodeName" not in answered["spec"]


def _only(names: Collection[str]) -> Object:
    def term(name: str) -> Object:
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}

    terms = [term(name) for name in names]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _is_judged(pod: Object) -> bool:
    conditions: list[dict[str, Any]] = pod.get("status", {}).get("conditions") or []
    return "nodeName" in pod["spec"] or any(
        (it["type"], it.get("reason")) == ("PodScheduled", "Unschedulable") for it in conditions
    )

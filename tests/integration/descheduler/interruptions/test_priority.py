"""A full cluster: an interrupted critical pod pushes out a batch pod on on-demand, and nothing else does."""

from collections.abc import Iterator

import pytest

from testbed import objects
from testbed.api import Object
from testbed.waiting import eventually
from tests.integration.descheduler.interruptions.product import Product
from tests.integration.descheduler.interruptions.scene import KEYS, Scene

CLASSES = {"high-priority": 1000, "batch-priority": -100}


@pytest.fixture(scope="module", autouse=True)
def classes(running: Product) -> Iterator[None]:
    """Those that the manifests bring."""
    for name, value in CLASSES.items():
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        running.kube.create("priorityclasses", {**kind, "metadata": {"name": name}, "value": value})
    yield
    for name in CLASSES:
        running.kube.delete("priorityclasses", name)


def tiered(name: str, tier: str, *, cpu: str) -> Object:
    """Two pods, as the webhook would leave them."""
    found = {"critical": "high-priority", "batch": "batch-priority"}.get(tier, "")
    return objects.deployment(name, replicas=2, annotations={KEYS.tier: tier}, priorityClassName=found, cpu=cpu)


def test_a_critical_pod_pre_empts_a_batch_pod_on_on_demand(on: Scene) -> None:
    lost, spot = on.pool(spot=2, cpu="2")
    (steady,) = on.pool(on_demand=1, cpu="2")
    with on.only(steady):
        on.create("deployments", tiered("batch", "batch", cpu="900m"))
        on.settle(2)
    with on.only(spot):
        on.create("deployments", tiered("standard", "standard", cpu="900m"))
        on.settle(4)
    with on.only(lost):
        on.create("deployments", tiered("critical", "critical", cpu="500m"))
        on.create("deployments", tiered("plain", "standard", cpu="400m"))
        on.settle(8)
    on.taint(lost)
    eventually(
        lambda: on.where(app="critical"),
        until=lambda it: sorted(it.values()) == [steady, steady],
        timeout=60,
        what="the critical pods on on-demand",
    )
    causes = {it["spec"]["podRef"]["name"]: it["spec"]["cause"] for it in on.moves()}
    counting = {pod: why for pod, why in causes.items() if "has to pre-empt" in why}
    (told,) = counting.values()  # what one victim leaves is enough for both
    assert f"kube-scheduler has to pre-empt {on.namespace}/batch-" in told, "the plan names the victim"
    assert all(pod.startswith("critical-") for pod in counting), "a standard pod counts on nobody"
    assert sorted(on.where(app="standard").values()) == [spot, spot]
    waiting = eventually(lambda: [it for it in on.pods() if not it["spec"].get("nodeName")], timeout=20)
    assert {it["metadata"]["labels"]["app"] for it in waiting} <= {"batch", "plain"}, "pending, for all to see"


def test_where_there_is_room_nobody_is_pushed_out(on: Scene) -> None:
    (lost,) = on.pool(spot=1, cpu="2")
    (steady,) = on.pool(on_demand=1, cpu="4")
    with on.only(steady):
        on.create("deployments", tiered("batch", "batch", cpu="900m"))
        on.settle(2)
    with on.only(lost):
        on.create("deployments", tiered("critical", "critical", cpu="500m"))
        on.settle(4)
    batch = on.where(app="batch")
    on.taint(lost)
    eventually(lambda: set(on.where(app="critical").values()), until=lambda it: it == {steady}, timeout=60)
    assert on.where(app="batch") == batch

"""What comes too late: the request of a process that stood still, and the end of a pod that was to be moved."""

import pytest

from policy import keys
from testbed.waiting import eventually
from tests.integration.descheduler.moves import crashes, oracle, product
from tests.integration.descheduler.moves.crashes import STEPS
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import Scene


@pytest.mark.parametrize(
    "at",
    [
        "evict",
        "mark the pod",
        *(pytest.param(it, marks=pytest.mark.campaign) for it in ("mark the workload", "announce: Evict")),
    ],
)
def test_what_a_stale_leader_sends_after_a_cancel_has_no_effect(running: Product, on: Scene, at: str) -> None:
    step = STEPS[at]

    def late() -> int:
        return oracle.seen(running.bed, on.namespace, step.verb, step.resource)

    pod = on.kube.get("pods", on.a_pod(), on.namespace)["metadata"]
    with crashes.held(running, step) as request:
        name = product.ask_for(on.kube, on.namespace, pod["name"], target=on.target)
        stale, _ = request.reached()
        running.pause(stale)
        on.kube.delete("podmigrations", name, on.namespace)
        running.leader(but=stale)
        eventually(lambda: not product.migrations(on.kube, on.namespace), timeout=60, what="the end of the move")
        before = late()
        request.open()
        running.resume(stale)
        eventually(lambda: late() > before, what="the late request")
    assert on.left() == []
    assert pod["name"] not in {it.name for it in oracle.evictions(running.bed) if it.namespace == on.namespace}
    assert on.kube.get("pods", pod["name"], on.namespace)["metadata"]["uid"] == pod["uid"]


def test_a_pod_that_ends_while_it_is_moved_keeps_no_marks(running: Product, on: Scene) -> None:
    """As when its kubelet ends it under pressure: what is left of the pod says nothing of a move."""
    name, ours = on.a_pod(), keys.under()

    def marks() -> set[str]:
        meta = on.kube.get("pods", name, on.namespace)["metadata"]
        return {*ours.migration_labels, *ours.migration_annotations} & {*meta["labels"], *meta.get("annotations", {})}

    with crashes.held(running, STEPS["evict"]) as request:
        move = product.ask_for(on.kube, on.namespace, name, target=on.target)
        request.reached()
        assert marks()
        on.kube.patch("pods", name, {"status": {"phase": "Failed"}}, on.namespace, subresource="status")
    eventually(
        lambda: on.kube.get("podmigrations", move, on.namespace).get("status", {}),
        until=lambda it: it.get("phase") in {"Completed", "Failed", "Cancelled"},
        timeout=60,
        what="the end of the move",
    )
    eventually(lambda: not marks(), timeout=60, what="a pod without marks")

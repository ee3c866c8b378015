"""A process that stood still sends what it had decided, when another has long ended the move."""

import pytest

from testbed.waiting import eventually
from tests.integration.descheduler.moves import crashes, oracle, product
from tests.integration.descheduler.moves.crashes import STEPS
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import Scene


@pytest.mark.parametrize("at", ["mark the pod", "mark the workload", "announce: Evict", "evict"])
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

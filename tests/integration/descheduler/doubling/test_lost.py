"""The descheduler is lost at the very request that changes something; whoever follows goes on, or back."""

from dataclasses import dataclass

import pytest

from testbed.faults import Gate, Verb
from testbed.waiting import eventually
from tests.integration.descheduler.doubling.scene import END_SECONDS, Scene

pytestmark = pytest.mark.campaign


@dataclass(frozen=True, slots=True)
class Moment:
    """A request of a Surge."""

    resource: str
    body: str
    called_off: bool = False
    """On the way back only."""
    verb: Verb = "patch"


STATUS = "podmigrations/status"
MOMENTS = {
    "announce the raise": Moment(STATUS, '"step":"SurgeUp"'),
    "raise": Moment("deployments/scale", '"replicas":2'),
    "claim the new pod": Moment(STATUS, '"replacement":'),
    "announce the lowering": Moment(STATUS, '"step":"SurgeDown"'),
    "set the cost": Moment("pods", "pod-deletion-cost"),
    "lower": Moment("deployments/scale", '"replicas":1'),
    "announce the way back": Moment(STATUS, '"step":"SurgeBack"', called_off=True),
    "unmark the workload": Moment("deployments", 'moving":null', called_off=True),
    "turn the costs round": Moment("pods", "pod-deletion-cost", called_off=True),
    "lower on the way back": Moment("deployments/scale", '"replicas":1', called_off=True),
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS.keys())
def test_killed_at(scene: Scene, moment: Moment, after: bool) -> None:
    (pod,) = scene.deploy(spec={"minReadySeconds": 30 if moment.called_off else 0})
    gate, proxy = Gate(after=after), scene.process.proxy
    rule = proxy.rules.add(gate, verb=moment.verb, resource=moment.resource, body=moment.body, count=1)
    name = scene.ask(pod)
    if moment.called_off:
        scene.reach(name, "AwaitAvailable")
        scene.wait_ready(2)
        scene.kube.delete("podmigrations", name, scene.namespace)
    assert gate.reached.wait(END_SECONDS), scene.process.tail()
    scene.process.kill()
    proxy.rules.remove(rule)
    gate.opened.set()
    scene.process.again()
    if moment.called_off:
        left = eventually(
            lambda: scene.kube.list("podmigrations", scene.namespace), until=lambda it: not it, timeout=END_SECONDS
        )
        assert left == []
        eventually(scene.names, until=lambda names: names == [pod], what="the original alone")
    else:
        status = scene.end(name)
        assert status["phase"] == "Completed", status
        eventually(
            scene.names, until=lambda names: names == [status["replacement"]["name"]], what="the new pod alone"
        )
    assert scene.deployment()["spec"]["replicas"] == 1
    assert scene.left() == []
    assert scene.fewest == 1

"""The way back to spot: nothing is evicted for nothing, whole nodes become free, and nobody is sent to and fro."""

from collections.abc import Iterator

import pytest

from testbed import objects
from testbed.binaries import Binaries
from testbed.waiting import eventually
from tests.e2e import capacity
from tests.e2e.capacity import PATIENCE_SECONDS, PREFIX, Scene

SPOT = ("t-spot-0", "t-spot-1", "t-spot-2")
ON_DEMAND = ("t-on-demand-0", "t-on-demand-1", "t-on-demand-2")
REPLICAS = 20
FULL = {"cpu": "7500m", "memory": "64Mi", "nodeSelector": {objects.CAPACITY: "spot"}}
"""One such pod leaves no room on a spot node for any of ours."""


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("reclaim") / "bed"
    with capacity.product(home, control_plane_binaries, nodes=3, spot=3) as running:
        made = Scene(running, "reclaimed")
        made.configure()
        yield made


def allow(scene: Scene, *, min_stay: str = "0s") -> None:
    limits = {"minPodAge": "0s", "perWorkload": 5}
    strategies = {"SpotReclaim": {"minStay": min_stay}}
    scene.configure("SpotReclaim", "LoadBalancing", limits=limits, strategies=strategies)


def fill(scene: Scene) -> None:
    """Spot is full, and the pods that prefer it are on on-demand."""
    filler = objects.deployment("filler", replicas=3, annotations={f"{PREFIX}rescheduling": "disabled"}, **FULL)
    scene.kube.create("deployments", filler, scene.namespace)
    scene.settle("filler", 3)
    web = objects.deployment("web", replicas=REPLICAS, cpu="600m", terminationGracePeriodSeconds=1)
    scene.kube.create("deployments", web, scene.namespace)
    scene.settle("web", REPLICAS)
    assert scene.sides("web") == {"on-demand": REPLICAS}


def uids(scene: Scene) -> set[str]:
    return {it["metadata"]["uid"] for it in scene.pods("web")}


def back(scene: Scene) -> None:
    eventually(
        lambda: (scene.sides("web"), scene.open_moves()),
        until=lambda it: it == ({"spot": REPLICAS}, []),
        timeout=PATIENCE_SECONDS,
        what="all pods on spot",
    )


@pytest.mark.parametrize(
    "passes",
    [
        pytest.param(8, id="seconds"),
        pytest.param(600, id="ten minutes", marks=[pytest.mark.campaign, pytest.mark.timeout(1200)]),
    ],
)
def test_no_room_no_eviction_then_back_and_not_again(scene: Scene, passes: int) -> None:
    fill(scene)
    before = uids(scene)
    allow(scene)
    for _ in range(passes // 4):
        scene.passes(4)
    refused = scene.measured("spotshift_refusals_total")
    assert (scene.moved, uids(scene)) == ({}, before), "not one eviction"
    assert sum(refused.values()) > 0, "but it was looked at"

    scene.kube.delete("deployments", "filler", scene.namespace)
    back(scene)
    assert set(scene.moved.values()) == {"SpotReclaim"}
    assert len(scene.moved) == REPLICAS, "each once"
    scene.passes()
    assert len(scene.moved) == REPLICAS

    allow(scene, min_stay="1h")  # as long as the rest of the test
    scene.cordon(*SPOT)
    for pod in scene.pods("web"):
        scene.kube.delete("pods", pod["metadata"]["name"], scene.namespace)
    scene.settle("web", REPLICAS)
    scene.cordon(*SPOT, cordoned=False)
    scene.passes(4)
    assert scene.sides("web") == {"on-demand": REPLICAS}, "they have just come"
    allow(scene)
    back(scene)
    assert len(scene.moved) == 2 * REPLICAS


def test_whole_nodes_become_free(scene: Scene) -> None:
    """Room on spot for a part of the pods: the node with the fewest is emptied, and not a little of each."""
    scene.cordon(*SPOT)
    for node, replicas in zip(ON_DEMAND, (2, 5, 5), strict=True):
        others = [it for it in ON_DEMAND if it != node]
        scene.cordon(*others)
        body = objects.deployment(node, replicas=replicas, cpu="1100m", terminationGracePeriodSeconds=1)
        scene.kube.create("deployments", body, scene.namespace)
        scene.settle(node, replicas)
        scene.cordon(*others, cordoned=False)
    scene.configure("SpotReclaim", strategies={"SpotReclaim": {"minStay": "0s"}}, limits={"minPodAge": "0s"})
    scene.cordon(SPOT[0], cordoned=False)  # eight cores, in which seven of the twelve pods fit
    eventually(
        lambda: (scene.nodes_of(), scene.open_moves()),
        until=lambda it: it[0][SPOT[0]] == 7 and not it[1],
        timeout=PATIENCE_SECONDS,
        what="a full spot node",
    )
    scene.passes()
    left = scene.nodes_of()
    assert sorted(left[name] for name in ON_DEMAND) == [0, 0, 5]

"""A mix of spot and on-demand through two replicas of the webhook, and what brings it back when it is lost."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from policy.mix import Mix
from testbed import objects
from testbed.binaries import Binaries
from testbed.waiting import eventually
from tests.e2e import capacity
from tests.e2e.capacity import PATIENCE_SECONDS, PREFIX, Scene

WEB = Mix(70)
KEPT = Mix(100, 2)


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("mix") / "bed"
    with capacity.product(home, control_plane_binaries, nodes=5, spot=5) as running:
        made = Scene(running, "mixed")
        made.configure()  # admission alone
        yield made


def create(scene: Scene, name: str, replicas: int, **mix: str) -> None:
    body = objects.deployment(name, replicas=replicas, terminationGracePeriodSeconds=1)
    body["metadata"]["annotations"] = {PREFIX + key.replace("_", "-"): value for key, value in mix.items()}
    scene.kube.create("deployments", body, scene.namespace)
    scene.settle(name, replicas)


def assert_near(scene: Scene, replicas: int) -> int:
    """What admission alone has made of it; how many moves are needed at least."""
    found = scene.sides("web")
    off = abs(found["spot"] - WEB.spot(replicas))
    assert off <= replicas // 10, found
    print(f"{replicas} replicas by admission: {dict(found)}, {off} off")  # noqa: T201 - the figures
    return off


def assert_corrected(scene: Scene, replicas: int, least: int) -> None:
    """The strategy brings it to the mix with hardly a move too many, and then leaves it in peace."""
    scene.moves()
    before = len(scene.moved)
    scene.configure("SpotMix", "LoadBalancing", "SpotReclaim")
    eventually(
        lambda: (scene.sides("web"), scene.moves()),
        until=lambda it: abs(it[0]["spot"] - WEB.spot(replicas)) <= 1 and it[0].total() == replicas,
        timeout=PATIENCE_SECONDS,
        what="the mix",
    )
    scene.passes()
    scene.settle("web", replicas)
    moves = Counter(list(scene.moved.values())[before:])
    print(f"{replicas} replicas by {dict(moves)}, {least} needed: {dict(scene.sides('web'))}")  # noqa: T201 - the figures
    assert moves["SpotMix"] <= least + 1, moves
    assert abs(scene.sides("web")["spot"] - WEB.spot(replicas)) <= 1
    assert scene.sides("kept")["on-demand"] >= KEPT.min_on_demand
    scene.configure()


def test_a_burst_through_two_replicas(scene: Scene) -> None:
    create(scene, "kept", 8, min_on_demand="2")
    assert scene.sides("kept") == {"on-demand": 2, "spot": 6}
    create(scene, "web", 50, spot_percentage="70")
    deciders = {it["metadata"]["annotations"][f"{PREFIX}decided-by"] for it in scene.pods("web")}
    assert len(deciders) == 2, "both replicas were asked"
    chosen = scene.measured("spotshift_mix_choices_total", "spotshift-webhook")
    assert sum(chosen.values()) == 58
    assert_corrected(scene, 50, assert_near(scene, 50))

    rng = random.Random(7)
    names = sorted(it["metadata"]["name"] for it in scene.pods("web"))
    for name in rng.sample(names, 20):
        scene.kube.delete("pods", name, scene.namespace)
    scene.settle("web", 50)
    assert_corrected(scene, 50, assert_near(scene, 50))


@pytest.mark.campaign
def test_scaled_down_and_up_and_interrupted(scene: Scene) -> None:
    create(scene, "kept", 8, min_on_demand="2")
    create(scene, "web", 50, spot_percentage="70")
    scene.scale("web", 20)
    scene.settle("web", 20)
    off = abs(scene.sides("web")["spot"] - WEB.spot(20))
    print(f"20 of 50 that the controller left: {dict(scene.sides('web'))}")  # noqa: T201 - the figures
    assert_corrected(scene, 20, off)
    scene.scale("web", 60)
    scene.settle("web", 60)
    assert_corrected(scene, 60, assert_near(scene, 60))

    lost = max(it for it in scene.nodes_of("web") if it.startswith("t-spot-"))
    scene.cordon(lost)
    for pod in scene.pods():
        if pod["spec"].get("nodeName") == lost:
            scene.kube.delete("pods", pod["metadata"]["name"], scene.namespace)
    scene.settle("web", 60)
    assert_corrected(scene, 60, assert_near(scene, 60))
    scene.cordon(lost, cordoned=False)


@pytest.mark.campaign
def test_pods_that_found_no_room_on_their_side_go_there_when_there_is(scene: Scene) -> None:
    spot = [it for it in scene.kube.list("nodes") if it["metadata"]["labels"][objects.CAPACITY] == "spot"]
    names = [it["metadata"]["name"] for it in spot]
    scene.cordon(*names)
    create(scene, "kept", 8, min_on_demand="2")
    create(scene, "web", 10, spot_percentage="70")
    assert scene.sides() == {"on-demand": 18}
    scene.configure("SpotMix", "LoadBalancing")
    scene.passes()
    assert not scene.moved, "nothing fits, nothing is moved"
    scene.cordon(*names, cordoned=False)
    assert_corrected(scene, 10, 7 + 6)
    assert scene.sides("kept") == {"on-demand": 2, "spot": 6}

"""Mixes and the way back to spot: two replicas of the webhook, the real scheduler and controllers, real moves."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from policy.mix import Mix
from testbed import bed, objects, pytest_plugin
from testbed.api import Object
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.waiting import eventually
from tests.e2e import capacity
from tests.e2e.capacity import PATIENCE_SECONDS, PREFIX, Scene

EXAMPLES = Path(__file__).parents[2] / "manifests" / "examples"
SPOT = tuple(f"t-spot-{number}" for number in range(5))
ON_DEMAND = tuple(f"t-on-demand-{number}" for number in range(5))
WEB = Mix(70)
KEPT = Mix(100, 2)
TAINT = {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}
"""What some platforms put on every spot node."""
NOTICE = {"key": "aws-node-termination-handler/spot-itn", "value": "notice", "effect": "NoSchedule"}
FULL = {"cpu": "7500m", "memory": "64Mi", "nodeSelector": {objects.CAPACITY: "spot"}}
"""One such pod leaves no room on a spot node for any of ours."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("spot") / "bed"
    with capacity.product(home, control_plane_binaries, nodes=len(ON_DEMAND), spot=len(SPOT)) as made:
        yield made


@pytest.fixture
def scene(running: ControlPlane) -> Iterator[Scene]:
    with capacity.scene(running) as made:
        yield made


def create(scene: Scene, name: str, replicas: int, *, cpu: str = "100m", **mix: str) -> None:
    body = objects.deployment(name, replicas=replicas, cpu=cpu, terminationGracePeriodSeconds=1)
    body["metadata"]["annotations"] = {PREFIX + key.replace("_", "-"): value for key, value in mix.items()}
    scene.kube.create("deployments", body, scene.namespace)
    scene.settle(name, replicas)


@contextmanager
def tainted(scene: Scene, taint: Object, *names: str) -> Iterator[None]:
    """Nodes with a taint; after a notice there are new ones in their place, for it holds until its deadline."""
    for name in names:
        scene.kube.patch("nodes", name, {"spec": {"taints": [taint]}})
    try:
        yield
    finally:
        if taint == NOTICE:
            _renew(scene, *names)
        else:
            for name in names:
                scene.kube.patch("nodes", name, {"spec": {"taints": []}})


def _renew(scene: Scene, *names: str) -> None:
    for name in names:
        scene.kube.delete("nodes", name)
    pool = objects.pool("t-", on_demand=0, spot=len(SPOT))
    bed.add_nodes(scene.kube, [it for it in pool if it["metadata"]["name"] in names])


# ---- the mix


def assert_near(scene: Scene, replicas: int) -> int:
    """What admission alone has made of it; how many moves are needed at least."""
    found = scene.sides("web")
    off = abs(found["spot"] - WEB.spot(replicas))
    print(f"{replicas} replicas by admission: {dict(found)}, {off} off")  # noqa: T201 - the figures
    assert off <= replicas // 10, found
    return off


def assert_corrected(scene: Scene, replicas: int, least: int) -> None:
    """The strategy brings it to the mix with hardly a move too many, and then leaves it in peace."""
    before = scene.moved("web")
    own = {"SpotMix": {"coolDown": "1s"}}  # resting is another test
    scene.configure("SpotMix", "LoadBalancing", "SpotReclaim", strategies=own)
    eventually(
        lambda: (scene.sides("web"), scene.moves()),
        until=lambda it: abs(it[0]["spot"] - WEB.spot(replicas)) <= 1 and it[0].total() == replicas,
        timeout=PATIENCE_SECONDS,
        what="the mix",
    )
    scene.passes()
    scene.settle("web", replicas)
    moves, found = scene.moved("web") - before, scene.sides("web")
    print(f"{replicas} replicas by {dict(moves)}, {least} needed: {dict(found)}")  # noqa: T201 - the figures
    assert moves["SpotMix"] <= least + 1
    assert abs(found["spot"] - WEB.spot(replicas)) <= 1
    assert scene.sides("kept")["on-demand"] >= KEPT.min_on_demand
    scene.configure()


def test_a_mix_through_two_replicas(scene: Scene) -> None:
    create(scene, "kept", 8, min_on_demand="2")
    assert 2 <= scene.sides("kept")["on-demand"] <= 4, "at least two, and not many more by replicas that see late"
    create(scene, "web", 1, spot_percentage="70")  # the first pod may come before the watch brings its workload
    before = scene.measured("spotshift_mix_choices_total", "spotshift-webhook")
    scene.scale("web", 50)
    scene.settle("web", 50)
    after = scene.measured("spotshift_mix_choices_total", "spotshift-webhook")
    shares = [after[name] - before[name] for name in after]
    assert (len(shares), sum(shares), min(shares) > 0) == (2, 49, True), "both replicas were asked"
    assert_corrected(scene, 50, assert_near(scene, 50))

    names = sorted(it["metadata"]["name"] for it in scene.pods("web"))
    for name in random.Random(7).sample(names, 20):
        scene.kube.delete("pods", name, scene.namespace)
    scene.settle("web", 50)
    assert_corrected(scene, 50, assert_near(scene, 50))


def test_the_example_is_where_it_says(scene: Scene) -> None:
    documents = list(yaml.safe_load_all((EXAMPLES / "spot.yaml").read_text()))
    wanted = {it["metadata"]["name"]: it["spec"]["replicas"] for it in documents if "replicas" in it.get("spec", {})}
    shown = Scene(scene.running, documents[0]["metadata"]["name"])
    try:
        scene.running.kubectl("apply", "-f", str(EXAMPLES / "spot.yaml"))
        for name, replicas in wanted.items():
            shown.settle(name, replicas)
        mixed = shown.sides("web")
        assert 6 <= mixed["spot"] <= 8
        assert mixed["on-demand"] >= 2
        assert {name: dict(shown.sides(name)) for name in wanted if name != "web"} == {
            "worker": {"spot": 4},
            "cache": {"spot": 2, "on-demand": 2},
            "ledger": {"on-demand": 2},
            "batch": {"spot": 2},
        }
    finally:
        pytest_plugin.remove_namespace(shown.kube, shown.namespace)


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_a_mix_that_is_scaled_and_interrupted(scene: Scene) -> None:
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

    there = scene.nodes_of("web")
    lost = max(SPOT, key=there.__getitem__)
    scene.configure("SpotInterruption")
    with tainted(scene, NOTICE, lost):
        eventually(scene.open_moves, until=bool, timeout=PATIENCE_SECONDS, what="a move off the node")
        scene.scale("web", 70)
        eventually(
            lambda: (scene.nodes_of()[lost], scene.open_moves()),
            until=lambda it: it == (0, []),
            timeout=PATIENCE_SECONDS,
            what="an empty node",
        )
        scene.settle("web", 70)
        assert scene.moved("web")["SpotInterruption"] == there[lost] > 0
        assert_corrected(scene, 70, assert_near(scene, 70))


def test_a_mix_where_spot_nodes_are_tainted(scene: Scene) -> None:
    """Pods that began on on-demand, as their side was, can be brought to spot when the mix is changed."""
    with tainted(scene, TAINT, *SPOT):
        scene.configure("SpotInterruption")  # while that takes effect the webhook sees the taints
        create(scene, "web", 10, spot_percentage="70")
        began = {it["metadata"]["uid"] for it in scene.pods("web")}
        assert 6 <= scene.sides("web")["spot"] <= 8
        scene.kube.patch(
            "deployments", "web", {"metadata": {"annotations": {f"{PREFIX}spot-percentage": "100"}}}, scene.namespace
        )
        scene.configure("SpotMix")
        back(scene, 10)
        stayed = began & {it["metadata"]["uid"] for it in scene.pods("web")}
        assert scene.moved("web") == {"SpotMix": 10 - len(stayed)}, "only who was elsewhere"


@pytest.mark.campaign
def test_who_avoids_spot_leaves_it_when_there_is_room(scene: Scene) -> None:
    scene.cordon(*ON_DEMAND)
    create(scene, "ledger", 4, spot="avoid")
    assert scene.sides("ledger") == {"spot": 4}
    scene.configure("SpotMix", "SpotReclaim", "LoadBalancing")
    scene.passes()
    assert not scene.seen, "nothing fits, nothing is moved"
    scene.cordon(*ON_DEMAND, cordoned=False)
    eventually(
        lambda: (scene.sides("ledger"), scene.open_moves()),
        until=lambda it: it == ({"on-demand": 4}, []),
        timeout=PATIENCE_SECONDS,
        what="all pods off spot",
    )
    scene.passes()
    assert scene.moved("ledger") == {"SpotMix": 4}, "each once"


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_pods_that_found_no_room_on_their_side_go_there_when_there_is(scene: Scene) -> None:
    scene.cordon(*SPOT)
    create(scene, "kept", 8, min_on_demand="2")
    create(scene, "web", 10, spot_percentage="70")
    assert scene.sides() == {"on-demand": 18}
    scene.configure("SpotMix")
    scene.passes()
    assert not scene.seen, "nothing fits, nothing is moved"
    scene.cordon(*SPOT, cordoned=False)
    assert_corrected(scene, 10, 7)
    assert scene.sides("kept") == {"on-demand": 2, "spot": 6}


# ---- the way back


def allow(scene: Scene, *also: str, min_stay: str = "0s") -> None:
    limits = {"minPodAge": "0s", "perWorkload": 10}
    scene.configure("SpotReclaim", *also, limits=limits, strategies={"SpotReclaim": {"minStay": min_stay}})


def back(scene: Scene, replicas: int) -> None:
    eventually(
        lambda: (scene.sides("web"), scene.open_moves()),
        until=lambda it: it == ({"spot": replicas}, []),
        timeout=PATIENCE_SECONDS,
        what="all pods on spot",
    )


def no_room_no_eviction(scene: Scene, replicas: int, passes: int) -> None:
    """Spot is full, and the pods that prefer it are elsewhere; then there is room, and they go back."""
    filler = objects.deployment("filler", replicas=5, annotations={f"{PREFIX}rescheduling": "disabled"}, **FULL)
    scene.kube.create("deployments", filler, scene.namespace)
    scene.settle("filler", 5)
    create(scene, "web", replicas, cpu="600m")
    assert scene.sides("web") == {"on-demand": replicas}
    before = {it["metadata"]["uid"] for it in scene.pods("web")}
    refused = scene.measured("spotshift_refusals_total")
    allow(scene)
    for _ in range(passes // 4):
        scene.passes(4)
    told = sum(scene.measured("spotshift_refusals_total").values()) - sum(refused.values())
    print(f"{passes} passes: {len(scene.seen)} moves, {told:.0f} refusals")  # noqa: T201 - the figures
    assert not scene.seen, "not one eviction"
    assert {it["metadata"]["uid"] for it in scene.pods("web")} == before
    assert told >= replicas, "but each was looked at"
    scene.kube.delete("deployments", "filler", scene.namespace)
    back(scene, replicas)
    assert scene.moved("web") == {"SpotReclaim": replicas}, "each once"


def test_no_room_no_eviction_and_then_back(scene: Scene) -> None:
    no_room_no_eviction(scene, replicas=8, passes=8)


@pytest.mark.campaign
@pytest.mark.timeout(2400)
def test_ten_minutes_without_room_then_back_and_not_to_and_fro(scene: Scene) -> None:
    replicas = 20
    no_room_no_eviction(scene, replicas, passes=600)
    scene.passes()
    assert scene.moved("web") == {"SpotReclaim": replicas}

    allow(scene, min_stay="1h")  # longer than the rest of the test
    scene.cordon(*SPOT)
    for pod in scene.pods("web"):
        scene.kube.delete("pods", pod["metadata"]["name"], scene.namespace)
    scene.settle("web", replicas)
    scene.cordon(*SPOT, cordoned=False)
    scene.passes(4)
    assert scene.sides("web") == {"on-demand": replicas}, "they have just come"
    allow(scene)
    back(scene, replicas)
    assert scene.moved("web") == {"SpotReclaim": 2 * replicas}
    allow(scene, "LoadBalancing")
    scene.passes()
    assert scene.sides("web") == {"spot": replicas}, "spot is fuller than all other nodes, and that is meant"


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_after_an_interruption_pods_rest_before_they_go_back(scene: Scene) -> None:
    """All spot nodes are taken away and new ones come at once: nobody returns before the cool-down is over."""
    create(scene, "web", 6)
    assert scene.sides("web") == {"spot": 6}

    def configure(cool_down: str) -> None:
        own = {"SpotReclaim": {"minStay": "0s", "coolDown": cool_down}}
        limits = {"minPodAge": "0s", "perWorkload": 10}
        scene.configure("SpotInterruption", "SpotReclaim", strategies=own, limits=limits)

    configure("1h")
    for name in SPOT:
        scene.kube.patch("nodes", name, {"spec": {"taints": [NOTICE]}})
    eventually(
        lambda: (scene.sides("web"), scene.open_moves()),
        until=lambda it: it == ({"on-demand": 6}, []),
        timeout=PATIENCE_SECONDS,
        what="all pods off spot",
    )
    for name in SPOT:
        scene.kube.delete("nodes", name)
    bed.add_nodes(scene.kube, objects.pool("t-", on_demand=0, spot=len(SPOT)))
    refused = sum(scene.measured("spotshift_refusals_total").values())
    scene.passes(6)
    assert scene.moved("web") == {"SpotInterruption": 6}
    assert sum(scene.measured("spotshift_refusals_total").values()) > refused, "they are told why"
    configure("1s")
    back(scene, 6)
    assert scene.moved("web") == {"SpotInterruption": 6, "SpotReclaim": 6}


@pytest.mark.campaign
def test_whole_nodes_become_free(scene: Scene) -> None:
    """Room on spot for two thirds of the pods: two of three nodes are emptied, and not a little of each."""
    scene.cordon(*SPOT, *ON_DEMAND)
    for node in ON_DEMAND[:3]:
        scene.cordon(node, cordoned=False)
        create(scene, node, 4, cpu="1900m")
        scene.cordon(node)
    allow(scene)
    scene.cordon(*ON_DEMAND, *SPOT[:2], cordoned=False)  # eight cores each, in which four of the pods fit
    eventually(
        lambda: (scene.sides(), scene.open_moves()),
        until=lambda it: it == ({"spot": 8, "on-demand": 4}, []),
        timeout=PATIENCE_SECONDS,
        what="full spot nodes",
    )
    scene.passes()
    left = scene.nodes_of()
    assert sorted(left[name] for name in ON_DEMAND) == [0, 0, 0, 0, 4]

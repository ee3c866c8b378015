"""A pod that nobody can do without is moved, and somebody serves all the time."""

import contextlib
from typing import Any

import pytest

from policy import keys
from testbed import objects
from testbed.waiting import eventually
from tests.integration.descheduler import logged
from tests.integration.descheduler.doubling.scene import APP, Scene, every
from tests.integration.descheduler.logged import ANY


def undisturbed(scene: Scene, pod: str, replicas: int = 1) -> None:
    """The original is where it was, alone, and nothing tells of the move."""
    eventually(scene.names, until=lambda names: len(names) == replicas, what="as many pods as before")
    assert pod in scene.names()
    assert scene.deployment()["spec"]["replicas"] == replicas
    assert scene.left() == []
    assert scene.fewest == 1


def test_a_single_replica_is_moved_and_never_missing(scene: Scene) -> None:
    (pod,) = scene.deploy(spec={"minReadySeconds": 2})
    scene.kube.create("poddisruptionbudgets", objects.budget("all", app=APP, minAvailable=1), scene.namespace)
    name = scene.ask(pod)
    status = scene.end(name)
    assert (status["phase"], status["resolved"]["mode"]) == ("Completed", "Surge"), status
    source, target, workload = status["resolved"]["sourceNode"], status["replacement"]["node"], f"Deployment/{APP}"
    scene.told(
        name,
        {
            "event": "MIGRATION_STARTED",
            "mode": "Surge",
            "sourceNode": source,
            "targetNode": ANY,
            "workload": workload,
        },
        {"event": "HINT_PUBLISHED", "preferredNode": status["resolved"]["targetNode"], "avoidNode": source},
        {"event": "SURGED", "workload": workload, "count": 2},
        {
            "event": "REPLACEMENT_READY",
            "newPod": status["replacement"]["name"],
            "targetNode": target,
            "onTarget": ANY,
        },
        {"event": "SURGE_ENDED", "workload": workload, "count": 1},
        {"event": "MIGRATION_FINISHED", "sourceNode": source, "targetNode": target, "seconds": ANY},
        {"event": "CLEANED_UP", "pod": pod},
    )
    eventually(scene.names, until=lambda names: names == [status["replacement"]["name"]], what="the new pod alone")
    assert scene.deployment()["spec"]["replicas"] == 1
    assert scene.left() == []
    assert scene.fewest == 1


def test_a_budget_without_room_is_respected_by_doubling(scene: Scene) -> None:
    pods = scene.deploy(3)
    scene.kube.create("poddisruptionbudgets", objects.budget("all", app=APP, minAvailable=3), scene.namespace)
    status = scene.end(scene.ask(pods[0], mode="Surge"))
    assert (status["phase"], status["resolved"]["mode"]) == ("Completed", "Surge"), status
    eventually(scene.names, until=lambda names: len(names) == 3 and pods[0] not in names, what="three others")
    assert set(pods[1:]) < set(scene.names())
    assert scene.left() == []


SLOW = {f"{objects.PREFIX}ready-delay": "5s"}


def waiting(scene: Scene, **options: Any) -> tuple[str, str]:
    """A Surge whose new pod is not Ready yet."""
    (pod,) = scene.deploy(annotations=SLOW, **options)
    name = scene.ask(pod)
    scene.reach(name, "AwaitAvailable")
    return pod, name


def test_a_user_scales_meanwhile(scene: Scene) -> None:
    pod, name = waiting(scene)
    scene.scale(3)
    status = scene.end(name)
    assert status["phase"] == "Failed"
    assert "REPLICAS_CONTESTED" in status["message"]
    undisturbed(scene, pod, 3)


def test_somebody_resets_the_replicas_again_and_again(scene: Scene) -> None:
    """Also so soon that it never comes to waiting for the second pod."""
    (pod,) = scene.deploy(annotations=SLOW)
    name = scene.ask(pod)
    with contextlib.contextmanager(every)(3.0, lambda: scene.scale(1)):
        status = scene.end(name)
    assert status["phase"] == "Failed"
    assert "REPLICAS_CONTESTED" in status["message"]
    undisturbed(scene, pod)


@pytest.mark.campaign
def test_an_autoscaler_appears(scene: Scene) -> None:
    pod, name = waiting(scene)
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": APP}
    spec = {"scaleTargetRef": ref, "minReplicas": 1, "maxReplicas": 3}
    scene.kube.create("horizontalpodautoscalers", {"metadata": {"name": "auto"}, "spec": spec}, scene.namespace)
    status = scene.end(name)
    assert status["phase"] == "Cancelled"
    assert "HorizontalPodAutoscaler auto" in status["message"]
    undisturbed(scene, pod)


@pytest.mark.campaign
def test_a_rollout_begins(scene: Scene) -> None:
    pod, name = waiting(scene)
    template = {"template": {"metadata": {"annotations": {"version": "2"}}}}
    scene.kube.patch("deployments", APP, {"spec": template}, scene.namespace)
    status = scene.end(name)
    assert status["phase"] == "Cancelled"
    assert "PENDING_REVISION" in status["message"]
    eventually(scene.names, until=lambda names: len(names) == 1 and pod not in names, what="the rollout", timeout=60)
    assert scene.deployment()["spec"]["replicas"] == 1
    assert scene.left() == []
    assert scene.fewest == 1


def test_no_quota(scene: Scene) -> None:
    (pod,) = scene.deploy()
    quota = {"metadata": {"name": "tight"}, "spec": {"hard": {"pods": "1"}}}
    scene.kube.create("resourcequotas", quota, scene.namespace)
    counted = {"pods": "1"}
    eventually(
        lambda: scene.kube.get("resourcequotas", "tight", scene.namespace).get("status", {}).get("used") == counted
    )
    status = scene.end(scene.ask(pod))
    assert status["phase"] == "Failed"
    assert "NO_QUOTA" in status["message"]
    undisturbed(scene, pod)


def test_a_replacement_that_is_never_ready(scene: Scene) -> None:
    scene.kube.create(
        "deployments", objects.deployment(APP, annotations={f"{objects.PREFIX}ready": "false"}), scene.namespace
    )
    pod = eventually(scene.names, until=lambda names: len(names) == 1)[0]
    scene.annotate(pod, ready=None)
    scene.wait_ready(1)
    name = scene.ask(pod)
    status = scene.end(name)
    assert status["phase"] == "Failed"
    assert "not Available" in status["message"]
    undisturbed(scene, pod)
    scene.told(
        name,
        {"event": "MIGRATION_STARTED"},
        {"event": "HINT_PUBLISHED"},
        {"event": "SURGED", "count": 2},
        {"event": "TIMED_OUT", "step": "AwaitAvailable", "seconds": ANY},
        {"event": "SURGE_ENDED", "count": 1},
        {"event": "ROLLED_BACK", "step": "SurgeBack", "reason": "failed"},
        {"event": "MIGRATION_FAILED", "reason": "failed", "detail": status["message"]},
        {"event": "CLEANED_UP"},
    )
    read = scene.process.log.read_text
    rests = eventually(lambda: logged.lines(read(), event="COOLING_DOWN", pod=pod), what="the rest in the log")
    assert [(it["workload"], it["reason"]) for it in rests] == [(f"Deployment/{APP}", "failed")]
    said = read()
    began, finished = (
        {line["passId"] for line in logged.lines(said, event=event)} for event in ("PASS_STARTED", "PASS_FINISHED")
    )
    assert began >= finished > set()


def test_called_off_when_the_new_pod_is_ready_but_not_available(scene: Scene) -> None:
    (pod,) = scene.deploy(spec={"minReadySeconds": 30})
    name = scene.ask(pod)
    scene.reach(name, "AwaitAvailable")
    scene.wait_ready(2)
    scene.kube.delete("podmigrations", name, scene.namespace)
    eventually(lambda: scene.kube.list("podmigrations", scene.namespace), until=lambda left: not left, timeout=60)
    undisturbed(scene, pod)


@pytest.mark.campaign
def test_somebody_else_sets_the_deletion_cost(scene: Scene) -> None:
    pod, name = waiting(scene)
    cost = {"metadata": {"annotations": {keys.POD_DELETION_COST: "5"}}}
    scene.kube.patch("pods", pod, cost, scene.namespace)
    status = scene.end(name)
    assert status["phase"] == "Failed"
    assert keys.POD_DELETION_COST in status["message"]
    eventually(scene.names, until=lambda names: names == [pod], what="the original alone")
    assert scene.pods()[0]["metadata"]["annotations"][keys.POD_DELETION_COST] == "5", "theirs is left alone"
    assert scene.deployment()["spec"]["replicas"] == 1
    assert scene.fewest == 1


def test_a_cost_of_the_users_own_is_put_back(scene: Scene) -> None:
    (pod,) = scene.deploy(spec={"minReadySeconds": 30})
    scene.kube.patch("pods", pod, {"metadata": {"annotations": {keys.POD_DELETION_COST: "7"}}}, scene.namespace)
    name = scene.ask(pod)
    scene.reach(name, "AwaitAvailable")
    scene.kube.delete("podmigrations", name, scene.namespace)
    eventually(scene.names, until=lambda names: names == [pod], timeout=60, what="the original alone")
    assert scene.pods()[0]["metadata"]["annotations"][keys.POD_DELETION_COST] == "7"


@pytest.mark.campaign
def test_a_sibling_becomes_unready_and_ready_again(scene: Scene) -> None:
    pods = scene.deploy(2, annotations={f"{objects.PREFIX}ready-delay": "4s"})
    scene.kube.create("poddisruptionbudgets", objects.budget("all", app=APP, minAvailable=2), scene.namespace)
    name = scene.ask(pods[0], mode="Surge")
    scene.reach(name, "AwaitAvailable")
    scene.annotate(pods[1], ready="false")
    scene.reach(name, "SurgeDown")
    scene.annotate(pods[1], ready=None)
    status = scene.end(name)
    assert status["phase"] == "Completed", status
    eventually(scene.names, until=lambda names: len(names) == 2 and pods[0] not in names, what="two others")
    assert pods[1] in scene.names(), "not taken in its place"


def test_a_descheduler_that_dies_is_followed_by_one_that_goes_on(scene: Scene) -> None:
    pod, name = waiting(scene)
    scene.process.kill()
    scene.wait_ready(2)
    scene.process.again()
    status = scene.end(name)
    assert status["phase"] == "Completed", status
    eventually(scene.names, until=lambda names: len(names) == 1 and pod not in names, what="the new pod alone")
    assert scene.left() == []
    assert scene.fewest == 1


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "strategy Recreate": ({"spec": {"strategy": {"type": "Recreate"}}}, "its strategy is Recreate"),
    "paused": ({"spec": {"paused": False}}, "its rollout is paused"),
}


@pytest.mark.parametrize(("options", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_from_the_start(scene: Scene, options: dict[str, Any], why: str) -> None:
    (pod,) = scene.deploy(**options)
    if why.endswith("paused"):
        scene.kube.patch("deployments", APP, {"spec": {"paused": True}}, scene.namespace)
    status = scene.end(scene.ask(pod))
    assert status["phase"] == "Cancelled"
    assert "SINGLE_REPLICA" in status["message"]
    assert why in status["message"]
    undisturbed(scene, pod)


def test_a_volume_for_one_node_only(scene: Scene) -> None:
    volume = {
        "metadata": {"name": f"pv-{scene.namespace}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "nfs": {"server": "example.com", "path": "/x"},
            "claimRef": {"namespace": scene.namespace, "name": "data"},
        },
    }
    scene.kube.create("persistentvolumes", volume)
    request = {
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
        "accessModes": ["ReadWriteOnce"],
    }
    claim = {"metadata": {"name": "data"}, "spec": {**request, "volumeName": f"pv-{scene.namespace}"}}
    scene.kube.create("persistentvolumeclaims", claim, scene.namespace)
    (pod,) = scene.deploy(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    status = scene.end(scene.ask(pod))
    scene.kube.delete("persistentvolumes", f"pv-{scene.namespace}")
    assert status["phase"] == "Cancelled"
    assert "claim data can be used on one node only" in status["message"]
    undisturbed(scene, pod)


def test_the_only_ready_one_of_two_stays(scene: Scene) -> None:
    pods = scene.deploy(2)
    scene.annotate(pods[1], ready="false")
    eventually(scene.pods, until=lambda found: sum(map(objects.is_ready, found)) == 1)
    status = scene.end(scene.ask(pods[0]))
    assert status["phase"] == "Cancelled"
    assert "only Ready replica" in status["message"]
    assert f"{pods[1]} is not Ready" in status["message"]
    assert scene.names() == sorted(pods)

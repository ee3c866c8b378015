"""The cases that users of other deschedulers complain about, by name."""

from typing import Any

import msgspec
import pytest

from descheduler.reasons import Code
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build, generated, scenes
from tests.unit.descheduler.scenes import PREFIX, deployment, nodes

FREE = Settings(limits=Limits(per_node=100, per_namespace=100, per_workload=100), max_reschedule_pods=100)


def test_twenty_replicas_piled_on_one_node_are_levelled_pass_by_pass() -> None:
    objects = [*nodes("n0", "n1", "n2", "n3", cpu="8", memory="32Gi"), *deployment("x", ["n0"] * 20)]
    passes = 0
    while (found := scenes.made(objects)).moves:
        pods = {move.pod.metadata.key: move.target for move in found.moves}
        objects = [
            msgspec.structs.replace(it, node_name=pods[it.metadata.key]) if it.metadata.key in pods else it
            for it in objects
        ]
        passes += 1
    loads = [node.before for node in found.nodes]
    assert max(loads) <= 11.25  # the mean of 6.25 and the floor
    assert min(loads) >= 3.75
    assert passes == 6  # two of twenty replicas in one pass


def test_a_quiet_cluster_is_left_alone() -> None:
    found = scenes.made([*nodes("n0", "n1"), *deployment("x", ["n0", "n0", "n1", "n1"], cpu="500m")])
    assert (found.moves, found.refusals, found.summary.proposals) == ((), (), 0)


def test_an_almost_empty_cluster_is_left_alone() -> None:
    found = scenes.made([*nodes("n0", "n1"), *deployment("x", ["n0"], cpu="200m")])
    assert found.moves == ()


def test_pods_that_fit_only_one_slot_are_moved_once_and_not_each() -> None:
    gpu = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1500m", "example.com/gpu": "1"}}}]}
    objects = [
        build.node("n0", cpu="8", extended={"example.com/gpu": "4"}),
        build.node("n1", cpu="8", extended={"example.com/gpu": "1"}),
        build.node("n2", cpu="8"),
        *deployment("x", ["n0"] * 4, spec=gpu),
    ]
    found = scenes.made(objects, FREE)
    assert scenes.moves(found) == [("x-00", "n0", "n1")]
    assert set(map(frozenset, scenes.refused(found).values())) == {frozenset({Code.NO_NODE_FITS})}
    why = "0/0 spot nodes fit; 0/2 nodes other than spot fit: 2 insufficient example.com/gpu"
    assert {reason.text for refusal in found.refusals for reason in refusal.reasons} == {why}


def test_pods_that_prefer_spot_stay_when_no_spot_node_fits() -> None:
    objects = [
        build.node("spot-0", spot=True, cpu="4"),
        build.node("spot-1", spot=True, cpu="4", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        build.node("od-0", spot=False, cpu="4"),
        *deployment("x", ["spot-0"] * 3, cpu="1"),
    ]
    found = scenes.made(objects, FREE)
    assert found.moves == ()
    assert {code for codes in scenes.refused(found).values() for code in codes} == {Code.NO_NODE_FITS}
    assert found.refusals[0].reasons[0].text == "0/1 spot nodes fit: 1 untolerated taint"


def test_the_same_pods_go_to_on_demand_if_they_do_not_care() -> None:
    objects = [
        build.node("spot-0", spot=True, cpu="4"),
        build.node("od-0", spot=False, cpu="4"),
        *deployment("x", ["spot-0"] * 3, cpu="1", annotations={f"{PREFIX}spot": "ignore"}),
    ]
    assert scenes.moves(scenes.made(objects, FREE)) == [("x-00", "spot-0", "od-0")]


def test_a_big_pod_does_not_cycle() -> None:
    objects = [*nodes("n0", "n1", "n2", cpu="4"), *deployment("big", ["n0"], cpu="3")]
    found = scenes.made(objects, FREE)
    assert found.moves == ()
    assert scenes.refused(found) == {"big-00": {Code.NO_IMPROVEMENT}}


def test_replicas_of_one_workload_are_not_all_moved_at_once() -> None:
    objects = [*nodes("n0", "n1", "n2", cpu="4"), *deployment("x", ["n0"] * 3, cpu="1")]
    found = scenes.made(objects)
    assert len(found.moves) == 1
    assert set(map(frozenset, scenes.refused(found).values())) == {frozenset({Code.LIMIT_WORKLOAD})}


def test_excluded_namespaces_count_as_load_but_are_not_touched() -> None:
    system = deployment("dns", ["n0"] * 2, namespace="kube-system", cpu="1500m")
    objects = [*nodes("n0", "n1", cpu="4"), *system, *deployment("x", ["n0"], cpu="900m")]
    found = scenes.made(objects, FREE)
    assert scenes.moves(found) == [("x-00", "n0", "n1")]
    codes = scenes.refused(found)
    assert {name for name, reasons in codes.items() if Code.EXCLUDED_NAMESPACE in reasons} == {"dns-00", "dns-01"}


def test_replicas_beyond_the_number_of_nodes_come_to_rest() -> None:
    objects = [*nodes("n0", "n1", cpu="4"), *deployment("x", ["n0", "n0", "n0", "n1", "n1"], cpu="500m")]
    assert scenes.made(objects, FREE).moves == ()


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(
            {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}, id="control plane"
        ),
        pytest.param({"taints": [{"key": "team", "value": "a", "effect": "NoExecute"}]}, id="tainted"),
        pytest.param({"unschedulable": True}, id="cordoned"),
        pytest.param({"ready": False}, id="not ready"),
        pytest.param({"labels": {f"{PREFIX}maintenance": "true"}}, id="in maintenance"),
        pytest.param(
            {"taints": [{"key": "aws-node-termination-handler/spot-itn", "effect": "PreferNoSchedule"}]},
            id="interrupted",
        ),
        pytest.param(
            {"taints": [{"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}]},
            id="to be scaled down",
        ),
    ],
)
def test_never_a_target(target: dict[str, Any]) -> None:
    busy = [*nodes("n0", "n1", cpu="4"), *deployment("x", ["n0"] * 4, cpu="500m"), *deployment("y", ["n1"], cpu="1")]
    assert "n2" in {to for _, _, to in scenes.moves(scenes.made([*busy, build.node("n2", cpu="16")], FREE))}
    found = scenes.made([*busy, build.node("n2", cpu="16", **target)], FREE)
    assert "n2" not in {to for _, _, to in scenes.moves(found)}


def test_a_node_that_is_being_deleted_is_no_target() -> None:
    going = build.decode(
        {
            "kind": "Node",
            "metadata": build.meta("n1", deletionTimestamp=build.LONG_AGO),
            "status": {
                "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )
    assert scenes.made([*nodes("n0", cpu="4"), going, *deployment("x", ["n0"] * 4, cpu="500m")], FREE).moves == ()


def test_a_node_known_only_by_its_pods_is_no_target() -> None:
    objects = [*nodes("n0", cpu="4"), *deployment("x", [*["n0"] * 4, "ghost"], cpu="500m")]
    assert scenes.made(objects, FREE).moves == ()


@pytest.mark.parametrize("seed", range(5))
def test_a_levelled_cluster_stays_as_it_is(seed: int) -> None:
    world = generated.world(seed, plain=True)
    while found := scenes.made(world.objects, FREE).moves:
        world.pods = generated.applied(world.pods, found)
    assert scenes.made(world.objects, FREE).moves == ()

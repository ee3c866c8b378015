"""Replacements of moved pods go to their targets, every one of them, without any hint on the pod itself."""

import random

import pytest

from bench.extender import stage
from bench.extender.stage import Extender, placed
from testbed.api import Api
from testbed.pytest_plugin import Nodes


@pytest.mark.parametrize(
    ("owners", "replicas"),
    [
        pytest.param(5, 5, id="25 of 25"),
        pytest.param(10, 10, id="100 of 100", marks=pytest.mark.campaign),
    ],
)
def test_every_target_is_reached(
    kube: Api, namespace: str, nodes: Nodes, extender: Extender, scheduler: str, owners: int, replicas: int
) -> None:
    """All moves at once: half of the targets are on-demand while spot has room, and nobody claims a replacement
    meanwhile, so two of one owner are told apart by the extender alone.
    """
    names = nodes.make(on_demand=5, spot=5)
    for number in range(owners):
        made = stage.replica_set(f"web-{number}", replicas=replicas, scheduler_name=scheduler)
        kube.create("replicasets", made, namespace)
    placed(kube, namespace, owners * replicas)
    assert stage.move_all(kube, namespace, extender, names, random.Random(7)) == owners * replicas
    stage.clear(kube, namespace)

"""Replacements of moved pods go to their targets, every one of them, without any hint on the pod itself."""

import random

from bench.extender import stage
from bench.extender.stage import Extender, placed
from testbed.api import Api
from testbed.pytest_plugin import Nodes

OWNERS, REPLICAS = 10, 10


def test_a_hundred_of_a_hundred(kube: Api, namespace: str, nodes: Nodes, extender: Extender, scheduler: str) -> None:
    """Ten owners with ten moves each, all at once: half of the targets are on-demand while spot has room, and nobody
    claims a replacement meanwhile, so two of one owner are told apart by the extender alone.
    """
    names = nodes.make(on_demand=5, spot=5)
    for number in range(OWNERS):
        made = stage.replica_set(f"web-{number}", replicas=REPLICAS, scheduler_name=scheduler)
        kube.create("replicasets", made, namespace)
    placed(kube, namespace, OWNERS * REPLICAS)
    assert stage.move_all(kube, namespace, extender, names, random.Random(7)) == OWNERS * REPLICAS
    stage.clear(kube, namespace)

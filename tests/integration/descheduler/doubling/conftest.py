"""A control plane with a descheduler of its own for the tests of this folder: it answers every PodMigration."""

import os
from collections.abc import Iterator

import pytest

from testbed import bed
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.proxy import FaultProxy
from testbed.pytest_plugin import Nodes
from tests.integration.descheduler.doubling.scene import Process, Scene


@pytest.fixture(scope="package")
def cluster(control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("doubling") / "bed"
    yield bed.up(home, control_plane_binaries, owner=os.getpid())
    bed.down(home)


@pytest.fixture(scope="package")
def descheduler(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with FaultProxy(cluster) as proxy:
        made = Process(cluster, tmp_path_factory.mktemp("descheduler"), proxy)
        made.start()
        yield made
        made.kill()


@pytest.fixture
def scene(descheduler: Process, kube: Api, namespace: str, nodes: Nodes) -> Iterator[Scene]:
    nodes.make(on_demand=2)
    with Scene(descheduler, kube, namespace) as made:
        yield made

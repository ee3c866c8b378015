"""A control plane and two descheduler processes for the tests of this folder: they act on the whole cluster."""

import os
from collections.abc import Iterator

import pytest

from testbed import bed
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from tests.integration.descheduler.moves import scene
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import Scene


@pytest.fixture(scope="package")
def cluster(control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("moves") / "bed"
    yield bed.up(home, control_plane_binaries, owner=os.getpid())
    bed.down(home)


@pytest.fixture(scope="package")
def running(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with Product(cluster, tmp_path_factory.mktemp("product")) as made:
        yield made


@pytest.fixture
def everything(running: Product) -> Iterator[Scene]:
    running.configure()
    with scene.scene(running, "t", everything=True) as made:
        yield made


@pytest.fixture
def on(running: Product) -> Iterator[Scene]:
    running.configure()
    with scene.scene(running, "t") as made:
        yield made

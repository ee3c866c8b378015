"""A control plane for the tests of this folder alone: what they put into it holds for all pods of a cluster.

Taints of spot nodes and a global default among the PriorityClasses would change what other tests see.
"""

import os
from collections.abc import Iterator

import pytest

from testbed import bed
from testbed.bed import ControlPlane
from testbed.binaries import Binaries


@pytest.fixture(scope="package")
def cluster(control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("alone") / "bed"
    yield bed.up(home, control_plane_binaries, owner=os.getpid())
    bed.down(home)

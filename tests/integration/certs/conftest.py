"""One installation per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.api import Api
from testbed.bed import ControlPlane
from tests.integration.certs import installation
from tests.integration.certs.installation import Installation


@pytest.fixture
def installed(cluster: ControlPlane, kube: Api, namespace: str, tmp_path: Path) -> Iterator[Installation]:
    """Rights, but nothing that certs itself makes."""
    with installation.install(cluster, kube, namespace, tmp_path) as made:
        yield made

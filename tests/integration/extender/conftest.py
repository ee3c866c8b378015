"""One extender and one scheduler that asks it for all tests here, and the definition of moves."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.extender import stage
from bench.extender.stage import Extender
from testbed import pytest_plugin
from testbed.bed import ControlPlane
from tests.integration.extender.login import kubeconfig, rights


@pytest.fixture(scope="package")
def account(cluster: ControlPlane) -> Iterator[str]:
    """A namespace with the account of the extender and its shipped rights."""
    stage.define_moves(cluster)
    kube, name = cluster.api(), f"t-{secrets.token_hex(4)}"
    pytest_plugin.make_namespace(kube, name)
    with rights(kube, name):
        yield name
    pytest_plugin.remove_namespace(kube, name)


@pytest.fixture(scope="package")
def extender(cluster: ControlPlane, account: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extender]:
    with stage.extender(cluster, kubeconfig(cluster, account), tmp_path_factory.mktemp("extender") / "it") as made:
        yield made


@pytest.fixture(scope="package")
def scheduler(
    cluster: ControlPlane, account: str, extender: Extender, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name of a scheduler that is configured by the shipped sample."""
    folder: Path = tmp_path_factory.mktemp("scheduler") / "it"
    with stage.scheduler(cluster, f"extended-{account}", folder, extender.port) as name:
        yield name

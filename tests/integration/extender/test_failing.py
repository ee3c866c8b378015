"""An extender that is dead, frozen or answers nonsense costs time at most: scheduling goes on."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.extender import stage
from bench.extender.stage import Extender, placed
from testbed import objects, ports
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from tests.integration.extender.login import kubeconfig

PODS = 10


@pytest.mark.parametrize(
    "trouble",
    [pytest.param(Extender.kill, id="dead"), pytest.param(Extender.freeze, id="frozen")],
)
def test_scheduling_goes_on(
    cluster: ControlPlane,
    kube: Api,
    namespace: str,
    account: str,
    nodes: Nodes,
    tmp_path: Path,
    trouble: Callable[[Extender], None],
) -> None:
    nodes.make(on_demand=1, spot=1)
    with (
        stage.extender(cluster, kubeconfig(cluster, account), tmp_path / "extender") as it,
        stage.scheduler(cluster, f"alone-{namespace}", tmp_path / "scheduler", it.port) as scheduler,
    ):
        kube.create("pods", objects.pod("before", schedulerName=scheduler), namespace)
        placed(kube, namespace, 1)
        trouble(it)
        for number in range(PODS):
            kube.create("pods", objects.pod(f"after-{number}", schedulerName=scheduler), namespace)
        placed(kube, namespace, 1 + PODS)


def test_nothing_at_all_listens(
    cluster: ControlPlane, kube: Api, namespace: str, nodes: Nodes, tmp_path: Path
) -> None:
    nodes.make(on_demand=1)
    nobody = ports.free(("nobody",))["nobody"]
    with stage.scheduler(cluster, f"alone-{namespace}", tmp_path / "scheduler", nobody) as scheduler:
        kube.create("pods", objects.pod("one", schedulerName=scheduler), namespace)
        placed(kube, namespace, 1)


@contextlib.contextmanager
def speaking_tls(cluster: ControlPlane, account: str, folder: Path) -> Iterator[Extender]:
    pair = cluster.layout.ca.server(f"extender-{account}", ("spotshift-extender.spotshift-system.svc",))
    with stage.extender(cluster, kubeconfig(cluster, account), folder, pair=pair) as it:
        yield it


def test_over_tls(
    cluster: ControlPlane, kube: Api, namespace: str, account: str, nodes: Nodes, tmp_path: Path
) -> None:
    nodes.make(on_demand=1, spot=1)
    trusted = {"caFile": str(cluster.layout.ca.pair.cert), "serverName": "spotshift-extender.spotshift-system.svc"}
    with (
        speaking_tls(cluster, account, tmp_path / "extender") as it,
        stage.scheduler(
            cluster,
            f"alone-{namespace}",
            tmp_path / "scheduler",
            it.port,
            urlPrefix=f"https://127.0.0.1:{it.port}",
            enableHTTPS=True,
            tlsConfig=trusted,
        ) as scheduler,
    ):
        kube.create("pods", objects.pod("one", schedulerName=scheduler), namespace)
        placed(kube, namespace, 1)
        answered = 'spotshift_extender_requests_total{result="answered",verb="filter"}'
        assert it.counted(answered) == 1

"""A stream of pod creations while replicas and certificates are replaced: the API server counts no failed call."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.integration.webhook import serving, stream
from tests.integration.webhook.balancer import balanced
from tests.integration.webhook.serving import Serving
from tests.integration.webhook.stream import Stream


@pytest.mark.usefixtures("allowed")
def test_replicas_are_replaced_under_load(cluster: ControlPlane, kube: Api, namespace: str, tmp_path: Path) -> None:
    with ExitStack() as stack:

        def start(name: str) -> Serving:
            made = stack.enter_context(serving.started(cluster, namespace, tmp_path / name, "--grace-seconds=30"))
            serving.until_ready(made)
            return made

        replicas = [start("first")]
        url = stack.enter_context(balanced(replicas))
        stack.enter_context(serving.configured(cluster, kube, namespace, url))
        pods = Stream(kube, namespace)
        eventually(lambda: stream.marked(kube, namespace), what="the configuration in force")
        with pods.running():
            pods.more()
            replicas.append(start("second"))
            for name in ("third", "fourth"):
                replicas[0].ask_to_end()
                pods.more()
                replicas.append(start(name))
                pods.more()
                del replicas[0]
            replicas[0].certify(cluster.layout.ca.server(f"new-{namespace}"))
            eventually(replicas[0].shown, until=lambda shown: shown.startswith("new-"), what="the new certificate")
            pods.more()
        assert all(pods.marked)
        assert stream.failed_calls(kube, namespace) == 0

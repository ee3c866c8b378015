"""One webhook per test, called by the real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.api import Api
from testbed.bed import ControlPlane
from tests.integration.webhook import serving
from tests.integration.webhook.serving import MANIFESTS, Serving


@pytest.fixture
def allowed(cluster: ControlPlane, kube: Api, namespace: str) -> Iterator[None]:
    """The account of the webhook and the PriorityClasses of the tiers."""
    cluster.kubectl("apply", "-f", str(MANIFESTS / "priorityclasses.yaml"))
    with serving.rights(kube, namespace):
        yield


@pytest.fixture
def webhook(cluster: ControlPlane, kube: Api, namespace: str, tmp_path: Path, allowed: None) -> Iterator[Serving]:
    """Ready, which includes that the published bundle trusts it."""
    with (
        serving.started(
            cluster, namespace, tmp_path / "webhook", f"--bundle-from={namespace}", "--grace-seconds=5"
        ) as made,
        serving.configured(cluster, kube, namespace, made.url),
    ):
        serving.until_ready(made)
        yield made

"""The webhook as it is run: a process with the shipped rights, called by the real API server."""

import base64
import http.client
import json
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testbed import objects, pki
from testbed.api import JSON_PATCH, Api, Object
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually
from tests.integration.webhook import serving
from tests.integration.webhook.serving import Serving
from tests.unit.webhook import building
from tests.unit.webhook.building import CAPACITY, PREFIX

MANAGED = PREFIX + "managed"


def pods_of(kube: Api, namespace: str, count: int) -> list[Object]:
    """The pods, once all are bound and none is on its way out."""
    return eventually(
        lambda: [pod for pod in kube.list("pods", namespace) if "deletionTimestamp" not in pod["metadata"]],
        until=lambda found: len(found) == count and all(pod["spec"].get("nodeName") for pod in found),
        what=f"{count} bound pods",
    )


def preferences(pod: Object) -> list[Any]:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return list(affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ()))


def rule(operator: str) -> Object:
    return {"key": CAPACITY, "operator": operator, "values": ["spot"]}


def rules(pod: Object) -> list[Any]:
    return [it for item in preferences(pod) for it in item["preference"]["matchExpressions"] if it["key"] == CAPACITY]


def counted(webhook: Serving, name: str) -> float:
    lines = (line.rpartition(" ") for line in webhook.get("/metrics")[1].splitlines())
    return next((float(value) for metric, _, value in lines if metric == name), 0.0)


def test_a_plain_deployment_lands_on_spot(kube: Api, namespace: str, nodes: Nodes, webhook: Serving) -> None:
    nodes.make(on_demand=1, spot=1)
    kube.create("deployments", objects.deployment("web", replicas=3), namespace)
    for pod in pods_of(kube, namespace, 3):
        assert pod["metadata"]["labels"][MANAGED] == "true"
        assert rules(pod) == [rule("In")]
        assert "-spot-" in pod["spec"]["nodeName"]
    assert counted(webhook, 'spotshift_admissions_total{result="patched"}') >= 3
    assert counted(webhook, "spotshift_internal_errors_total") == 0


def test_an_annotation_on_the_deployment_holds_for_its_next_pod(
    cluster: ControlPlane, kube: Api, namespace: str, nodes: Nodes, webhook: Serving
) -> None:
    nodes.make(on_demand=1, spot=1)
    kube.create("deployments", objects.deployment("web"), namespace)
    (first,) = pods_of(kube, namespace, 1)
    assert rules(first) == [rule("In")]
    cluster.kubectl("annotate", "-n", namespace, "deployment", "web", f"{PREFIX}spot=avoid")
    # A person takes longer than this; a dry run of a pod of the same owner tells when the annotation has arrived.
    owned = {
        **objects.pod("probe"),
        "metadata": {"name": "probe", "ownerReferences": first["metadata"]["ownerReferences"]},
    }
    eventually(
        lambda: rules(kube.create("pods", owned, namespace, dry_run=True)),
        until=lambda found: found == [rule("NotIn")],
        what="the annotation in the view",
    )
    kube.delete("pods", first["metadata"]["name"], namespace, gracePeriodSeconds=0)
    (second,) = pods_of(kube, namespace, 1)
    assert rules(second) == [rule("NotIn")]
    assert "-on-demand-" in second["spec"]["nodeName"]


def test_the_tier_batch_brings_its_class(kube: Api, namespace: str, nodes: Nodes, webhook: Serving) -> None:
    nodes.make(on_demand=1)
    kube.create("deployments", objects.deployment("web", annotations={PREFIX + "tier": "batch"}), namespace)
    (pod,) = pods_of(kube, namespace, 1)
    found = {name: pod["spec"].get(name) for name in ("priorityClassName", "priority", "preemptionPolicy")}
    assert found == {"priorityClassName": "batch-priority", "priority": -100, "preemptionPolicy": "Never"}


def test_without_the_webhook_pods_are_still_created(kube: Api, namespace: str, webhook: Serving) -> None:
    webhook.process.kill()
    webhook.process.wait()
    eventually(lambda: webhook.get("/healthz")[0] == 0, what="the end of the worker, which misses its parent")
    made = kube.create("pods", objects.pod("plain"), namespace)
    assert MANAGED not in made["metadata"]["labels"]


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        pytest.param(404, {"path": "/"}, id="path"),
        pytest.param(405, {"method": "PUT"}, id="method"),
        pytest.param(415, {"Content_Type": "text/plain"}, id="content type"),
        pytest.param(413, {"body": b" " * (5 << 20)}, id="size"),
        pytest.param(400, {"body": b"[" * 100_000}, id="nesting"),
        pytest.param(400, {"body": b"{"}, id="truncated"),
    ],
)
@pytest.mark.usefixtures("allowed")
def test_malformed_requests(
    cluster: ControlPlane, namespace: str, tmp_path: Path, status: int, request_: dict[str, Any]
) -> None:
    with serving.started(cluster, namespace, tmp_path / "webhook") as webhook:
        serving.until_ready(webhook)
        assert webhook.post(**{"body": b"{}", **request_})[0] == status
        good = building.body({"metadata": {}, "spec": {"containers": []}}, namespace=namespace)
        assert webhook.post(good)[0] == 200, "it goes on serving"


def test_a_new_certificate_is_served_without_a_restart(
    cluster: ControlPlane, kube: Api, namespace: str, webhook: Serving
) -> None:
    assert webhook.shown() == f"first-{namespace}-webhook"
    kept = webhook.connection()
    good = building.body({"metadata": {}, "spec": {"containers": []}}, namespace=namespace)
    assert _review(kept, good)[0] == 200
    webhook.certify(cluster.layout.ca.server(f"second-{namespace}"))
    eventually(webhook.shown, until=lambda name: name == f"second-{namespace}", what="the new certificate")
    assert _review(kept, good)[0] == 200, "a connection that is open goes on"
    kept.close()
    made = kube.create("pods", objects.pod("plain"), namespace, dry_run=True)
    assert made["metadata"]["labels"][MANAGED] == "true"


def test_ready_only_while_the_published_bundle_verifies_it(
    cluster: ControlPlane, kube: Api, namespace: str, webhook: Serving, tmp_path: Path
) -> None:
    good, other = cluster.layout.ca.bundle(), pki.authority(tmp_path / "other", "ca").bundle()

    def publish(bundle: bytes) -> None:
        value = base64.b64encode(bundle).decode()
        operation = {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value}
        kube.patch("mutatingwebhookconfigurations", namespace, [operation], kind=JSON_PATCH)

    publish(other)
    told = (503, "bundle: the published bundle does not verify the certificate\n")
    eventually(lambda: webhook.get("/readyz"), until=lambda found: found == told, what="not ready")
    publish(other + good)
    eventually(lambda: webhook.get("/readyz"), until=lambda found: found == (200, "ok\n"), what="ready again")


@pytest.mark.usefixtures("allowed")
def test_draining_loses_no_request(cluster: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """Callers that keep connections as API servers do: they open a new one, elsewhere, only when told to close."""
    good = building.body({"metadata": {}, "spec": {"containers": []}}, namespace=namespace)
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(serving.started(cluster, namespace, tmp_path / name, "--grace-seconds=20"))
            for name in ("first", "second")
        )
        serving.until_ready(first)
        serving.until_ready(second)
        failures: list[object] = []
        answered: list[int] = []

        def call() -> None:
            _review_until_closed(first.connection(), good, failures, answered)
            elsewhere = second.connection()
            failures.extend(status for status, _ in (_review(elsewhere, good) for _ in range(20)) if status != 200)
            elsewhere.close()

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(answered), until=lambda count: count > 200, what="a stream of reviews")
        first.ask_to_end()
        eventually(
            lambda: first.get("/readyz")[0], until=lambda status: status in {0, 503}, timeout=2, what="not ready"
        )
        for thread in threads:
            thread.join(30)
        assert failures == []
        assert first.process.wait(30) == 0


@pytest.mark.usefixtures("allowed")
def test_an_idle_connection_outlives_the_request_to_end(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """An API server may send its next review on a pooled connection just then, and would not repeat it."""
    good = building.body({"metadata": {}, "spec": {"containers": []}}, namespace=namespace)
    with serving.started(cluster, namespace, tmp_path / "webhook", "--grace-seconds=20") as webhook:
        serving.until_ready(webhook)
        idle = webhook.connection()
        assert _review(idle, good) == (200, False)
        webhook.ask_to_end()
        eventually(lambda: _refuses(webhook), what="the end of the listener")
        assert webhook.get("/readyz") == (503, "drain: shutting down\n")
        assert _review(idle, good) == (200, True)
        idle.close()
        assert webhook.process.wait(10) == 0, "and then nothing is left to wait for"


def _refuses(webhook: Serving) -> bool:
    connection = webhook.connection()
    try:
        connection.connect()
    except OSError:
        return True
    finally:
        connection.close()
    return False


def _review_until_closed(
    connection: http.client.HTTPSConnection, body: bytes, failures: list[object], answered: list[int]
) -> None:
    """Send reviews until the server asks to close the connection."""
    closes = False
    while not closes and not failures:
        try:
            status, closes = _review(connection, body)
        except (OSError, http.client.HTTPException) as failure:
            failures.append(failure)
            return
        if status != 200:
            failures.append(status)
        answered.append(status)
    connection.close()


def _review(connection: http.client.HTTPSConnection, body: bytes) -> tuple[int, bool]:
    connection.request("POST", "/mutate?timeout=2s", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    allowed = json.loads(answer.read())["response"]["allowed"]
    assert allowed is True
    return answer.status, answer.will_close

"""The apiserver calls an admission webhook that listens on loopback."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from testbed import objects
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually


class AddsALabel(BaseHTTPRequestHandler):
    """The smallest mutating webhook."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        patch = json.dumps([{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]).encode()
        response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch"}
        response["patch"] = base64.b64encode(patch).decode()
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


@pytest.fixture
def webhook_url(cluster: ControlPlane) -> Iterator[str]:
    pair = cluster.layout.ca.server("label-webhook")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.cert, pair.key)
    with HTTPServer(("127.0.0.1", 0), AddsALabel) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}/mutate"
        server.shutdown()
        thread.join()


def test_webhook_url_is_called(cluster: ControlPlane, kube: Api, namespace: str, webhook_url: str) -> None:
    webhook = {
        "name": "label.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": webhook_url, "caBundle": base64.b64encode(cluster.layout.ca.bundle()).decode()},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    configuration = {"metadata": {"name": namespace}, "webhooks": [webhook]}
    kube.create("mutatingwebhookconfigurations", configuration)
    try:
        eventually(
            lambda: kube.create("pods", objects.pod("new"), namespace, dry_run=True)["metadata"]["labels"],
            until=lambda labels: labels.get("seen") == "yes",
            what="the webhook's label",
        )
    finally:
        kube.delete("mutatingwebhookconfigurations", namespace)

"""Rotation on the real apiserver: the order of the writes, several instances, and calls that never fail."""

import itertools
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest

from certs import keys, x509
from certs.objects import Configuration, Secret
from certs.x509 import Certificate
from cluster import auth, resources
from cluster.client import Client
from cluster.resources import Resource
from testbed import objects
from testbed.api import ApiError
from testbed.waiting import eventually
from tests.integration.certs.installation import CA, LEAF, OVERLAP_SECONDS, Installation

pytestmark = pytest.mark.apart

OVERLAP = timedelta(seconds=OVERLAP_SECONDS)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was in place after one write."""

    version: int
    bundle: tuple[Certificate, ...]
    leaf: Certificate | None
    record: dict[str, datetime]
    cause: str


def history(installed: Installation, since: str) -> list[Seen]:
    """Every write to the three objects in its order: resourceVersions of one etcd are one sequence."""
    client = Client(auth.connect(installed.bed.kubeconfig))
    events = [
        *watched(client, resources.SECRETS, Secret, since, installed.namespace, None),
        *watched(
            client,
            resources.MUTATINGWEBHOOKCONFIGURATIONS,
            Configuration,
            since,
            None,
            f"metadata.name={installed.namespace}",
        ),
    ]
    client.close()
    found: list[Seen] = []
    now = Seen(0, (), None, {}, "")
    for version, item in sorted(events, key=lambda event: event[0]):
        if isinstance(item, Configuration):
            bundle = x509.read(item.webhooks[0].client_config.ca_bundle)[0]
            now = Seen(version, bundle, now.leaf, now.record, "")
        elif item.metadata.name == LEAF:
            certs = x509.read(item.data.get(keys.LEAF_CERT, b""))[0]
            now = Seen(version, now.bundle, certs[0] if certs else None, now.record, "")
        elif item.metadata.name == CA:
            notes = item.metadata.annotations
            record = {name: datetime.fromisoformat(at) for name, at in json.loads(notes[keys.SEEN]).items()}
            now = Seen(version, now.bundle, now.leaf, record, notes[keys.CAUSE])
        found.append(now)
    return found


def watched(
    client: Client,
    resource: Resource,
    kind: type[Secret] | type[Configuration],
    since: str,
    namespace: str | None,
    selector: str | None,
) -> Iterator[tuple[int, Secret | Configuration]]:
    opening = client.watch(
        resource,
        resource_version=since,
        namespace=namespace,
        field_selector=selector,
        timeout_seconds=1,
        bookmarks=False,
    )
    with opening as stream:
        for line in stream:
            item = msgspec.json.decode(line, type=Event)
            yield int(item.version), msgspec.json.decode(item.object, type=kind)


class Event(msgspec.Struct):
    type: str
    object: msgspec.Raw

    @property
    def version(self) -> str:
        return str(msgspec.json.decode(self.object)["metadata"]["resourceVersion"])


def test_order_of_a_ca_rotation(installed: Installation) -> None:
    installed.configure()
    start = installed.configuration()["metadata"]["resourceVersion"]
    installed.ensure()
    first = installed.bundle()[0]
    assert "stop trusting the old CA" in installed.ensure("--rotate=ca")
    assert installed.healthy()
    writes = history(installed, start)
    new = installed.bundle()[0]
    assert new != first
    bundles = [tuple(sorted(cert.fingerprint[:6] for cert in step.bundle)) for step in writes if step.bundle]
    distinct = [bundle for bundle, _ in itertools.groupby(bundles)]
    old_fp, new_fp = first.fingerprint[:6], new.fingerprint[:6]
    assert distinct == [(old_fp,), tuple(sorted((old_fp, new_fp))), (new_fp,)]
    for step in writes:
        if step.leaf and step.bundle:
            assert any(x509.signed_by(step.leaf, cert) for cert in step.bundle), (
                "every leaf is trusted when it is written"
            )
    moved = next(step.leaf for step in writes if step.leaf and x509.signed_by(step.leaf, new))
    trusted_at = next(step.record[new.fingerprint] for step in writes if new.fingerprint in step.record)
    served_at = next(step.record[moved.fingerprint] for step in writes if moved.fingerprint in step.record)
    retired = next(step.cause for step in writes if "stop trusting" in step.cause)
    second = timedelta(seconds=1)  # certificates and causes are written in whole seconds
    assert moved.not_before + x509.BACKDATE >= trusted_at + OVERLAP - second
    assert datetime.fromisoformat(retired.split()[0]) >= served_at + OVERLAP - second


def test_rotation_of_the_leaf_keeps_the_ca(installed: Installation) -> None:
    installed.configure()
    installed.ensure()
    bundle, leaf = installed.bundle(), installed.leaf()
    installed.ensure("--rotate=leaf")
    assert installed.bundle() == bundle
    assert installed.leaf() != leaf
    assert installed.healthy()


def test_two_instances_at_once(installed: Installation) -> None:
    installed.configure()
    start = installed.configuration()["metadata"]["resourceVersion"]
    with ExitStack() as stack:
        both = [stack.enter_context(installed.running()) for _ in range(2)]
        eventually(lambda: [one.get("/readyz")[0] for one in both] == [200, 200], what="readiness of both")
        for kind, name in (("ca", CA), ("leaf", LEAF)):
            before = installed.leaf()
            installed.annotate(name, kind)
            eventually(lambda: installed.leaf() != before and installed.healthy(), what=f"rotation of the {kind}")  # noqa: B023
        assert [one.stop() for one in both] == [0, 0]
    assert installed.call("check").returncode == 0
    for step in history(installed, start):
        if step.leaf and step.bundle:
            assert any(x509.signed_by(step.leaf, cert) for cert in step.bundle)
    steps = [step.cause.split(" ", 1)[1] for step in history(installed, start) if step.cause]
    made = [step for step, _ in itertools.groupby(steps) if step.startswith("make a new CA")]
    assert len(made) == 2, "one at the installation, one at the rotation, whoever was faster"


class Allows(BaseHTTPRequestHandler):
    """Admits every pod; one connection, and so one handshake, per call."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {
            "apiVersion": review["apiVersion"],
            "kind": review["kind"],
            "response": {"uid": review["request"]["uid"], "allowed": True},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


class Quiet(HTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """The test looks at the answers of the apiserver instead."""


@contextmanager
def serving(context: ssl.SSLContext) -> Iterator[int]:
    with Quiet(("127.0.0.1", 0), Allows) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def load(context: ssl.SSLContext, installed: Installation) -> Certificate:
    """What the kubelet and the webhook's reload do together."""
    pair = installed.leaf()
    assert pair
    target = installed.folder / "tls.pem"
    target.write_bytes(pair.cert.pem + pair.key)
    context.load_cert_chain(target)
    return pair.cert


def test_no_call_fails_while_ca_and_leaf_rotate(installed: Installation) -> None:
    """The apiserver itself calls a server that shows the leaf; the policy is Fail, so a failed call fails a pod."""
    loopback = ("--extra-name=127.0.0.1",)
    installed.ensure(*loopback)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    first = load(context, installed)
    with serving(context) as port:
        url = f"https://127.0.0.1:{port}/mutate"
        installed.configure(installed.webhook("ours.example.com", url=url, failurePolicy="Fail", timeoutSeconds=10))
        with installed.running(*loopback) as running:
            eventually(lambda: running.get("/readyz")[0] == 200, what="readiness")
            eventually(lambda: create_pod(installed), what="the first call that works")
            installed.annotate(CA, "ca")
            installed.annotate(LEAF, "leaf")
            calls, failed, served, old = 0, 0, {first}, installed.bundle()

            def rotated() -> bool:
                nonlocal calls, failed
                calls += 1
                try:
                    create_pod(installed)
                except ApiError:
                    failed += 1
                served.add(load(context, installed))
                return calls >= 50 and len(installed.bundle()) == 1 and installed.bundle() != old

            eventually(rotated, timeout=60, interval=0.02, what="the end of the rotation")
            assert failed == 0, f"of {calls} calls"
            assert len(served) == 3, "the first leaf, the one that was asked for, and the one of the new CA"
            assert running.stop() == 0


def create_pod(installed: Installation) -> bool:
    created = installed.kube.create("pods", objects.pod("new"), installed.namespace, dry_run=True)
    return bool(created["metadata"]["name"])

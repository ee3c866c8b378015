"""The real certs replaces the CA of the webhook under a stream of pods: no call fails, no handshake is refused."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from certs import x509
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.pki import Pair
from testbed.waiting import eventually
from tests.integration.certs import installation
from tests.integration.certs.installation import CA, Installation
from tests.integration.webhook import serving, stream
from tests.integration.webhook.serving import Serving
from tests.integration.webhook.stream import Stream

LOOPBACK = "--extra-name=127.0.0.1"
LOOK_SECONDS = 0.2


class Kubelet:
    """Brings the leaf from its Secret into the folder that the webhook reads, whenever it has changed."""

    def __init__(self, installed: Installation, folder: Path) -> None:
        self.installed, self.folder = installed, folder
        self.brought: list[x509.Pair] = []

    def sync(self) -> None:
        pair = self.installed.leaf()
        if pair is None or pair in self.brought:
            return
        self.brought.append(pair)
        files = Pair(*(self.folder.parent / f"leaf-{len(self.brought)}.{end}" for end in ("crt", "key")))
        files.cert.write_bytes(pair.cert.pem)
        files.key.write_bytes(pair.key)
        serving.place(self.folder, files)


class Handshakes:
    """New connections, each by somebody who trusts what was published a moment before, and nothing else.

    An API server keeps its connections for minutes; one that has just started has none.
    """

    def __init__(self, installed: Installation, webhook: Serving) -> None:
        self.installed, self.webhook = installed, webhook
        self.made = 0
        self.refused: list[ssl.SSLError] = []

    def make(self) -> None:
        bundle = b"".join(cert.pem for cert in self.installed.bundle())
        connection = self.webhook.connection(ca=bundle.decode())
        try:
            connection.connect()
        except ssl.SSLError as refused:
            self.refused.append(refused)
        finally:
            connection.close()
        self.made += 1


@contextmanager
def repeated(*steps: Kubelet | Handshakes) -> Iterator[None]:
    """Each again and again, in a thread of its own."""
    stop = threading.Event()

    def run(step: Kubelet | Handshakes) -> None:
        while not stop.wait(LOOK_SECONDS):
            step.sync() if isinstance(step, Kubelet) else step.make()

    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.usefixtures("allowed")
def test_no_call_fails_while_the_ca_is_replaced(
    cluster: ControlPlane, kube: Api, namespace: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        enter = stack.enter_context
        installed = enter(installation.install(cluster, kube, namespace, tmp_path))
        installed.ensure(LOOPBACK)
        webhook = enter(serving.started(cluster, namespace, tmp_path / "webhook", f"--bundle-from={namespace}"))
        kubelet, handshakes = Kubelet(installed, webhook.folder / "tls"), Handshakes(installed, webhook)
        kubelet.sync()
        enter(serving.configured(cluster, kube, namespace, webhook.url, bundle=b""))
        certs = enter(installed.running(LOOPBACK))
        serving.until_ready(webhook)
        eventually(lambda: stream.marked(kube, namespace), what="the configuration in force")
        (old,), before = installed.bundle(), stream.failed_calls(kube, namespace)
        pods = Stream(kube, namespace)
        with pods.running(), repeated(kubelet, handshakes):
            pods.more()
            installed.annotate(CA, "ca")
            eventually(installed.bundle, until=lambda it: len(it) == 2, what="old and new CA together")
            pods.more()
            eventually(installed.bundle, until=lambda it: len(it) == 1 and it != (old,), what="the new CA alone")
            pods.more()
        assert stream.failed_calls(kube, namespace) - before == 0
        assert all(pods.marked), f"{pods.marked.count(False)} of {len(pods.marked)}"
        assert handshakes.refused == [], f"of {handshakes.made}"
        assert handshakes.made >= 10
        assert x509.signed_by(kubelet.brought[-1].cert, installed.bundle()[0])
        assert not x509.signed_by(kubelet.brought[-1].cert, old)
        assert webhook.get("/readyz") == (200, "ok\n")
        assert certs.stop() == 0

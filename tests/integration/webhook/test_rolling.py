"""A stream of pod creations while replicas and certificates are replaced: the API server counts no failed call."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from testbed import objects
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.integration.webhook import serving
from tests.integration.webhook.balancer import balanced
from tests.integration.webhook.serving import Serving
from tests.unit.webhook import building
from tests.unit.webhook.building import PREFIX

STREAMS = 4
STALLED = 200
DELAY_SECONDS = 0.1


class Stream:
    """Pods that are created, dry, one after the other by several callers."""

    def __init__(self, kube: Api, namespace: str) -> None:
        self.kube, self.namespace = kube, namespace
        self.marked: list[bool] = []
        self._stop = threading.Event()

    def more(self, count: int = 100) -> None:
        """Wait until so many more were created."""
        goal = len(self.marked) + count
        eventually(lambda: len(self.marked), until=lambda made: made >= goal, what=f"{goal} pods")

    def _run(self) -> None:
        while not self._stop.is_set():
            made = self.kube.create("pods", objects.pod("new"), self.namespace, dry_run=True)
            self.marked.append(made["metadata"]["labels"].get(PREFIX + "managed") == "true")

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._run) for _ in range(STREAMS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()


def failed_calls(kube: Api, namespace: str) -> float:
    """By the API server's own numbers: calls that failed open, and reviews that were refused."""
    text = kube.request("GET", "/metrics")["text"]
    names = ("apiserver_admission_webhook_fail_open_count", "apiserver_admission_webhook_rejection_count")
    ours = [line for line in text.splitlines() if line.startswith(names) and serving.hook_name(namespace) in line]
    return sum(float(line.rpartition(" ")[2]) for line in ours)


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
        stream = Stream(kube, namespace)
        eventually(lambda: _marked(kube, namespace), what="the configuration in force")
        with stream.running():
            stream.more()
            replicas.append(start("second"))
            for name in ("third", "fourth"):
                replicas[0].ask_to_end()
                stream.more()
                replicas.append(start(name))
                stream.more()
                del replicas[0]
            replicas[0].certify(cluster.layout.ca.server(f"new-{namespace}"))
            eventually(replicas[0].shown, until=lambda shown: shown.startswith("new-"), what="the new certificate")
            stream.more()
        assert all(stream.marked)
        assert failed_calls(kube, namespace) == 0


def _marked(kube: Api, namespace: str) -> bool:
    made = kube.create("pods", objects.pod("new"), namespace, dry_run=True)
    return PREFIX + "managed" in made["metadata"]["labels"]


def test_stalled_peers_delay_nobody(namespace: str, webhook: Serving) -> None:
    good = building.body({"metadata": {}, "spec": {"containers": []}}, namespace=namespace)
    with ExitStack() as stack:
        for index in range(STALLED):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", webhook.port), timeout=10))
            if index % 2:
                peer.sendall(b"\x16\x03\x01")  # the beginning of a handshake, and no more
        for _ in range(STALLED // 10):
            half = webhook.connection()
            stack.callback(half.close)
            half.connect()
            half.sock.sendall(
                b"POST /mutate HTTP/1.1\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{"
            )
        honest = webhook.connection()
        stack.callback(honest.close)
        waits = []
        for _ in range(20):
            began = time.monotonic()
            honest.request("POST", "/mutate", good, {"Content-Type": "application/json"})
            assert honest.getresponse().read()
            waits.append(time.monotonic() - began)
        assert sorted(waits)[len(waits) // 2] < DELAY_SECONDS, waits

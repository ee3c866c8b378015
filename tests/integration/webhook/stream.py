"""Pods that are created one after the other by several callers, and what the API server counts meanwhile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from testbed import objects
from testbed.api import Api
from testbed.waiting import eventually
from tests.integration.webhook import serving
from tests.unit.webhook.building import PREFIX

STREAMS = 4
FAILED_OPEN = "apiserver_admission_webhook_fail_open_count"
REJECTED = "apiserver_admission_webhook_rejection_count"


class Stream:
    """Creations of pods, dry; `marked` tells for each whether the webhook has seen it."""

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
            self.marked.append(marked(self.kube, self.namespace))

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


def marked(kube: Api, namespace: str) -> bool:
    """Whether a pod that is created now passes through the webhook."""
    made = kube.create("pods", objects.pod("new"), namespace, dry_run=True)
    return bool(made["metadata"]["labels"].get(PREFIX + "managed") == "true")


def counted_by_apiserver(kube: Api, namespace: str, *names: str) -> float:
    """By the API server's own numbers, those of the webhook of this namespace alone."""
    text = kube.request("GET", "/metrics")["text"]
    ours = [line for line in text.splitlines() if line.startswith(names) and serving.hook_name(namespace) in line]
    return sum(float(line.rpartition(" ")[2]) for line in ours)


def failed_calls(kube: Api, namespace: str) -> float:
    """Calls that failed open, and reviews that were refused."""
    return counted_by_apiserver(kube, namespace, FAILED_OPEN, REJECTED)

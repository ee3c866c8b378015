"""Instances of certs that stop before every request, and what must hold whatever they did.

Each instance runs the real code on a thread of its own; exactly one thread runs at any time, so a schedule is a list
of who goes next, and the same schedule always has the same outcome.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from certs import keys, reconcile, trust, x509
from certs.objects import Configuration, Secret
from certs.x509 import Certificate
from tests.unit.certs.simulated import OVERLAP, SETTINGS, Cluster, Write, settle

CA, LEAF = SETTINGS.ca_secret, SETTINGS.leaf_secret
R = TypeVar("R")


class Crash(BaseException):
    """The process dies here."""


@dataclass(slots=True)
class Instance:
    """One certs process: the real reconciliation over requests that wait for their turn. Implements `objects.Api`."""

    cluster: Cluster
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    parked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    dies: str = ""
    """`before` or `after` the effect of the next request, or `end` for good."""
    failure: BaseException | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()
        self.parked.acquire()

    def live(self) -> None:
        while self.dies != "end":
            try:
                reconcile.once(self, SETTINGS, self.cluster.clock)
            except Crash:
                continue
            except BaseException as failure:  # noqa: BLE001 - told by `step`, in the thread of the test
                self.failure = failure
                break
        self.parked.release()

    def step(self, dies: str = "") -> None:
        """Let it come to its next request."""
        self.dies = dies
        self.go.release()
        self.parked.acquire()
        if self.failure:
            raise self.failure

    def request(self, effect: Callable[[], R]) -> R:
        self.parked.release()
        self.go.acquire()
        if self.dies in {"before", "end"}:
            raise Crash
        answer = effect()
        if self.dies == "after":
            raise Crash
        return answer

    def configuration(self) -> Configuration | None:
        return self.request(self.cluster.configuration)

    def secret(self, name: str) -> Secret | None:
        return self.request(lambda: self.cluster.secret(name))

    def create_secret(self, name: str, body: Mapping[str, Any]) -> None:
        self.request(lambda: self.cluster.create_secret(name, body))

    def patch_secret(self, found: Secret, body: Mapping[str, Any]) -> None:
        self.request(lambda: self.cluster.patch_secret(found, body))

    def remove_secret(self, found: Secret) -> None:
        self.request(lambda: self.cluster.remove_secret(found))

    def patch_configuration(self, found: Configuration, operations: Sequence[Mapping[str, Any]]) -> None:
        self.request(lambda: self.cluster.patch_configuration(found, operations))


@contextmanager
def instances(cluster: Cluster, count: int) -> Iterator[list[Instance]]:
    running = [Instance(cluster) for _ in range(count)]
    try:
        yield running
    finally:
        for instance in running:
            instance.dies = "end"
            instance.go.release()
            instance.thread.join()


# ---- what must hold


def leaf_of(secrets: Mapping[str, Secret]) -> Certificate | None:
    found = x509.read(secrets[LEAF].data.get(keys.LEAF_CERT, b""))[0] if LEAF in secrets else ()
    return found[0] if found else None


def in_place(history: Sequence[Write], at: datetime) -> Iterator[Write]:
    """Everything that was in place at some moment of the overlap before `at`."""
    for write, following in zip(history, (*history[1:], None), strict=True):
        if following is None or following.at > at - OVERLAP:
            yield write


def check(history: Sequence[Write], quiet_since: datetime) -> None:
    """Any leaf of the last overlap is accepted by any bundle of the last overlap.

    The kubelet shows a leaf, and an apiserver reads a bundle, up to the overlap late; nobody knows how late.
    Meddling excuses what was in place at its time, until the overlap after the repair is over.
    """
    for number, write in enumerate(history, start=1):
        recent = [found for found in in_place(history[:number], write.at) if found.at >= quiet_since]
        leaves = {leaf for found in recent if (leaf := leaf_of(found.secrets))}
        for found in recent:
            assert found.configuration
            bundle = x509.read(found.configuration.webhooks[0].client_config.ca_bundle)[0]
            for leaf in leaves:
                assert trust.signer(bundle, leaf, write.at), f"{write.what} at {write.at}: a leaf is not trusted"


def check_published(history: Sequence[Write]) -> None:
    """Whatever happened before: if the leaf in place was trusted, it still is after a write of ours to the bundle."""
    for before, write in itertools.pairwise(history):
        leaf = leaf_of(write.secrets)
        if write.what != "publish" or leaf is None or not before.configuration or not write.configuration:
            continue
        trusted_before = x509.read(before.configuration.webhooks[0].client_config.ca_bundle)[0]
        trusted_now = x509.read(write.configuration.webhooks[0].client_config.ca_bundle)[0]
        if trust.signer(trusted_before, leaf, write.at):
            assert trust.signer(trusted_now, leaf, write.at), "we took the signer of the leaf out of the bundle"


def heals(cluster: Cluster) -> None:
    """Left alone, it is settled after two rotations' worth of waiting, with one CA and a leaf of it."""
    for _ in range(8):
        settle(cluster)
        cluster.clock.advance(OVERLAP)
    assert settle(cluster) == []
    bundle = x509.read(cluster.bundle())[0]
    leaf = leaf_of(cluster.secrets)
    assert len(bundle) == 1
    assert leaf
    assert trust.signer(bundle, leaf, cluster.clock())

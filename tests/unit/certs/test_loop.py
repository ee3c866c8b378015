"""The loop: when it looks again, what it tells, and that it stops."""

import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from certs import keys
from certs.loop import Loop
from certs.objects import Configuration
from certs.report import Reporter
from certs.settings import Settings
from certs.x509 import read
from cluster import errors
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric
from tests.unit.certs.simulated import AT_ONCE, SETTINGS, Cluster, configuration, installed

PATIENCE_SECONDS = 20.0


class Rig:
    """A loop on a simulated cluster, with what it says and counts."""

    def __init__(self, cluster: Cluster, settings: Settings = AT_ONCE) -> None:
        self.cluster = cluster
        self.lines: list[dict[str, Any]] = []
        self.meter = Meter(strict=True)
        self.beats = 0
        log = Logger(lambda line: self.lines.append(dict(line)), now=cluster.clock, strict=True, level=0)
        self.reporter = Reporter(log, self.meter, cluster.clock)
        self.loop = Loop(
            cluster,
            settings,
            reporter=self.reporter,
            clock=cluster.clock,
            monotonic=time.monotonic,
            rng=random.Random(7),
            beat=self._beat,
        )

    def _beat(self) -> None:
        self.beats += 1

    def events(self) -> list[str]:
        return [str(line["event"]) for line in self.lines]


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < end, "it did not come"
        pause.wait(0.002)


def fresh() -> Cluster:
    cluster = Cluster()
    cluster.configure(configuration())
    return cluster


def test_a_turn_installs_tells_and_rests_for_the_interval() -> None:
    rig = Rig(fresh())
    assert rig.reporter.unready() == "no pass has ended yet"
    assert rig.loop.turn() == SETTINGS.interval
    assert rig.events() == ["CERTIFICATE_ISSUED", "BUNDLE_PUBLISHED", "CERTIFICATE_ISSUED"]
    assert rig.reporter.unready() is None
    now = rig.cluster.clock()
    for role, life in (("ca", SETTINGS.ca_life), ("leaf", SETTINGS.leaf_life)):
        assert rig.meter.read(Metric.CERTIFICATE_EXPIRY, certificate=role) == (now + life).timestamp()
    assert rig.meter.read(Metric.LAST_GOOD_PASS_TIMESTAMP) == now.timestamp()
    assert rig.meter.read(Metric.PASSES_FAILED) == 0


def test_rotations_are_counted_by_kind() -> None:
    rig = Rig(installed())
    rig.cluster.annotate(SETTINGS.leaf_secret, keys.ROTATE, "leaf")
    rig.loop.turn()
    issued = [line["certificate"] for line in rig.lines if line["event"] == "CERTIFICATE_ISSUED"]
    assert issued == ["leaf"]
    assert rig.meter.read(Metric.CERTIFICATE_ROTATIONS, certificate="leaf") == 1


def test_a_wait_shortens_the_rest() -> None:
    rig = Rig(fresh(), Settings(overlap=timedelta(seconds=20)))
    assert rig.loop.turn() == timedelta(seconds=20)
    rig.cluster.clock.advance(timedelta(seconds=15))
    assert rig.loop.turn() == timedelta(seconds=5)


def test_no_key_and_no_certificate_is_logged() -> None:
    rig = Rig(fresh())
    rig.loop.turn()
    said = repr(rig.lines) + rig.meter.render()[1].decode()
    assert "BEGIN" not in said
    for secret in rig.cluster.secrets.values():
        for value in secret.data.values():
            assert value.decode().splitlines()[1][:30] not in said


UNREADY = {
    "leaf emptied": (lambda c: c.change(SETTINGS.leaf_secret, data={}), "cannot be read"),
    "leaf deleted": (lambda c: c.drop(SETTINGS.leaf_secret), "no such Secret"),
    "bundle wiped": (lambda c: c.wipe(), "does not verify"),
}


@pytest.mark.parametrize(("damage", "message"), UNREADY.values(), ids=UNREADY.keys())
def test_readiness_tells_what_is_wrong(damage: Callable[[Cluster], object], message: str) -> None:
    rig = Rig(installed(), Settings(external=True))
    rig.loop.turn()
    assert rig.reporter.unready() is None
    damage(rig.cluster)
    rig.loop.turn()
    assert message in str(rig.reporter.unready())


def test_readiness_knows_the_time() -> None:
    rig = Rig(installed())
    rig.loop.turn()
    rig.cluster.clock.advance(SETTINGS.leaf_life)
    assert rig.reporter.unready() == "the leaf has expired"


class Away(Cluster):
    """An apiserver that fails for a while."""

    failure: Exception | None = errors.Unreachable("nobody is there")
    asked: int = 0

    def configuration(self) -> Configuration | None:
        self.asked += 1
        if self.failure:
            raise self.failure
        return super().configuration()


def test_failures_are_counted_and_the_rest_grows() -> None:
    rig = Rig(Away())
    rests = [rig.loop.turn().total_seconds() for _ in range(10)]
    assert 0.8 <= rests[0] <= 1.2
    assert all(48 <= rest <= 72 for rest in rests[7:]), "bounded"
    assert rig.meter.read(Metric.PASSES_FAILED) == 10
    assert set(rig.events()) == {"PASS_FAILED"}


def test_the_server_may_ask_for_more_time() -> None:
    cluster = Away()
    cluster.failure = errors.Throttled("too many", retry_after=300.0)
    assert Rig(cluster).loop.turn() == timedelta(seconds=300)


def test_a_defect_is_not_the_end() -> None:
    cluster = Away()
    cluster.failure = ZeroDivisionError("ours")
    rig = Rig(cluster)
    rig.loop.turn()
    assert rig.events() == ["INTERNAL_ERROR"]
    assert rig.meter.read(Metric.INTERNAL_ERRORS) == 1
    cluster.failure = None
    cluster.configure(configuration())
    assert rig.loop.turn() == SETTINGS.interval


def test_a_change_wakes_it_and_a_stop_ends_it() -> None:
    rig = Rig(installed())
    rig.loop.start()
    until(lambda: rig.beats == 1)
    rig.cluster.wipe()
    rig.loop.wake()
    until(lambda: len(read(rig.cluster.bundle())[0]) == 1)
    began = time.monotonic()
    assert rig.loop.stop()
    assert time.monotonic() - began < 1.0


def test_while_it_backs_off_changes_do_not_hurry_it() -> None:
    cluster = Away()
    rig = Rig(cluster)
    rig.loop.start()
    until(lambda: rig.beats == 1)
    for _ in range(50):
        rig.loop.wake()
    assert rig.loop.stop()
    assert cluster.asked == 1


def test_a_loop_that_never_started_can_be_stopped() -> None:
    assert Rig(Cluster()).loop.stop()

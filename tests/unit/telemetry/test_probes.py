"""Liveness, readiness, and a server that slow clients cannot block."""

import http.client
import socket
from collections.abc import Iterator

import pytest

from telemetry import listening
from telemetry.meter import Meter
from telemetry.metrics import Metric
from telemetry.probes import Health, LastGood, ProbeServer
from tests.unit.telemetry.loopbacks import LISTENING, LOOPBACKS, reaches


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_all_failed_checks_are_named() -> None:
    health = Health()
    health.ready("pods", lambda: "pods not synced yet")
    health.ready("nodes", lambda: None)
    health.live("loop", lambda: "stuck")
    assert health.liveness().failed == (("loop", "stuck"),)
    assert health.readiness().failed == (("loop", "stuck"), ("pods", "pods not synced yet"))
    assert health.readiness().render() == "loop: stuck\npods: pods not synced yet\n"


def test_a_check_that_raises_has_failed() -> None:
    health = Health()
    health.live("broken", lambda: str(1 // 0))
    assert health.liveness().failed == (("broken", "ZeroDivisionError: integer division or modulo by zero"),)


def test_nothing_to_check_is_fine() -> None:
    assert Health().liveness().ok
    assert Health().readiness().render() == "ok\n"


def test_last_good_pass() -> None:
    clock = Clock()
    good = LastGood(max_age=90, clock=clock)
    clock.now += 90
    assert good() is None
    clock.now += 1
    assert good() == "last good pass 91 s ago, at most 90 s allowed", "also if there never was one"
    good.mark()
    assert good() is None
    clock.now += 1000
    good.pause()
    assert good() is None, "a standby replica has no passes"
    clock.now += 1000
    good.resume()
    assert good.age() == 0
    clock.now += 91
    assert good() is not None


@pytest.fixture
def server() -> Iterator[ProbeServer]:
    health, numbers = Health(), Meter(strict=True)
    health.ready("pods", lambda: "not synced")
    numbers.inc(Metric.PASSES_FAILED)
    running = ProbeServer(("127.0.0.1", 0), health=health, meter=numbers)
    running.start()
    yield running
    running.stop()


def ask(server: ProbeServer, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(*server.address, timeout=5)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


ENDPOINTS = {
    "liveness": ("/healthz", 200, "ok"),
    "readiness": ("/readyz?verbose", 503, "pods: not synced"),
    "metrics": ("/metrics", 200, "spotshift_passes_failed_total 1.0"),
    "anything else": ("/", 404, "not found"),
}


@pytest.mark.parametrize(("path", "status", "text"), ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_endpoints(server: ProbeServer, path: str, status: int, text: str) -> None:
    got, body = ask(server, path)
    assert got == status
    assert text in body


def test_other_methods(server: ProbeServer) -> None:
    assert ask(server, "/healthz", "HEAD") == (200, "")
    assert ask(server, "/healthz", "POST")[0] == 501


def test_slow_clients_block_nobody(server: ProbeServer) -> None:
    """Three times as many silent and half-spoken connections as there is room for, then a probe."""
    slow = [socket.create_connection(server.address, timeout=5) for _ in range(3 * listening.MAX_CONNECTIONS)]
    for connection in slow[::2]:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
    try:
        assert ask(server, "/healthz") == (200, "ok\n")
        assert slow[0].recv(1) == b"", "the oldest had to go"
    finally:
        for connection in slow:
            connection.close()


def test_a_taken_port_fails_at_once(server: ProbeServer) -> None:
    with pytest.raises(OSError, match="in use"):
        ProbeServer(server.address, health=Health(), meter=Meter(strict=True))


def test_stop_without_start() -> None:
    ProbeServer(("127.0.0.1", 0), health=Health(), meter=Meter(strict=True)).stop()


def refuse_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "has_dualstack_ipv6", lambda: False)


@pytest.mark.parametrize(("host", "answering"), LISTENING.values(), ids=LISTENING.keys())
def test_who_can_reach_it(host: str, answering: list[str]) -> None:
    running = ProbeServer((host, 0), health=Health(), meter=Meter(strict=True))
    running.start()
    port = running.address[1]
    try:
        for address in LOOPBACKS:
            assert reaches(address, port) is (address in answering)
    finally:
        running.stop()


def test_a_machine_without_ipv6_listens_on_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_ipv6(monkeypatch)
    running = ProbeServer(("", 0), health=Health(), meter=Meter(strict=True))
    running.start()
    try:
        assert running.shown == f"0.0.0.0:{running.address[1]}"
        assert ask(running, "/healthz") == (200, "ok\n")
    finally:
        running.stop()


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(OSError, match=r".+"):
        ProbeServer(("no host", 0), health=Health(), meter=Meter(strict=True))


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("", "[::]")], ids=["one", "all"])
def test_addresses_are_shown_as_people_write_them(host: str, shown: str) -> None:
    server = ProbeServer((host, 0), health=Health(), meter=Meter(strict=True))
    every = shown if socket.has_dualstack_ipv6() or host else "0.0.0.0"  # noqa: S104
    assert server.shown == f"{every}:{server.address[1]}"
    server.stop()

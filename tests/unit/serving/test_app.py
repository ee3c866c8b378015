"""Probes and metrics over HTTP, as the kubelet asks for them."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
import urllib3

from serving import app
from telemetry import listening
from telemetry.meter import Meter
from telemetry.metrics import Metric
from telemetry.probes import Health
from tests.unit.cluster.surroundings import until
from tests.unit.telemetry.loopbacks import LISTENING, LOOPBACKS, reaches


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
def served(health: Health) -> Iterator[str]:
    meter = Meter(strict=True)
    meter.inc(Metric.ADMISSIONS, result="patched")
    server = app.Server(("127.0.0.1", 0), app.create(health=health, meter=meter))
    server.start()
    yield server.address
    server.stop()


def get(address: str, path: str) -> tuple[int, str]:
    answer = urllib3.request(
        "GET", f"http://{address}{path}", retries=False, timeout=5, headers={"Connection": "close"}
    )
    return answer.status, answer.data.decode()


def test_ready_says_what_is_missing(served: str, health: Health) -> None:
    assert get(served, "/readyz") == (200, "ok\n")
    health.ready("view", lambda: "nodes not synced yet")
    assert get(served, "/readyz") == (503, "view: nodes not synced yet\n")
    assert get(served, "/healthz") == (200, "ok\n")


def test_metrics(served: str) -> None:
    status, text = get(served, "/metrics")
    assert status == 200
    assert 'spotshift_admissions_total{result="patched"} 1.0' in text


@pytest.mark.parametrize("path", ["/", "/mutate", "/healthz/x", "/static/x"])
def test_nothing_else_is_here(served: str, path: str) -> None:
    assert get(served, path)[0] == 404


def threads() -> int:
    return sum("process_request_thread" in it.name for it in threading.enumerate())


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if everybody said a byte now and then."""
    monkeypatch.setattr(app._Handler, "timeout", 600)


@pytest.mark.usefixtures("patient")
def test_slow_clients_block_nobody_and_hold_few_threads(served: str) -> None:
    """Three times as many silent and half-spoken connections as there is room for, then a probe."""
    before, (host, port) = threads(), served.split(":")
    slow = [socket.create_connection((host, int(port)), timeout=5) for _ in range(3 * listening.MAX_CONNECTIONS)]
    for connection in slow[::2]:
        with suppress(ConnectionError):  # some had to go already
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
    try:
        assert get(served, "/healthz") == (200, "ok\n")
        assert dropped(slow[0]), "the oldest had to go"
        until(lambda: threads() - before <= listening.MAX_CONNECTIONS, "few threads")
    finally:
        for connection in slow:
            connection.close()


def dropped(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.usefixtures("patient")
def test_who_keeps_a_connection_is_let_go_at_the_end(health: Health) -> None:
    server = app.Server(("127.0.0.1", 0), app.create(health=health, meter=Meter(strict=True)))
    server.start()
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as idle:
        assert get(server.address, "/healthz")[0] == 200
        server.stop()
        assert dropped(idle)


@pytest.mark.parametrize(("host", "answering"), LISTENING.values(), ids=LISTENING.keys())
def test_who_can_reach_it(health: Health, host: str, answering: list[str]) -> None:
    server = app.Server((host, 0), app.create(health=health, meter=Meter(strict=True)))
    server.start()
    port = int(server.address.rpartition(":")[2])
    try:
        for address in LOOPBACKS:
            assert reaches(address, port) is (address in answering)
    finally:
        server.stop()


@pytest.mark.parametrize("address", LOOPBACKS)
def test_addresses_are_shown_as_people_write_them(health: Health, address: str) -> None:
    server = app.Server((address, 0), app.create(health=health, meter=Meter(strict=True)))
    server.start()
    try:
        assert get(server.address, "/healthz") == (200, "ok\n")
    finally:
        server.stop()

"""Probes and metrics over HTTP, as the kubelet asks for them."""

import socket
from collections.abc import Iterator

import pytest
import urllib3

from serving import app
from telemetry.meter import Meter
from telemetry.metrics import Metric
from telemetry.probes import Health


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


def test_a_slow_client_blocks_nobody(served: str) -> None:
    host, port = served.split(":")
    stalled = [socket.create_connection((host, int(port)), timeout=5) for _ in range(20)]
    for connection in stalled:
        connection.sendall(b"GET /healthz HTT")
    assert get(served, "/healthz")[0] == 200
    for connection in stalled:
        connection.close()

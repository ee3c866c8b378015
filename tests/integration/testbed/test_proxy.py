"""Each fault of the proxy, seen by a plain client."""

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import urllib3

from testbed import access, api, bed, faults
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.pki import kubeconfig
from testbed.proxy import FaultProxy
from testbed.waiting import eventually, patient

BROKEN = (urllib3.exceptions.ProtocolError, urllib3.exceptions.SSLError, ConnectionError)


@pytest.fixture
def through(cluster: ControlPlane, fault_proxy: FaultProxy) -> api.Api:
    """A plain client whose way leads through the proxy."""
    return api.connect(fault_proxy.kubeconfig(cluster.home / "pki" / f"{fault_proxy.port}.kubeconfig"))


def seconds(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def config_map(name: str, value: str = "") -> api.Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}


def test_without_rules_it_is_transparent(through: api.Api, fault_proxy: FaultProxy, namespace: str) -> None:
    through.create("configmaps", config_map("plain", "x" * 300_000), namespace)
    assert len(through.get("configmaps", "plain", namespace)["data"]["value"]) == 300_000
    with pytest.raises(api.ApiError) as missing:
        through.get("configmaps", "absent", namespace)
    assert missing.value.status == 404
    verbs = [(request.verb, request.resource) for request in fault_proxy.requests]
    assert verbs == [("create", "configmaps"), ("get", "configmaps"), ("get", "configmaps")]


def test_token_of_the_client_goes_through(
    cluster: ControlPlane, kube: api.Api, fault_proxy: FaultProxy, namespace: str, tmp_path: Path
) -> None:
    token = access.token(kube, "default", namespace)
    client = api.connect(fault_proxy.kubeconfig(tmp_path / "config", token=token))
    with pytest.raises(api.ApiError, match=f"system:serviceaccount:{namespace}:default") as refusal:
        client.list("pods", namespace)
    assert refusal.value.status == 403


def test_real_kubectl_works_through_it(
    cluster: ControlPlane, fault_proxy: FaultProxy, kube: api.Api, namespace: str, tmp_path: Path
) -> None:
    account = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    kube.create("rolebindings", {"metadata": {"name": "v"}, "subjects": [account], "roleRef": role}, namespace)
    token = access.token(kube, "default", namespace)
    config = kubeconfig(
        tmp_path / "config", server=fault_proxy.server, ca=cluster.layout.ca.bundle(), user={"token": token}
    )
    assert "kube-root-ca.crt" in cluster.kubectl(f"--kubeconfig={config}", "get", "configmaps", "-n", namespace)


class Watching:
    """Collects the events of a watch in a thread, with the time each arrived."""

    def __init__(self, client: api.Api, namespace: str) -> None:
        self.names: list[tuple[str, float]] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(client, namespace), daemon=True)
        self._thread.start()

    def _run(self, client: api.Api, namespace: str) -> None:
        try:
            for event in client.watch("configmaps", namespace, seconds=20):
                self.names.append((event["object"]["metadata"]["name"], time.monotonic()))
        except BROKEN as broken:
            self.error = broken

    def seen(self, name: str) -> float:
        return next(
            at for found, at in eventually(lambda: list(self.names), until=lambda n: name in dict(n)) if found == name
        )

    def broken(self) -> BaseException:
        error = eventually(lambda: self.error, what="the end of the stream")
        assert error is not None
        return error


def test_watch_passes_unbuffered(through: api.Api, kube: api.Api, namespace: str) -> None:
    watching = Watching(through, namespace)
    watching.seen("kube-root-ca.crt")
    for name in ("one", "two"):
        kube.create("configmaps", config_map(name), namespace)
        answered = time.monotonic()
        assert watching.seen(name) - answered < patient(1.0), "each event arrives by itself, not with the next"


def test_delay(through: api.Api, fault_proxy: FaultProxy) -> None:
    rule = fault_proxy.rules.add(faults.Delay(1.0), verb="list", resource="nodes", count=1)
    assert seconds(lambda: through.list("nodes")) >= 1.0
    assert seconds(lambda: through.list("nodes")) < patient(1.0)
    assert rule.hits == 1


@pytest.mark.parametrize("status", [409, 410, 429, 500, 503, 504])
def test_answer(through: api.Api, fault_proxy: FaultProxy, namespace: str, status: int) -> None:
    fault_proxy.rules.add(faults.Answer(status, retry_after=7), verb="create", resource="configmaps", count=1)
    with pytest.raises(api.ApiError) as refusal:
        through.create("configmaps", config_map("a"), namespace)
    assert refusal.value.status == status
    assert refusal.value.body["reason"] == faults.REASONS[status]
    assert refusal.value.headers["Retry-After"] == "7"
    through.create("configmaps", config_map("a"), namespace)  # it had not reached the apiserver, else: AlreadyExists


def test_cut_in_the_middle_of_an_answer(through: api.Api, fault_proxy: FaultProxy, namespace: str) -> None:
    through.create("configmaps", config_map("big", "x" * 100_000), namespace)
    fault_proxy.rules.add(faults.Cut(after_bytes=50_000), verb="get", resource="configmaps", count=1)
    with pytest.raises(BROKEN):
        through.get("configmaps", "big", namespace)
    assert through.get("configmaps", "big", namespace)


def test_cut_before_the_answer_leaves_the_deed_done(
    through: api.Api, kube: api.Api, fault_proxy: FaultProxy, namespace: str
) -> None:
    fault_proxy.rules.add(faults.Cut(), verb="create", resource="configmaps", count=1)
    with pytest.raises(BROKEN):
        through.create("configmaps", config_map("done"), namespace)
    assert kube.get("configmaps", "done", namespace)


def test_cut_in_the_middle_of_an_event(
    through: api.Api, kube: api.Api, fault_proxy: FaultProxy, namespace: str
) -> None:
    fault_proxy.rules.add(faults.Cut(after_bytes=40), verb="watch", resource="configmaps")
    assert isinstance(Watching(through, namespace).broken(), BROKEN)


def test_hold_without_a_byte(through: api.Api, fault_proxy: FaultProxy, namespace: str) -> None:
    fault_proxy.rules.add(faults.Hold(), verb="get", count=1)
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        through.request("GET", api.path("configmaps", "kube-root-ca.crt", namespace), timeout=1.0)
    assert through.get("configmaps", "kube-root-ca.crt", namespace)


def test_held_request_took_effect(through: api.Api, kube: api.Api, fault_proxy: FaultProxy, namespace: str) -> None:
    fault_proxy.rules.add(faults.Hold(), verb="create", count=1)
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        through.request("POST", api.path("configmaps", None, namespace), body=config_map("done"), timeout=2.0)
    assert kube.get("configmaps", "done", namespace)


def test_hold_a_watch_after_the_first_bytes(
    through: api.Api, kube: api.Api, fault_proxy: FaultProxy, namespace: str
) -> None:
    fault_proxy.rules.add(faults.Hold(after_bytes=0), verb="watch", resource="configmaps", count=1)
    held = Watching(through, namespace)
    eventually(lambda: fault_proxy.requests)
    live = Watching(through, namespace)
    kube.create("configmaps", config_map("unheard"), namespace)
    live.seen("unheard")
    assert held.names == []
    assert held.error is None, "the stream is open, only silent"
    fault_proxy.cut_all()
    held.broken()


def test_blackhole(through: api.Api, kube: api.Api, fault_proxy: FaultProxy, namespace: str) -> None:
    fault_proxy.rules.add(faults.Blackhole(), verb="create", count=1)
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        through.request("POST", api.path("configmaps", None, namespace), body=config_map("lost"), timeout=1.0)
    with pytest.raises(api.ApiError) as missing:
        kube.get("configmaps", "lost", namespace)
    assert missing.value.status == 404


@pytest.mark.parametrize("after", [False, True], ids=["request", "answer"])
def test_gate_holds_until_it_is_opened(
    through: api.Api, kube: api.Api, fault_proxy: FaultProxy, namespace: str, after: bool
) -> None:
    gate = faults.Gate(after=after)
    fault_proxy.rules.add(gate, verb="create", body="gated", count=1)
    sender = threading.Thread(target=through.create, args=("configmaps", config_map("gated"), namespace))
    sender.start()
    assert gate.reached.wait(10)
    there = {it["metadata"]["name"] for it in kube.list("configmaps", namespace)}
    assert (("gated" in there), sender.is_alive()) == (after, True)
    gate.opened.set()
    sender.join(10)
    assert not sender.is_alive()
    assert kube.get("configmaps", "gated", namespace)


def test_slow(through: api.Api, fault_proxy: FaultProxy, namespace: str) -> None:
    through.create("configmaps", config_map("big", "x" * 50_000), namespace)
    fault_proxy.rules.add(faults.Slow(bytes_per_second=50_000), verb="get", count=1)
    assert seconds(lambda: through.get("configmaps", "big", namespace)) >= 0.9


def test_refused_and_accepted_again(through: api.Api, fault_proxy: FaultProxy) -> None:
    fault_proxy.refuse()
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", fault_proxy.port)):
        pass
    fault_proxy.accept()
    assert through.request("GET", "/version")["gitVersion"].startswith("v1.")


def test_a_proxy_that_accepts_again_is_the_same_server(fault_proxy: FaultProxy) -> None:
    shown = [ssl.get_server_certificate(("127.0.0.1", fault_proxy.port))]
    fault_proxy.refuse()
    fault_proxy.accept()
    shown.append(ssl.get_server_certificate(("127.0.0.1", fault_proxy.port)))
    assert shown[0] == shown[1]


def test_hanging_up_frees_the_stream(
    through: api.Api, cluster: ControlPlane, fault_proxy: FaultProxy, namespace: str
) -> None:
    stream: Iterator[api.Object] = through.watch("configmaps", namespace, seconds=60)
    next(stream)
    assert fault_proxy.open_connections == 1
    through.pool.clear()
    del stream
    eventually(lambda: fault_proxy.open_connections == 0, what="the end of the proxy's work for a client that left")


def raw(fault_proxy: FaultProxy, request: bytes, *, slow: bool = False) -> bytes:
    """Everything the proxy sends for one hand-written request until it hangs up."""
    context = ssl.create_default_context(cafile=str(fault_proxy.bed.layout.ca.pair.cert))
    plain = socket.create_connection(("127.0.0.1", fault_proxy.port), timeout=30)
    if slow:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(request)
        if slow:
            eventually(lambda: fault_proxy.requests, what="the request")
        received = b""
        while chunk := connection.recv(16384 if slow else 65536):
            received += chunk
    return received


def test_slow_reader_gets_every_byte(through: api.Api, fault_proxy: FaultProxy, namespace: str) -> None:
    for index in range(4):
        through.create("configmaps", config_map(f"big-{index}", "x" * 900_000), namespace)
    fault_proxy.requests.clear()
    request = f"GET /api/v1/namespaces/{namespace}/configmaps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    received = raw(fault_proxy, request.encode(), slow=True)
    assert received.endswith((b"}", b"}\n", b"0\r\n\r\n"))
    assert received.count(b"x") >= 4 * 900_000


def test_old_and_careful_clients(fault_proxy: FaultProxy, kube: api.Api, namespace: str) -> None:
    old = raw(fault_proxy, b"GET /version HTTP/1.0\r\n\r\n")
    assert b" 200 " in old.splitlines()[0]
    body = b'{"metadata":{"name":"careful"}}'
    head = (
        f"POST /api/v1/namespaces/{namespace}/configmaps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    careful = raw(fault_proxy, head.encode() + body)
    assert b" 201 " in careful
    assert kube.get("configmaps", "careful", namespace)


def test_many_proxies_start_at_once(cluster: ControlPlane) -> None:
    def start_and_stop(_: int) -> str:
        with FaultProxy(cluster) as proxy:
            return str(api.connect(cluster.kubeconfig, server=proxy.server).request("GET", "/version")["major"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(start_and_stop, range(24))) == ["1"] * 24


def test_apiserver_restart_is_seen_and_survived(tmp_path: Path, control_plane_binaries: Binaries) -> None:
    own = bed.up(tmp_path / "bed", control_plane_binaries, owner=os.getpid())
    try:
        with FaultProxy(own) as proxy:
            client = api.connect(proxy.kubeconfig(tmp_path / "config"))
            watching = Watching(client, "default")
            watching.seen("kube-root-ca.crt")
            own.restart("kube-apiserver", grace_seconds=0)
            watching.broken()
            assert client.list("namespaces"), "the same client goes on"
    finally:
        bed.down(own.home)

"""Ten thousand requests that no API server would send, and the next honest one is answered as if nothing was."""

import contextlib
import http.client
import json
import random
import socket
import ssl
from collections import Counter
from collections.abc import Callable

from testbed.api import Api
from tests.integration.webhook.serving import Serving
from tests.integration.webhook.test_server import counted
from tests.unit.webhook import building
from tests.unit.webhook.building import PREFIX

BODIES, STREAMS, LARGE = 9_400, 500, 100
POD = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {PREFIX + "spot": "avoid"}},
    "spec": {"containers": [{"name": "main", "image": "app:1"}], "tolerations": [{"key": "a", "operator": "Exists"}]},
}
ODD: tuple[object, ...] = (None, 0, -1, 1e300, "", "x" * 5000, [], {}, [[]], {"": None}, "\x00", "\ud800", True)


def _flipped(rng: random.Random, good: bytes) -> bytes:
    found = bytearray(good)
    for _ in range(rng.randint(1, 8)):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def _cut(rng: random.Random, good: bytes) -> bytes:
    return good[: rng.randrange(len(good))]


def _noise(rng: random.Random, _: bytes) -> bytes:
    return rng.randbytes(rng.randrange(300))


def _nested(rng: random.Random, _: bytes) -> bytes:
    return rng.choice([b"[", b'{"a":', b'{"request":{"object":']) * rng.randrange(1, 20_000)


def _odd(rng: random.Random, good: bytes) -> bytes:
    """A well-formed document with a value somewhere that does not belong there."""
    document = json.loads(good)
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.2:
            place[key] = rng.choice(ODD)
            return json.dumps(document).encode()
        place = place[key]


def many(rng: random.Random, good: bytes) -> bytes:
    """More alternatives than anybody would write, of which spot is required."""
    document = json.loads(good)
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a" * rng.choice((1, 9000))]}]}
    required = {"nodeSelectorTerms": [term] * rng.choice((1, 50, 64, 65, 200))}
    pod = document["request"]["object"]
    pod["metadata"]["annotations"] = {PREFIX + "spot": "require"}
    pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return json.dumps(document).encode()


SPOILS: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flipped, _cut, _noise, _nested, _odd)
HEADS = (
    b"POST /mutate HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /mutate HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /mutate HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST /mutate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    (
        b"GET /mutate HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    b"\x00\xff\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
)

SEED = 1
"""The same requests in every run."""


def test_ten_thousand_hostile_requests(kube: Api, namespace: str, webhook: Serving) -> None:
    rng = random.Random(SEED)
    good = building.body(POD, namespace=namespace)
    began = counted(webhook, "process_start_time_seconds")
    statuses = Counter(_post_all(webhook, [rng.choice(SPOILS)(rng, good) for _ in range(BODIES)]))
    assert set(statuses) <= {200, 400}, statuses
    assert statuses[400] > BODIES / 2
    assert set(_post_all(webhook, [many(rng, good) for _ in range(LARGE)])) == {200}
    for index in range(STREAMS):
        _throw(webhook, HEADS[index % len(HEADS)])
    status, answer = webhook.post(good)
    assert (status, json.loads(answer)["response"]["allowed"]) == (200, True)
    assert counted(webhook, "process_start_time_seconds") == began, "it is the same worker"
    assert counted(webhook, "spotshift_internal_errors_total") == 0
    assert webhook.get("/readyz")[0] == 200
    assert '"level":"error"' not in webhook.log


def _post_all(webhook: Serving, bodies: list[bytes]) -> list[int]:
    found = []
    with contextlib.closing(webhook.connection()) as connection:
        for body in bodies:
            connection.request("POST", "/mutate", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            read = answer.read()
            assert b'"allowed":false' not in read
            found.append(answer.status)
    return found


def _throw(webhook: Serving, data: bytes) -> None:
    """Whatever comes back, or nothing."""
    context = ssl.create_default_context(cadata=webhook.ca)
    with (
        contextlib.suppress(OSError, http.client.HTTPException),
        socket.create_connection(("127.0.0.1", webhook.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as peer,
    ):
        peer.sendall(data)
        peer.settimeout(0.02)
        peer.recv(4096)

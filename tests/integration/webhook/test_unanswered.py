"""Nothing that goes wrong with the webhook costs anybody a pod, or more time than its timeout."""

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import yaml

from testbed import objects, ports
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.integration.webhook import beside, serving, stream
from tests.integration.webhook.serving import MANIFESTS, Serving
from tests.unit.webhook.building import PREFIX

MARGIN_SECONDS = 1.0
"""What the API server itself may take for a pod while other tests keep the machine busy."""


def timeout_seconds() -> float:
    """As shipped."""
    (webhook,) = yaml.safe_load((MANIFESTS / "webhook" / "configuration.yaml").read_text())["webhooks"]
    assert webhook["failurePolicy"] == "Ignore"
    return float(webhook["timeoutSeconds"])


def _late(handler: beside.Handler, review: Object) -> None:
    handler.server.released.wait(60)


def _slow_body(handler: beside.Handler, review: Object) -> None:
    handler.reply(b"{", length=1000)
    handler.server.released.wait(60)


def _cut(handler: beside.Handler, review: Object) -> None:
    body = json.dumps(beside.response(review)).encode()
    handler.reply(body[: len(body) // 2], length=len(body))
    handler.close_connection = True


def _silent_end(handler: beside.Handler, review: Object) -> None:
    handler.close_connection = True


def _fields(**fields: object) -> beside.Answer:
    return lambda handler, review: handler.reply(json.dumps(beside.response(review, **fields)).encode())


def _bytes(body: bytes, status: int = 200) -> beside.Answer:
    return lambda handler, _: handler.reply(body, status=status)


ANSWERS: dict[str, beside.Answer] = {
    "an answer after the timeout": _late,
    "an answer that never ends": _slow_body,
    "an answer that is cut": _cut,
    "no answer but the end of the connection": _silent_end,
    "not JSON": _bytes(b"<html>bad gateway</html>"),
    "nothing": _bytes(b""),
    "another object": _bytes(b'{"apiVersion":"v1","kind":"Status","status":"Success"}'),
    "the uid of another review": _fields(uid="705ab4f5-6393-11e8-b7cc-42010a800002"),
    "a patch of no type": _fields(patch="W10="),
    "500": _bytes(b"internal error", 500),
}

Place = Callable[[ControlPlane, str], AbstractContextManager[str]]


def _answering(answer: beside.Answer) -> Place:
    @contextmanager
    def placed(bed: ControlPlane, name: str) -> Iterator[str]:
        with beside.answering(bed, name, answer) as server:
            yield beside.url(server)

    return placed


@contextmanager
def _nobody(bed: ControlPlane, name: str) -> Iterator[str]:
    yield f"https://127.0.0.1:{ports.free((name,))[name]}/mutate"


@contextmanager
def _mute(bed: ControlPlane, name: str) -> Iterator[str]:
    """The connection stands, and no handshake begins."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/mutate"


PLACES: dict[str, Place] = {
    "nobody listens": _nobody,
    "no handshake": _mute,
    **{name: _answering(answer) for name, answer in ANSWERS.items()},
}


def failed_open(kube: Api, namespace: str) -> float:
    return stream.counted_by_apiserver(kube, namespace, stream.FAILED_OPEN)


def created_in_time(kube: Api, namespace: str) -> None:
    """A real creation, which the API server counts as a call that failed and let through."""
    eventually(
        lambda: (stream.marked(kube, namespace), failed_open(kube, namespace)),
        until=lambda seen: seen[1] > 0,
        what="a call that fails",
    )
    before, began = failed_open(kube, namespace), time.monotonic()
    made = kube.create("pods", objects.pod("plain"), namespace)
    took = time.monotonic() - began
    assert PREFIX + "managed" not in made["metadata"]["labels"]
    assert failed_open(kube, namespace) - before == 1
    assert took < timeout_seconds() + MARGIN_SECONDS


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_pods_are_created_without_an_answer(cluster: ControlPlane, kube: Api, namespace: str, place: Place) -> None:
    with place(cluster, f"bad-{namespace}") as url, serving.configured(cluster, kube, namespace, url):
        created_in_time(kube, namespace)


def test_pods_are_created_while_the_webhook_hangs(kube: Api, namespace: str, webhook: Serving) -> None:
    """The real one, in the middle of its work: the API server has connections to it."""
    eventually(lambda: stream.marked(kube, namespace), what="the webhook at work")
    os.killpg(webhook.process.pid, signal.SIGSTOP)
    created_in_time(kube, namespace)
    os.killpg(webhook.process.pid, signal.SIGCONT)
    eventually(lambda: stream.marked(kube, namespace), what="the webhook back at work")

"""Clients that send a part of a request, or do not read, hold no thread of the page for long."""

import contextlib
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.web import serve
from tests.unit.cluster.surroundings import until

ROOT = Path(__file__).parents[4]
PROGRAM = """
import sys
from flask import Flask
from console.web import serve

serve.READ_SECONDS, serve.WRITE_SECONDS = 1.0, 1

def endless():
    while True:
        yield b"x" * 65536

def compose():
    app = Flask("page")
    app.add_url_rule("/", view_func=lambda: "here")
    app.add_url_rule("/endless", endpoint="endless", view_func=lambda: app.response_class(endless()))
    return app

sys.argv = ["page"]
serve.Server(compose, listen=("127.0.0.1", int(PORT)), stop=lambda: None).run()
"""


def answer(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2) as found:
            return str(found.read().decode())
    except OSError as error:
        return str(error)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = int(free.getsockname()[1])
    program = PROGRAM.replace("PORT", str(number))
    running = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: answer(number) == "here", "the page")
        yield number
    finally:
        running.terminate()
        running.communicate(timeout=20)


SLOW = {
    "a line without its end": b"GET / HT",
    "headers without their end": b"GET / HTTP/1.1\r\nHost: a\r\n",
    "an answer that nobody reads": b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n",
}


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW.keys())
def test_slow_clients_hold_up_nobody_for_long(port: int, sent: bytes) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(serve.PAGES + serve.SPARE):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            slow.sendall(sent)
        until(lambda: answer(port) == "here", "an answer for somebody else")


def test_a_client_that_says_a_little_all_the_time_is_hung_up_on(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.settimeout(0.2)
        slow.sendall(b"GET / HTTP/1.1\r\n")

        def is_over() -> bool:
            try:
                slow.sendall(b"X-More: 1\r\n")
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        until(is_over, "the end of the connection")

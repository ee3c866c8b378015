"""An API server of our own for tests of the client: real sockets and HTTP, scripted answers."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3

from cluster import auth, tokens
from cluster.client import Client


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass
class Answer:
    """What to send back. A `hold` answer sends its body as one chunk and stays open until the test ends."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: bool = False
    cut: bool = False

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Script = Callable[[Seen], Answer]


class FakeApi:
    """Answers with `script`, or with queued answers in their order, and remembers what it saw."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.queue: list[Answer] = []
        self.script: Script = lambda _: self.queue.pop(0) if self.queue else Answer()
        self.ended = threading.Event()
        self.url = ""

    def answer(self, *answers: Answer) -> None:
        self.queue += answers

    def client(self, credentials: tokens.Credentials | None = None, **options: Any) -> Client:
        connection = auth.Connection(self.url, urllib3.PoolManager(), credentials or tokens.Anonymous())
        return Client(connection, **{"timeout": 5.0, **options})


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[FakeApi]:
    """A fake that serves as long as the context, over https if it has what that takes."""
    api = FakeApi()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    api.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.ended.set()
        server.shutdown()
        server.server_close()


def status(code: int, reason: str, message: str = "", **details: Any) -> Answer:
    """A failure as the API server words it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return Answer(code, body | {"message": message or reason, "details": details})


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two writes

        def _any(self) -> None:
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(raw) if raw else None
            seen = Seen(self.command, url.path, query, dict(self.headers.items()), body)
            api.seen.append(seen)
            self._send(api.script(seen))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - the names of the base class

        def _send(self, answer: Answer) -> None:
            chunked = answer.hold or answer.cut
            self.send_response(answer.status)
            size = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(answer.data)))
            for name, value in (*answer.headers.items(), size):
                self.send_header(name, value)
            self.end_headers()
            if not chunked:
                self.wfile.write(answer.data)
                return
            if answer.data:
                self.wfile.write(f"{len(answer.data):x}\r\n".encode() + answer.data + b"\r\n")
            self.wfile.flush()
            if answer.hold:
                api.ended.wait(30)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Stay quiet."""

    return Handler

"""Webhooks that are not ours: small HTTPS servers that answer what a test tells them to."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from testbed.api import Object
from testbed.bed import ControlPlane

Answer = Callable[["Handler", Object], None]
"""Writes the answer to a review, or something else, or nothing."""


class Server(ThreadingHTTPServer):
    """Many connections at once; `released` ends whatever a handler is waiting for."""

    daemon_threads = True
    answer: Answer
    released: threading.Event

    def handle_error(self, request: object, client_address: object) -> None:
        """The test looks at what the API server makes of it instead."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.answer(self, review)

    def reply(self, body: bytes, *, status: int = 200, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing."""


def response(review: Object, **fields: object) -> Object:
    """A review that allows the pod; `fields` replace or add to its response."""
    said = {"uid": review["request"]["uid"], "allowed": True, **fields}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": said}


def patched(review: Object, patch: list[Object]) -> bytes:
    encoded = base64.b64encode(json.dumps(patch).encode()).decode()
    return json.dumps(response(review, patchType="JSONPatch", patch=encoded)).encode()


@contextmanager
def answering(bed: ControlPlane, name: str, answer: Answer) -> Iterator[Server]:
    """Serve with a certificate of the test bed's CA."""
    pair = bed.layout.ca.server(name)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.cert, pair.key)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.answer, server.released = answer, threading.Event()
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


def url(server: Server) -> str:
    return f"https://127.0.0.1:{server.server_address[1]}/mutate"

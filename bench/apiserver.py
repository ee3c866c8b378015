"""A process that answers `GET /api/v1/pods` page by page with generated pods, like an API server would.

It runs apart from what is measured, so that making pods costs the measured process neither time nor memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from bench import pods


class Fleet:
    """The pages, made one after the other in the order in which a client asks for them."""

    def __init__(self, count: int, templates: int) -> None:
        self._count = count
        self._templates = templates
        self._pages: Iterator[bytes] = iter(())

    def page(self, *, limit: int, token: str) -> bytes:
        """The next page; a request without a token starts anew."""
        if not token:
            self._pages = pods.pages(self._count, templates=self._templates, page_size=limit)
        return next(self._pages)


def serve(fleet: Fleet) -> None:
    """Serve for ever on a free port, which is the first line of the output."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two writes

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            body = fleet.page(limit=int(query["limit"][0]), token=query.get("continue", [""])[0])
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


@contextmanager
def running(count: int, templates: int) -> Iterator[str]:
    """The URL of a server that lives as long as the context."""
    command = [sys.executable, "-m", "bench.apiserver", str(count), str(templates)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("pods", type=int)
    parser.add_argument("templates", type=int)
    asked = parser.parse_args()
    serve(Fleet(asked.pods, asked.templates))

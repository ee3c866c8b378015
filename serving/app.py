"""Probes and metrics as a Flask application on a port of their own, so that nothing of it is in the way of a pod.

The questions and answers are those of `telemetry.probes`. The only module that knows Flask.
"""

import threading
from typing import Final

from flask import Flask, Response, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from telemetry import probes
from telemetry.meter import Meter
from telemetry.probes import Health

CLIENT_SECONDS: Final = 5.0
"""A client that does not send or read for so long is dropped; it holds a thread of its own and nothing else."""


def create(*, health: Health, meter: Meter) -> Flask:
    """The application."""
    app = Flask("spotshift", static_folder=None)

    def answered() -> Response:
        found = probes.answer(request.path, health=health, meter=meter, accept=request.headers.get("Accept", ""))
        return Response(found.body, found.status, content_type=found.content_type)

    for path in ("/healthz", "/readyz", "/metrics"):
        app.add_url_rule(path, endpoint=path, view_func=answered)
    return app


class Server:
    """Serves the application from threads. Binds at once, so that a taken port fails at the start."""

    def __init__(self, address: tuple[str, int], app: Flask) -> None:
        host, port = address
        self._server: BaseWSGIServer = make_server(
            host or "0.0.0.0",  # noqa: S104 - the kubelet and the scraper come from outside of the pod
            port,
            app,
            threaded=True,
            request_handler=_Handler,
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)

    @property
    def address(self) -> str:
        """Where it listens, with the real port even if 0 was asked for."""
        return f"{self._server.host}:{self._server.port}"

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Close the listener; who is connected is not waited for."""
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_SECONDS

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Probes come every few seconds; they are not worth a line."""

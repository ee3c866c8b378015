"""Probes and metrics as a Flask application on a port of their own, so that nothing of it is in the way of a pod.

The questions and answers are those of `telemetry.probes`. The only module that knows Flask.
"""

import threading
from typing import Any

from flask import Flask, Response, request
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from telemetry import listening, probes
from telemetry.meter import Meter
from telemetry.probes import Health


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
        """An empty host is every address of the machine, IPv6 and IPv4 where it has both; `0.0.0.0` is IPv4 only."""
        self._server = _Server(listening.where(address[0]), address[1], app, _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)

    @property
    def address(self) -> str:
        """Where it listens, with the real port even if 0 was asked for."""
        return listening.shown(self._server.host, self._server.port)

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Close the listener and every connection."""
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.connections.drop_all()


class _Server(listening.Limited, ThreadedWSGIServer):
    """Everybody on the network can connect, and each connection holds a thread for as long as it says a little."""

    def __init__(self, *arguments: Any) -> None:
        self.connections = listening.Connections()
        super().__init__(*arguments)

    def server_bind(self) -> None:
        listening.answer_both(self.socket, self.host)
        super().server_bind()


class _Handler(WSGIRequestHandler):
    timeout = probes.CLIENT_SECONDS

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Probes come every few seconds; they are not worth a line."""
